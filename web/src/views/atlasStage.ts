/** Draws a frame of the atlas: clouds into one raster, words over it, what is in focus on a canvas above. */

import type { AtlasTokens } from "../data/atlasTokens";
import { frame as drawFrame, fillBox } from "../marks/boxes";
import type { Box } from "../marks/cells";
import type { Turn } from "../marks/orbit";
import { Raster } from "../marks/raster";
import { type Rgb, type Theme, themeOf } from "../theme";
import { type Camera, seenBox } from "./atlasCamera";
import { type DistancePlot, distanceLabels, paintDistances, plotBox } from "./atlasDistances";
import { insetOf } from "./atlasFocus";
import { headingLabels, tokenLabels } from "./atlasLabels";
import type { AtlasLayout, Cell } from "./atlasLayout";
import { type Overlay, paintOverlay, type Spot } from "./atlasOverlay";
import { PanLayer } from "./atlasPanLayer";
import { CloudPainter, type Look } from "./atlasPicture";
import type { AtlasScene } from "./atlasScene";
import type { Thumbnails } from "./atlasThumbnails";
import { type Label, Ruler } from "./labels";
import { pictureOf, Surface } from "./surface";

const BUDGET = 11; // ms for the points of a frame while something moves
const LAYER_BUDGET = 33; // ms for those of a layer, of which many frames are shown
const LEAST_SHARE = 0.12;

/** What a frame shows. */
export interface Frame {
  scene: AtlasScene;
  layout: AtlasLayout;
  camera: Camera;
  turn: Turn;
  /** The head that fills the stage; the others are left out once the flight has come there. */
  single: Cell | null;
  /** How far the flight into it has come. */
  arrived: number;
  plot: DistancePlot | null;
  thumbnails: Thumbnails | null;
  /** The point whose label comes first. */
  focus: number;
}

export class AtlasStage {
  /** The picture, with what lies on it. */
  readonly frame = document.createElement("div");
  readonly picture = document.createElement("div");
  readonly surface: Surface;
  readonly painter = new CloudPainter();
  private readonly over = document.createElement("canvas");
  private readonly ruler = new Ruler();
  private raster: Raster | null = null;
  /** Milliseconds that all points took. */
  private cost = 0;
  private readonly layer = new PanLayer();
  private placed: { point: number; label: Label; dx: number; dy: number }[] = [];
  private placedFor: object | null = null;

  constructor(
    private readonly element: HTMLElement,
    sharpen: () => void,
  ) {
    const { frame, picture, over } = this;
    Object.assign(frame.style, { position: "absolute", left: "0", top: "0" });
    Object.assign(picture.style, { position: "absolute", inset: "0", overflow: "hidden", touchAction: "none" });
    picture.style.userSelect = "none";
    picture.setAttribute("role", "img");
    frame.append(picture);
    element.append(frame);
    this.surface = new Surface(picture, sharpen);
    Object.assign(over.style, { position: "absolute", left: "0", top: "0", pointerEvents: "none" });
    Object.assign(over.style, { width: "100%", height: "100%" });
    over.setAttribute("aria-hidden", "true");
    picture.insertBefore(over, this.surface.labels.element);
    // Words stay readable over points.
    const { style } = this.surface.labels.element;
    style.setProperty("-webkit-text-stroke", "3px var(--background)");
    style.setProperty("paint-order", "stroke fill");
    style.willChange = "transform";
  }

  get size(): { width: number; height: number } {
    return { width: this.picture.clientWidth, height: this.picture.clientHeight };
  }

  get theme(): Theme {
    return themeOf(this.element);
  }

  /** `isPan`: nothing but the camera's place differs from the frame before. */
  draw(frame: Frame, overlay: Overlay, isPan = false): void {
    const { scale, isMoving } = this.surface;
    const { size, layer } = this;
    if (!size.width || !size.height) return;
    if (isPan && isMoving) {
      const { raster, part } = layer.at(frame.camera, size, (wide, camera) =>
        this.paintSome(wide, { ...frame, camera }, LAYER_BUDGET),
      );
      this.surface.show(raster, this.labels(frame), part);
    } else {
      layer.forget();
      const raster = this.sized(size.width * scale, size.height * scale);
      if (isMoving) this.paintSome(raster, frame, BUDGET);
      else this.paint(raster, frame, scale, 1);
      this.surface.show(raster, this.labels(frame));
      if (!isMoving) this.picture.dataset.share = "1.00";
    }
    this.drawOver(overlay);
  }

  /** As many of the points as take so many milliseconds. */
  private paintSome(raster: Raster, frame: Frame, budget: number): void {
    const share = this.cost > budget ? Math.max(LEAST_SHARE, budget / this.cost) : 1;
    const begun = performance.now();
    this.paint(raster, frame, this.surface.scale, share);
    this.cost = (performance.now() - begun) / share;
    this.picture.dataset.share = share.toFixed(2);
  }

  drawOver(overlay: Overlay): void {
    const scale = Math.min(3, window.devicePixelRatio || 1);
    const { over } = this;
    // An empty canvas over the other would cost as much as a full one.
    const isEmpty = Object.values(overlay).every((strokes) => !strokes.length);
    over.style.display = isEmpty ? "none" : "";
    if (isEmpty) return;
    const [width, height] = [Math.round(this.size.width * scale), Math.round(this.size.height * scale)];
    const context = over.getContext("2d") as CanvasRenderingContext2D;
    if (over.width !== width || over.height !== height) [over.width, over.height] = [width, height];
    else context.clearRect(0, 0, width, height);
    paintOverlay(context, overlay, this.theme, scale);
  }

  /** The same for a file, sharp. */
  canvas(frame: Frame, overlay: Overlay, scale: number): HTMLCanvasElement {
    const raster = new Raster(this.size.width * scale, this.size.height * scale);
    this.paint(raster, frame, scale, 1);
    const canvas = pictureOf(raster, this.labels(frame), scale);
    paintOverlay(canvas.getContext("2d") as CanvasRenderingContext2D, overlay, this.theme, scale);
    return canvas;
  }

  destroy(): void {
    this.surface.destroy();
    this.frame.remove();
  }

  private sized(width: number, height: number): Raster {
    const { raster } = this;
    if (raster && raster.width === Math.round(width) && raster.height === Math.round(height)) return raster;
    this.raster = new Raster(width, height);
    return this.raster;
  }

  private paint(raster: Raster, frame: Frame, scale: number, share: number): void {
    const { theme } = this;
    const { scene, layout, camera, single, arrived, plot, turn } = frame;
    raster.fill(theme.background);
    if (plot) {
      paintDistances(raster, plot, plotBox(this.size), theme, scale);
      return;
    }
    const whole = { x: 0, y: 0, width: raster.width, height: raster.height };
    const look = { theme, turn, scale, share };
    if (!single || arrived < 1) {
      const rest = single ? (1 - arrived) ** 2 : 1;
      for (const cell of layout.cells)
        if (cell.place !== single?.place)
          this.paintCell(raster, scene, cell, camera, { ...look, share: share * rest }, rest);
    }
    if (!single) return;
    const square = boxOf(camera, single, scale);
    const painted = scene.painted(single.place.address, theme);
    if (!painted) return;
    if (frame.thumbnails && scene.isWhole(single.place.address)) {
      this.paintThumbnails(raster, frame, square, scale);
      return;
    }
    this.painter.paint(raster, painted, square, whole, { ...look, inks: painted.inks });
  }

  private paintCell(
    raster: Raster,
    scene: AtlasScene,
    cell: Cell,
    camera: Camera,
    look: Omit<Look, "inks">,
    alpha: number,
  ): void {
    const square = boxOf(camera, cell, look.scale);
    const right = Math.min(raster.width, square.x + square.width);
    const bottom = Math.min(raster.height, square.y + square.height);
    if (right <= 0 || bottom <= 0 || square.x >= raster.width || square.y >= raster.height) return;
    const { theme, scale } = look;
    const line = Math.max(1, Math.round(scale));
    const rim = {
      x: square.x - line,
      y: square.y - line,
      width: square.width + 2 * line,
      height: square.height + 2 * line,
    };
    if (alpha === 1) fillBox(raster, square, theme.panel);
    drawFrame(raster, rim, theme.line, line, alpha);
    const painted = scene.painted(cell.place.address, theme);
    if (painted) this.painter.paint(raster, painted, insetOf(square), square, { ...look, inks: painted.inks });
  }

  private paintThumbnails(raster: Raster, frame: Frame, square: Box, scale: number): void {
    const { scene, turn, single, thumbnails } = frame;
    const painted = scene.painted(single?.place.address ?? "", this.theme);
    if (!painted || !thumbnails) return;
    const { map, colours, inks } = painted;
    const whole = { x: 0, y: 0, width: raster.width, height: raster.height };
    if (scene.isLit || this.surface.isMoving)
      this.painter.paint(raster, painted, square, whole, { theme: this.theme, turn, scale, share: 1, inks });
    const places = this.painter.placesOf(map, turn);
    const rims = (point: number) => inks[colours[point] as number] as Rgb;
    const points = { places, order: painted.lit ?? painted.side, rims };
    thumbnails.draw(raster, map, scene.store.tokens as Record<string, AtlasTokens>, points, square, scale);
  }

  // Words

  private labels(frame: Frame): Label[] {
    const { scene, plot, single, arrived, layout, camera } = frame;
    const { theme, ruler, size } = this;
    if (!this.surface.isMoving) this.shiftLabels(0, 0);
    if (plot) return distanceLabels(plot, plotBox(size), theme);
    if (!single || arrived < 1) {
      this.placedFor = null;
      this.shiftLabels(0, 0);
      return headingLabels(layout, camera, size, theme, ruler, new Set(scene.maps.keys()));
    }
    if (!scene.selection.labels || !scene.whole || scene.gliding || frame.thumbnails) return [];
    const square = seenBox(camera, single);
    const places = this.painter.placesOf(scene.whole, frame.turn);
    const at = (point: number) => {
      const place = places[point] as number;
      return {
        x: square.x + ((place & 0xffff) / 65535) * square.width,
        y: square.y + ((place >>> 16) / 65535) * square.height,
      };
    };
    if (this.surface.isMoving && this.placedFor === scene.whole) return this.movedLabels(at);
    const labels = tokenLabels(scene, scene.whole, at, size, theme, ruler, frame.focus);
    this.placedFor = scene.whole;
    this.placed = labels.map(({ point, label }) => {
      const { x, y } = at(point);
      return { point, label, dx: label.x - x, dy: label.y - y };
    });
    return labels.map(({ label }) => label);
  }

  /** The labels go with their points: all together where that is enough, which costs next to nothing. */
  private movedLabels(at: (point: number) => Spot): Label[] {
    const ways = this.placed.map(({ point, label, dx, dy }) => {
      const { x, y } = at(point);
      return { across: x + dx - label.x, down: y + dy - label.y };
    });
    const [first] = ways;
    const areTogether = ways.every(
      ({ across, down }) => Math.abs(across - (first?.across ?? 0)) < 0.5 && Math.abs(down - (first?.down ?? 0)) < 0.5,
    );
    if (first && areTogether) {
      this.shiftLabels(first.across, first.down);
      return this.placed.map(({ label }) => label);
    }
    this.shiftLabels(0, 0);
    return this.placed.map(({ label }, index) => {
      const { across, down } = ways[index] as { across: number; down: number };
      return { ...label, x: label.x + across, y: label.y + down };
    });
  }

  private shiftLabels(across: number, down: number): void {
    this.surface.labels.element.style.transform = across || down ? `translate(${across}px, ${down}px)` : "";
  }
}

/** A cell as pixels of the raster; whole ones, so that frames stay sharp. */
function boxOf(camera: Camera, cell: Cell, scale: number): Box {
  const { x, y, width, height } = seenBox(camera, cell);
  const left = Math.round(x * scale);
  const top = Math.round(y * scale);
  return {
    x: left,
    y: top,
    width: Math.round((x + width) * scale) - left,
    height: Math.round((y + height) * scale) - top,
  };
}
