/** Patches of pictures at the places of their points, each with a rim in the colour of its point. */

import type { ImageProps } from "../contract";
import type { HeadMap } from "../data/atlasPoints";
import type { AtlasTokens } from "../data/atlasTokens";
import { frame } from "../marks/boxes";
import type { Box } from "../marks/cells";
import { cropped, place, scaledTo } from "../marks/pictures";
import type { Raster } from "../marks/raster";
import type { Source } from "../source";
import type { Rgb } from "../theme";
import type { Grid } from "../wire";

const MOST = 4000; // pictures drawn at once
const AT_ONCE = 4;
const MOST_IMAGES = 400;

interface Picture {
  pixels: Uint8Array;
  height: number;
  width: number;
  channels: number;
  patch: [number, number];
}

export class Thumbnails {
  private readonly pictures = new Map<number, Picture>();
  private readonly drawn = new Map<string, Uint32Array>();

  constructor(private readonly source: Source) {}

  /** The pictures of these examples; `came` hears whenever some are there. */
  async load(examples: Iterable<number>, came: () => void, signal: AbortSignal): Promise<void> {
    const wanted = [...new Set(examples)].filter((example) => !this.pictures.has(example)).slice(0, MOST_IMAGES);
    for (let start = 0; start < wanted.length; start += AT_ONCE) {
      await Promise.all(wanted.slice(start, start + AT_ONCE).map((example) => this.loadOne(example, signal)));
      signal.throwIfAborted();
      came();
    }
  }

  private async loadOne(example: number, signal: AbortSignal): Promise<void> {
    const { props, arrays } = await this.source.part<ImageProps>(`image?example=${example}`, signal);
    const grid = arrays.pixels as Grid;
    const [height, width, channels] = grid.shape as [number, number, number];
    this.pictures.set(example, { pixels: grid.values as Uint8Array, height, width, channels, patch: props.patch });
  }

  /** A patch of so many pixels; null where its picture has not come, or it is none. */
  patch(tokens: AtlasTokens, row: number, side: number): Uint32Array | null {
    const picture = this.pictures.get(tokens.at("example", row));
    const [down, across] = [tokens.at("patch_row", row), tokens.at("patch_column", row)];
    if (!picture || down < 0) return null;
    const name = `${tokens.stack} ${row} ${side}`;
    let words = this.drawn.get(name);
    if (!words) {
      const [tall, wide] = picture.patch;
      words = scaledTo(cropped(picture, { x: across * wide, y: down * tall, width: wide, height: tall }), side, side);
      if (this.drawn.size > 3 * MOST) this.drawn.clear();
      this.drawn.set(name, words);
    }
    return words;
  }

  image(tokens: AtlasTokens, row: number, side: number): ImageData | null {
    const words = this.patch(tokens, row, side);
    if (!words) return null;
    const image = new ImageData(side, side);
    new Uint32Array(image.data.buffer).set(words);
    return image;
  }

  /** Draw the patches of points that are on screen; those whose pictures have not come stay points. */
  draw(
    raster: Raster,
    { set }: HeadMap,
    tokens: Record<string, AtlasTokens>,
    points: { places: Uint32Array; order: Int32Array | null; rims: (point: number) => Rgb },
    square: Box,
    scale: number,
  ): void {
    const count = points.order?.length ?? set.count;
    const side = Math.round(Math.min(40, Math.max(9, (1.1 * square.width) / scale / Math.sqrt(count))) * scale);
    const rim = Math.max(1, Math.round((side / scale > 14 ? 2 : 1) * scale));
    let drawn = 0;
    for (let i = 0; i < count && drawn < MOST; i++) {
      const point = points.order ? (points.order[i] as number) : i;
      const at = points.places[point] as number;
      const x = Math.round(square.x + ((at & 0xffff) / 65535) * square.width - side / 2);
      const y = Math.round(square.y + ((at >>> 16) / 65535) * square.height - side / 2);
      if (x + side < 0 || y + side < 0 || x > raster.width || y > raster.height) continue;
      const words = this.patch(tokens[set.stack(point)] as AtlasTokens, set.row[point] as number, side);
      if (!words) continue;
      place(raster, words, side, x, y);
      const border = { x: x - rim, y: y - rim, width: side + 2 * rim, height: side + 2 * rim };
      frame(raster, border, points.rims(point), rim);
      drawn++;
    }
  }
}
