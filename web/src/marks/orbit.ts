/** Points in space, as seen from a side: turned and drawn from far to near, fainter and smaller the further away. */

import type { Box } from "./cells";
import { type Cloud, drawPoints, FULL, type Inks, type Places } from "./points";
import type { Raster } from "./raster";

/** Angles in radians: about the upright axis, then up or down. */
export interface Turn {
  around: number;
  up: number;
}

/** Coordinates of points, three in a row, from 0 to 65,535. */
export type Solid = Uint16Array;

const SLABS = 12;
const SCALE = 1 / Math.sqrt(3); // a corner of the cube, turned, stays within the box

/** Where points are seen, and the order from far to near with where each slab of depth begins. */
export interface Seen {
  places: Places;
  order: Int32Array;
  starts: Int32Array;
}

export function seenFrom(solid: Solid, { around, up }: Turn, before: Seen | null = null): Seen {
  const count = solid.length / 3;
  const isSame = before?.places.length === count;
  const places = isSame ? (before as Seen).places : new Uint32Array(count);
  const order = isSame ? (before as Seen).order : new Int32Array(count);
  const slabs = new Uint8Array(count);
  const starts = new Int32Array(SLABS + 1);
  const middle = FULL / 2;
  const [cosA, sinA, cosU, sinU] = [Math.cos(around), Math.sin(around), Math.cos(up), Math.sin(up)];
  for (let i = 0, at = 0; i < count; i++, at += 3) {
    const x = (solid[at] as number) - middle;
    const y = (solid[at + 1] as number) - middle;
    const z = (solid[at + 2] as number) - middle;
    const across = x * cosA + z * sinA;
    const away = z * cosA - x * sinA;
    const down = y * cosU - away * sinU;
    const depth = y * sinU + away * cosU;
    places[i] = ((across * SCALE + middle) | 0 | (((down * SCALE + middle) | 0) << 16)) >>> 0;
    // The nearest are in the last slab.
    const slab = Math.min(SLABS - 1, Math.max(0, Math.floor(((middle - depth * SCALE) / FULL) * SLABS)));
    slabs[i] = slab;
    starts[slab + 1] = (starts[slab + 1] as number) + 1;
  }
  for (let slab = 0; slab < SLABS; slab++) starts[slab + 1] = (starts[slab + 1] as number) + (starts[slab] as number);
  const next = starts.slice();
  for (let i = 0; i < count; i++) {
    const slab = slabs[i] as number;
    const at = next[slab] as number;
    order[at] = i;
    next[slab] = at + 1;
  }
  return { places, order, starts };
}

/** Draw what is seen of a cloud; `alpha` and `diameter` are those in the middle. */
export function drawSolid(
  raster: Raster,
  { places, order, starts }: Seen,
  cloud: Omit<Cloud, "places" | "order">,
  box: Box,
  clip: Box,
  inks: (alpha: number) => Inks,
  alpha: number,
  diameter: number,
  /** Which points are drawn: not zero; absent: all. */
  mask: Uint8Array | null = null,
): void {
  for (let slab = 0; slab < SLABS; slab++) {
    const whole = order.subarray(starts[slab], starts[slab + 1]);
    const part = mask ? whole.filter((point) => mask[point]) : whole;
    if (!part.length) continue;
    const near = nearness(slab);
    const size = diameter > 2.3 ? diameter * (0.72 + 0.56 * near) : diameter;
    drawPoints(raster, { ...cloud, places, order: part }, box, clip, inks(alpha * (0.35 + 0.85 * near)), size);
  }
}

/** 0 for the furthest slab, 1 for the nearest; clouds fill the middle half of the depth. */
function nearness(slab: number): number {
  return Math.min(1, Math.max(0, ((slab + 0.5) / SLABS - 0.22) / 0.56));
}

/** Where a single point is seen, as shares of the box. */
export function seenAt([x, y, z]: [number, number, number], { around, up }: Turn): { x: number; y: number } {
  const across = (x - 0.5) * Math.cos(around) + (z - 0.5) * Math.sin(around);
  const away = (z - 0.5) * Math.cos(around) - (x - 0.5) * Math.sin(around);
  const down = (y - 0.5) * Math.cos(up) - away * Math.sin(up);
  return { x: across * SCALE + 0.5, y: down * SCALE + 0.5 };
}

/** What a solid takes of its square at most, however it is turned: left, top, right, bottom, as shares. */
export function ballOf(solid: Solid): [number, number, number, number] {
  let furthest = 0;
  for (let i = 0; i < solid.length; i += 3) {
    const [x, y, z] = [0, 1, 2].map((axis) => (solid[i + axis] as number) - FULL / 2) as [number, number, number];
    furthest = Math.max(furthest, x * x + y * y + z * z);
  }
  const radius = (Math.sqrt(furthest) * SCALE) / FULL;
  return [0.5 - radius, 0.5 - radius, 0.5 + radius, 0.5 + radius];
}
