/** Patches of a picture as small pictures beside their names. */

import type { SiteProps } from "../contract";
import { loadPicture, type Picture, patchesOf } from "../data/media";
import type { Reading } from "../data/reading";
import { stackOf } from "../data/trace";
import { cropped, place, scaledTo } from "../marks/pictures";
import type { Raster } from "../marks/raster";
import type { Side } from "../selection";
import type { Host } from "./view";

export const ICON = 20; // px at most
/** From the edge of the matrix or the lines to the picture, and from that to the name. */
export const BESIDE = 6;

export class Icons {
  private readonly drawn = new Map<string, Uint32Array>();

  private constructor(
    private readonly picture: Picture,
    private readonly grid: [number, number],
    private readonly patches: Record<Side, Int32Array>,
  ) {}

  /** Those of a layer; null where none of its tokens are patches of a picture. */
  static async of(
    host: Host,
    { site, queries, keys }: { site: SiteProps; queries: Reading; keys: Reading },
    signal: AbortSignal,
  ): Promise<Icons | null> {
    const stacks = [stackOf(host.trace, site.stack), stackOf(host.trace, site.key_stack)] as const;
    if (stacks[1].looks !== "image" || !site.grid) return null;
    const picture = await loadPicture(host.source, site.key_stack, signal);
    const patches = { query: patchesOf(queries, stacks[0], site), key: patchesOf(keys, stacks[1], site) };
    return new Icons(picture, stacks[1].grid ?? site.grid, patches).coarser(site.grid);
  }

  has(side: Side, index: number): boolean {
    return (this.patches[side][index] ?? -1) >= 0;
  }

  /** Draw a token's patch with its middle at a point of the page. */
  draw(raster: Raster, scale: number, side: Side, index: number, at: { x: number; y: number; size: number }): void {
    const pixels = Math.round(at.size * scale);
    if (!this.has(side, index) || pixels < 3) return;
    const words = this.words(side, index, pixels);
    place(raster, words, pixels, Math.round(at.x * scale - pixels / 2), Math.round(at.y * scale - pixels / 2));
  }

  /** A token's patch by itself; null for a token that is none. */
  image(side: Side, index: number, scale: number): ImageData | null {
    if (!this.has(side, index)) return null;
    const pixels = Math.round(ICON * scale);
    const image = new ImageData(pixels, pixels);
    new Uint32Array(image.data.buffer).set(this.words(side, index, pixels));
    return image;
  }

  private words(side: Side, index: number, pixels: number): Uint32Array {
    const patch = this.patches[side][index] as number;
    const name = `${patch} ${pixels}`;
    let words = this.drawn.get(name);
    if (!words) {
      const [tall, wide] = this.picture.patch;
      const columns = this.grid[1];
      const box = { x: (patch % columns) * wide, y: Math.floor(patch / columns) * tall, width: wide, height: tall };
      words = scaledTo(cropped(this.picture, box), pixels, pixels);
      if (this.drawn.size > 5000) this.drawn.clear();
      this.drawn.set(name, words);
    }
    return words;
  }

  /** A later stage's patches are two, four, … times as large as the input's. */
  private coarser(grid: [number, number]): Icons {
    const times = (axis: 0 | 1) => 2 ** Math.round(Math.log2(this.grid[axis] / grid[axis]));
    const { patch } = this.picture;
    const picture = { ...this.picture, patch: [patch[0] * times(0), patch[1] * times(1)] as [number, number] };
    return new Icons(picture, grid, this.patches);
  }
}
