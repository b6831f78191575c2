/** Filled boxes and frames. Edges between pixels are blended, so that bars grow evenly. */

import type { Rgb } from "../theme";
import type { Box } from "./cells";
import { type Raster, word } from "./raster";

export function fillBox(raster: Raster, box: Box, colour: Rgb, alpha = 1): void {
  const { pixels, width } = raster;
  const right = Math.min(raster.width, box.x + box.width);
  const bottom = Math.min(raster.height, box.y + box.height);
  const left = Math.max(0, box.x);
  const top = Math.max(0, box.y);
  for (let y = Math.floor(top); y < bottom; y++) {
    const down = Math.min(bottom, y + 1) - Math.max(top, y);
    for (let x = Math.floor(left); x < right; x++) {
      const share = alpha * down * (Math.min(right, x + 1) - Math.max(left, x));
      const at = (y * width + x) * 4;
      for (let channel = 0; channel < 3; channel++) {
        const before = pixels[at + channel] as number;
        pixels[at + channel] = before + ((colour[channel] as number) - before) * share;
      }
    }
  }
}

/** A frame of a given thickness, just inside the box. */
export function frame(raster: Raster, box: Box, colour: Rgb, thickness = 1, alpha = 1): void {
  const { x, y, width, height } = box;
  const inner = Math.max(0, height - 2 * thickness);
  fillBox(raster, { x, y, width, height: thickness }, colour, alpha);
  fillBox(raster, { x, y: y + height - thickness, width, height: thickness }, colour, alpha);
  fillBox(raster, { x, y: y + thickness, width: thickness, height: inner }, colour, alpha);
  fillBox(raster, { x: x + width - thickness, y: y + thickness, width: thickness, height: inner }, colour, alpha);
}

/** Diagonal lines over a box, `step` pixels apart across: what is excluded, rather than zero. */
export function hatch(raster: Raster, box: Box, colour: Rgb, step: number): void {
  const { width } = raster;
  const tone = word(colour);
  const right = Math.min(width, Math.round(box.x + box.width));
  const bottom = Math.min(raster.height, Math.round(box.y + box.height));
  for (let y = Math.max(0, Math.round(box.y)); y < bottom; y++)
    for (let x = Math.max(0, Math.round(box.x)); x < right; x++)
      if ((x + y) % step === 0) raster.words[y * width + x] = tone;
}

/** A box with round corners. */
export function roundBox(raster: Raster, box: Box, radius: number, colour: Rgb, alpha = 1): void {
  const { pixels, width } = raster;
  const reach = Math.min(radius, box.width / 2, box.height / 2);
  const middleX = box.x + box.width / 2;
  const middleY = box.y + box.height / 2;
  const top = Math.max(0, Math.floor(box.y));
  const left = Math.max(0, Math.floor(box.x));
  for (let y = top; y < Math.min(raster.height, box.y + box.height); y++) {
    const down = Math.abs(y + 0.5 - middleY) - box.height / 2 + reach;
    for (let x = left; x < Math.min(raster.width, box.x + box.width); x++) {
      const aside = Math.abs(x + 0.5 - middleX) - box.width / 2 + reach;
      const outside = Math.sqrt(Math.max(0, aside) ** 2 + Math.max(0, down) ** 2) + Math.min(0, Math.max(aside, down));
      const share = alpha * Math.min(1, Math.max(0, 0.5 + reach - outside));
      const at = (y * width + x) * 4;
      for (let channel = 0; channel < 3; channel++) {
        const before = pixels[at + channel] as number;
        pixels[at + channel] = before + ((colour[channel] as number) - before) * share;
      }
    }
  }
}

/** A box of the page as pixels of a raster that has `scale` of them for each of the page's. */
export function scaled({ x, y, width, height }: Box, scale: number): Box {
  return { x: x * scale, y: y * scale, width: width * scale, height: height * scale };
}

export function grown({ x, y, width, height }: Box, rim: number): Box {
  return { x: x - rim, y: y - rim, width: width + 2 * rim, height: height + 2 * rim };
}

export function contains({ x, y, width, height }: Box, atX: number, atY: number): boolean {
  return atX >= x && atX < x + width && atY >= y && atY < y + height;
}
