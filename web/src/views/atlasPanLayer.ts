/** The picture with a margin about it, drawn once while it is only moved: each frame shows a part of it. */

import type { Box } from "../marks/cells";
import { Raster } from "../marks/raster";
import type { Camera, Size } from "./atlasCamera";

const MARGIN = 160; // px about the picture: as far as it is moved before the layer is drawn anew

export class PanLayer {
  private raster: Raster | null = null;
  private camera: Camera | null = null;
  private size: Size = { width: 0, height: 0 };

  /** Something else than the camera's place has changed. */
  forget(): void {
    this.camera = null;
  }

  /** What to show of the layer for this camera, drawn by `paint` where that is not there yet. */
  at(camera: Camera, size: Size, paint: (raster: Raster, camera: Camera) => void): { raster: Raster; part: Box } {
    const { raster } = this;
    const part = this.partAt(camera, size);
    if (raster && part) return { raster, part };
    const [width, height] = [size.width + 2 * MARGIN, size.height + 2 * MARGIN];
    const isFit = raster?.width === width && raster.height === height;
    const drawn = isFit ? raster : new Raster(width, height);
    const away = MARGIN / camera.zoom;
    paint(drawn, { ...camera, x: camera.x - away, y: camera.y - away });
    Object.assign(this, { raster: drawn, camera, size });
    return { raster: drawn, part: { x: MARGIN, y: MARGIN, ...size } };
  }

  /** Null where the layer does not reach, or is of another picture. */
  private partAt({ x, y, zoom }: Camera, size: Size): Box | null {
    const { camera } = this;
    const isSame = camera?.zoom === zoom && size.width === this.size.width && size.height === this.size.height;
    if (!camera || !isSame) return null;
    const across = MARGIN + Math.round((x - camera.x) * zoom);
    const down = MARGIN + Math.round((y - camera.y) * zoom);
    const isInside = Math.min(across, down) >= 0 && Math.max(across, down) <= 2 * MARGIN;
    return isInside ? { x: across, y: down, ...size } : null;
  }
}
