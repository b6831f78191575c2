/** Points, up to a million in a picture: blended in integers, one read of memory a point. */

import type { Rgb } from "../theme";
import type { Box } from "./cells";
import type { Raster } from "./raster";

/** Places of points within a box: x in the low half of a word, y in the high half, from 0 to 65,535. */
export type Places = Uint32Array;
export const FULL = 65535;

const LEVELS = 16;
const STEPS = 4; // of a pixel, in which a dot may begin
const COLOURS = 256;
const RED_BLUE = 0x00ff00ff;
const GREEN = 0x0000ff00;

export function packed(x: number, y: number): number {
  return (x | (y << 16)) >>> 0;
}

/** Colours of points, at one opacity: what a dot adds to a pixel, for every share of the pixel that it covers. */
export class Inks {
  readonly redBlue = new Uint32Array((LEVELS + 1) * COLOURS);
  readonly green = new Uint32Array((LEVELS + 1) * COLOURS);
  /** What stays of the pixel, of 256. */
  readonly rest = new Uint32Array(LEVELS + 1);

  constructor(colours: readonly Rgb[], alpha: number) {
    for (let level = 0; level <= LEVELS; level++) {
      const share = Math.round((256 * alpha * level) / LEVELS);
      this.rest[level] = 256 - share;
      colours.forEach(([red, green, blue], index) => {
        // Halves are added, so that what is cut off is rounded.
        this.redBlue[level * COLOURS + index] = (((blue << 16) | red) * share + 0x00800080) >>> 0;
        this.green[level * COLOURS + index] = ((green << 8) * share + 0x00008000) >>> 0;
      });
    }
  }
}

/** What is drawn of a cloud. */
export interface Cloud {
  readonly places: Places;
  /** Of each point, which ink. */
  readonly colours: Uint8Array;
  /** Of each point, its diameter in 64ths of the usual one; absent: all alike. */
  readonly sizes?: Uint8Array | null;
  /** Which points, in this order; absent: all. */
  readonly order?: Int32Array | null;
}

/** Draw a cloud whose box of places covers `box` of the picture, within `clip`. Points that are drawn later lie above:
 *  so clouds come in an order in which no colour is always last. */
export function drawPoints(
  raster: Raster,
  { places, colours, sizes = null, order = null }: Cloud,
  box: Box,
  clip: Box,
  inks: Inks,
  diameter: number,
): void {
  if (sizes) drawSized(raster, { places, colours, sizes, order }, box, clip, inks, diameter);
  else if (diameter < 2.3) drawSquares(raster, { places, colours, order }, box, clip, inks, diameter < 1.3 ? 1 : 2);
  else drawDots(raster, { places, colours, order }, box, clip, inks, stampsOf(diameter, raster.width));
}

/** The pixels of a clip: first and last column and row at which something as wide as `reach` about it may be drawn. */
function inside(raster: Raster, clip: Box, before: number, after: number): [number, number, number, number] {
  return [
    Math.max(0, Math.ceil(clip.x)) + before,
    Math.min(raster.width, Math.floor(clip.x + clip.width)) - after,
    Math.max(0, Math.ceil(clip.y)) + before,
    Math.min(raster.height, Math.floor(clip.y + clip.height)) - after,
  ];
}

/** Squares of one or two pixels: for very many points. */
function drawSquares(
  raster: Raster,
  { places, colours, order = null }: Cloud,
  box: Box,
  clip: Box,
  inks: Inks,
  side: 1 | 2,
): void {
  const { words, width } = raster;
  const [left, right, top, bottom] = inside(raster, clip, 0, side - 1);
  const [scaleX, scaleY] = [box.width / FULL, box.height / FULL];
  const offset = side === 2 ? 0.5 : 0;
  const [shiftX, shiftY] = [box.x - offset, box.y - offset];
  const redBlue = inks.redBlue.subarray(LEVELS * COLOURS);
  const green = inks.green.subarray(LEVELS * COLOURS);
  const rest = inks.rest[LEVELS] as number;
  const count = order ? order.length : places.length;
  for (let i = 0; i < count; i++) {
    const point = order ? (order[i] as number) : i;
    const place = places[point] as number;
    const x = Math.floor((place & FULL) * scaleX + shiftX);
    const y = Math.floor((place >>> 16) * scaleY + shiftY);
    if (x < left || x >= right || y < top || y >= bottom) continue;
    const colour = colours[point] as number;
    const added = redBlue[colour] as number;
    const addedGreen = green[colour] as number;
    let at = y * width + x;
    let word = words[at] as number;
    words[at] =
      (((Math.imul(word & RED_BLUE, rest) + added) >>> 8) & RED_BLUE) |
      (((Math.imul(word & GREEN, rest) + addedGreen) >>> 8) & GREEN) |
      0xff000000;
    if (side === 1) continue;
    word = words[at + 1] as number;
    words[at + 1] =
      (((Math.imul(word & RED_BLUE, rest) + added) >>> 8) & RED_BLUE) |
      (((Math.imul(word & GREEN, rest) + addedGreen) >>> 8) & GREEN) |
      0xff000000;
    at += width;
    word = words[at] as number;
    words[at] =
      (((Math.imul(word & RED_BLUE, rest) + added) >>> 8) & RED_BLUE) |
      (((Math.imul(word & GREEN, rest) + addedGreen) >>> 8) & GREEN) |
      0xff000000;
    word = words[at + 1] as number;
    words[at + 1] =
      (((Math.imul(word & RED_BLUE, rest) + added) >>> 8) & RED_BLUE) |
      (((Math.imul(word & GREEN, rest) + addedGreen) >>> 8) & GREEN) |
      0xff000000;
  }
}

/** The pixels of a dot, for each place within a pixel that its middle may have. */
interface Stamps {
  /** From the pixel of the middle to the furthest. */
  reach: number;
  /** By place within the pixel: offsets of pixels in the picture, and how much of each is covered, 1 to 16. */
  offsets: Int32Array[];
  levels: Uint8Array[];
}

const stamps = new Map<string, Stamps>();

function stampsOf(diameter: number, width: number): Stamps {
  const rounded = Math.round(diameter * 8) / 8;
  const name = `${rounded} ${width}`;
  const ready = stamps.get(name);
  if (ready) return ready;
  if (stamps.size > 400) stamps.clear();
  const stamp = stampOf(rounded, width);
  stamps.set(name, stamp);
  return stamp;
}

function stampOf(diameter: number, width: number): Stamps {
  const radius = diameter / 2;
  const reach = Math.ceil(radius + 0.5);
  const stamp: Stamps = { reach, offsets: [], levels: [] };
  for (let step = 0; step < STEPS * STEPS; step++) {
    const [middleX, middleY] = [((step % STEPS) + 0.5) / STEPS, (Math.floor(step / STEPS) + 0.5) / STEPS];
    const offsets: number[] = [];
    const levels: number[] = [];
    for (let y = -reach; y <= reach; y++) {
      for (let x = -reach; x <= reach; x++) {
        const apart = Math.hypot(x + 0.5 - middleX, y + 0.5 - middleY);
        const level = Math.round(LEVELS * Math.min(1, Math.max(0, radius + 0.5 - apart)));
        if (!level) continue;
        offsets.push(y * width + x);
        levels.push(level);
      }
    }
    stamp.offsets.push(Int32Array.from(offsets));
    stamp.levels.push(Uint8Array.from(levels));
  }
  return stamp;
}

function drawDots(
  raster: Raster,
  { places, colours, order = null }: Cloud,
  box: Box,
  clip: Box,
  inks: Inks,
  stamp: Stamps,
): void {
  const { reach, offsets, levels } = stamp;
  const { width } = raster;
  const [left, right, top, bottom] = inside(raster, clip, reach, reach);
  const [scaleX, scaleY] = [box.width / FULL, box.height / FULL];
  const count = order ? order.length : places.length;
  for (let i = 0; i < count; i++) {
    const point = order ? (order[i] as number) : i;
    const place = places[point] as number;
    const x = (place & FULL) * scaleX + box.x;
    const y = (place >>> 16) * scaleY + box.y;
    const column = Math.floor(x);
    const row = Math.floor(y);
    const step = Math.floor((y - row) * STEPS) * STEPS + Math.floor((x - column) * STEPS);
    const colour = colours[point] as number;
    if (column >= left && column < right && row >= top && row < bottom) {
      stampAt(raster, row * width + column, offsets[step] as Int32Array, levels[step] as Uint8Array, colour, inks);
    } else stampAtEdge(raster, column, row, step, colour, inks, stamp, clip);
  }
}

function stampAt(
  { words }: Raster,
  at: number,
  offsets: Int32Array,
  levels: Uint8Array,
  colour: number,
  { redBlue, green, rest }: Inks,
): void {
  for (let i = 0; i < offsets.length; i++) {
    const pixel = at + (offsets[i] as number);
    const level = levels[i] as number;
    const ink = level * COLOURS + colour;
    const stay = rest[level] as number;
    const word = words[pixel] as number;
    words[pixel] =
      (((Math.imul(word & RED_BLUE, stay) + (redBlue[ink] as number)) >>> 8) & RED_BLUE) |
      (((Math.imul(word & GREEN, stay) + (green[ink] as number)) >>> 8) & GREEN) |
      0xff000000;
  }
}

/** A dot that the edge may cut: its pixels one by one. */
function stampAtEdge(
  raster: Raster,
  column: number,
  row: number,
  step: number,
  colour: number,
  inks: Inks,
  { reach, offsets, levels }: Stamps,
  clip: Box,
): void {
  const [left, right, top, bottom] = inside(raster, clip, 0, 0);
  if (column + reach < left || column - reach >= right || row + reach < top || row - reach >= bottom) return;
  const { width } = raster;
  const all = offsets[step] as Int32Array;
  const strengths = levels[step] as Uint8Array;
  for (let i = 0; i < all.length; i++) {
    const offset = all[i] as number;
    const down = Math.round(offset / width);
    const x = column + offset - down * width;
    const y = row + down;
    if (x < left || x >= right || y < top || y >= bottom) continue;
    stampAt(raster, y * width + x, ORIGIN, strengths.subarray(i, i + 1), colour, inks);
  }
}

const ORIGIN = Int32Array.of(0);

/** Dots each of its own size. */
function drawSized(raster: Raster, cloud: Cloud, box: Box, clip: Box, inks: Inks, diameter: number): void {
  const { places, colours, order } = cloud;
  const sizes = cloud.sizes as Uint8Array;
  const [scaleX, scaleY] = [box.width / FULL, box.height / FULL];
  const sorts = Array.from({ length: 256 }, (_, size) => (size ? Math.max(1.5, (diameter * size) / 64) : 0));
  const known: (Stamps | undefined)[] = [];
  const count = order ? order.length : places.length;
  for (let i = 0; i < count; i++) {
    const point = order ? (order[i] as number) : i;
    const size = sizes[point] as number;
    if (!size) continue;
    let stamp = known[size];
    if (!stamp) {
      stamp = stampsOf(sorts[size] as number, raster.width);
      known[size] = stamp;
    }
    const place = places[point] as number;
    const x = (place & FULL) * scaleX + box.x;
    const y = (place >>> 16) * scaleY + box.y;
    const [column, row] = [Math.floor(x), Math.floor(y)];
    const step = Math.floor((y - row) * STEPS) * STEPS + Math.floor((x - column) * STEPS);
    stampAtEdge(raster, column, row, step, colours[point] as number, inks, stamp, clip);
  }
}
