/** A picture in memory. Marks write into it; one `putImageData` shows it. No canvas is needed, so tests see every pixel. */

import type { Rgb } from "../theme";
import type { Box } from "./cells";

export class Raster {
  readonly width: number;
  readonly height: number;
  readonly pixels: Uint8ClampedArray<ArrayBuffer>;
  /** The same memory, a pixel at a time. */
  readonly words: Uint32Array<ArrayBuffer>;

  constructor(width: number, height: number) {
    this.width = Math.max(1, Math.round(width));
    this.height = Math.max(1, Math.round(height));
    this.pixels = new Uint8ClampedArray(this.width * this.height * 4);
    this.words = new Uint32Array(this.pixels.buffer);
  }

  fill(colour: Rgb): this {
    this.words.fill(word(colour));
    return this;
  }

  /** Take over another picture of the same size, faded towards a colour. */
  fadedFrom(other: Raster, towards: Rgb, share: number): this {
    const [red, green, blue] = towards.map((channel) =>
      Uint8Array.from({ length: 256 }, (_, before) => Math.round(before + (channel - before) * share)),
    ) as [Uint8Array, Uint8Array, Uint8Array];
    const { words } = this;
    const before = other.words;
    for (let i = 0; i < words.length; i++) {
      const pixel = before[i] as number;
      words[i] =
        0xff000000 |
        ((blue[(pixel >> 16) & 255] as number) << 16) |
        ((green[(pixel >> 8) & 255] as number) << 8) |
        (red[pixel & 255] as number);
    }
    return this;
  }

  copyFrom(other: Raster): this {
    this.words.set(other.words);
    return this;
  }

  /** Show all of it, or a part of whole pixels. */
  show(context: CanvasRenderingContext2D, part: Box = { x: 0, y: 0, width: this.width, height: this.height }): void {
    const { canvas } = context;
    const { x, y, width, height } = part;
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width;
      canvas.height = height;
    }
    context.putImageData(new ImageData(this.pixels, this.width, this.height), -x, -y, x, y, width, height);
  }
}

/** A colour as one little-endian pixel. */
export function word([red, green, blue]: Rgb): number {
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}
