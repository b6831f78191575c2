/** Pictures: scaled to pixels of the page, and faded so that colour over them can be read. */

import type { Rgb } from "../theme";
import type { Box } from "./cells";
import type { Raster } from "./raster";

interface Pixels {
  pixels: Uint8Array;
  height: number;
  width: number;
  channels: number;
}

/** A picture of so many pixels: larger, each of its own is a crisp square (as the model saw it); smaller, means. */
export function scaledTo(picture: Pixels, width: number, height: number): Uint32Array {
  const { pixels, channels } = picture;
  const words = new Uint32Array(width * height);
  const green = channels > 2 ? 1 : 0;
  const blue = channels > 2 ? 2 : 0;
  const across = ends(picture.width, width);
  const down = ends(picture.height, height);
  for (let y = 0; y < height; y++) {
    const top = down[2 * y] as number;
    const bottom = down[2 * y + 1] as number;
    for (let x = 0; x < width; x++) {
      const left = across[2 * x] as number;
      const right = across[2 * x + 1] as number;
      let [r, g, b] = [0, 0, 0];
      for (let row = top; row < bottom; row++) {
        for (let at = (row * picture.width + left) * channels, n = left; n < right; n++, at += channels) {
          r += pixels[at] as number;
          g += pixels[at + green] as number;
          b += pixels[at + blue] as number;
        }
      }
      const count = (bottom - top) * (right - left);
      words[y * width + x] =
        (0xff000000 | (Math.round(b / count) << 16) | (Math.round(g / count) << 8) | Math.round(r / count)) >>> 0;
    }
  }
  return words;
}

/** The same, a share of the way towards a colour: its own colours are still told. */
export function faded(words: Uint32Array, towards: Rgb, share: number): Uint32Array {
  const [red, green, blue] = towards.map((channel) =>
    Uint8Array.from({ length: 256 }, (_, before) => Math.round(before + (channel - before) * share)),
  ) as [Uint8Array, Uint8Array, Uint8Array];
  return words.map(
    (word) =>
      (0xff000000 |
        ((blue[(word >> 16) & 255] as number) << 16) |
        ((green[(word >> 8) & 255] as number) << 8) |
        (red[word & 255] as number)) >>>
      0,
  );
}

/** Put pixels where they belong, cut at the edges. */
export function place(raster: Raster, words: Uint32Array, width: number, x: number, y: number): void {
  const height = Math.floor(words.length / width);
  const from = Math.max(0, -x);
  const to = Math.min(width, raster.width - x);
  if (to <= from) return;
  for (let row = Math.max(0, -y); row < height && y + row < raster.height; row++) {
    raster.words.set(words.subarray(row * width + from, row * width + to), (y + row) * raster.width + x + from);
  }
}

/** The part of a picture within a box of its own pixels, as a small picture. */
export function cropped(picture: Pixels, box: Box): Pixels {
  const left = Math.max(0, Math.min(picture.width - 1, Math.floor(box.x)));
  const top = Math.max(0, Math.min(picture.height - 1, Math.floor(box.y)));
  const right = Math.max(left + 1, Math.min(picture.width, Math.ceil(box.x + box.width)));
  const bottom = Math.max(top + 1, Math.min(picture.height, Math.ceil(box.y + box.height)));
  const { channels } = picture;
  const [width, height] = [right - left, bottom - top];
  const pixels = new Uint8Array(width * height * channels);
  for (let row = 0; row < height; row++) {
    const start = ((top + row) * picture.width + left) * channels;
    pixels.set(picture.pixels.subarray(start, start + width * channels), row * width * channels);
  }
  return { pixels, width, height, channels };
}

/** Which of the picture's pixels each new one stands for, as [first, last) pairs. */
function ends(from: number, to: number): Int32Array {
  const ranges = new Int32Array(2 * to);
  for (let i = 0; i < to; i++) {
    const first = from <= to ? Math.floor(((i + 0.5) * from) / to) : Math.floor((i * from) / to);
    ranges[2 * i] = first;
    ranges[2 * i + 1] = from <= to ? first + 1 : Math.max(first + 1, Math.floor(((i + 1) * from) / to));
  }
  return ranges;
}
