/** Paints clouds of the atlas into a picture: how large and how opaque dots are, what is lit, what is seen of a solid. */

import { dimmed } from "../data/atlasColours";
import type { HeadMap } from "../data/atlasPoints";
import type { Box } from "../marks/cells";
import { drawSolid, type Seen, seenFrom, type Turn } from "../marks/orbit";
import { drawPoints, Inks } from "../marks/points";
import type { Raster } from "../marks/raster";
import type { Rgb, Theme } from "../theme";

/** A cloud with all that decides how it looks. */
export interface Painted {
  map: HeadMap;
  colours: Uint8Array;
  sizes: Uint8Array | null;
  /** The points that stand out, the others being dimmed; null where none are chosen. */
  lit: Int32Array | null;
  /** The points of the roles that are shown; null for all. */
  side: Int32Array | null;
}

export interface Look {
  inks: Rgb[];
  theme: Theme;
  turn: Turn;
  /** Device pixels for each of the page. */
  scale: number;
  /** The share of points to draw while something moves. */
  share: number;
}

const LEAST_SIZE = 1.15; // px
const MOST_SIZE = 9;
const SMALL = 240; // px: smaller clouds are seen as shapes, so their dots are larger for it

/** The diameter of dots and their opacity, for so many points on a square of so many pixels. */
export function dotOf(count: number, side: number): { diameter: number; alpha: number } {
  const share = side < SMALL ? 0.85 : 0.56;
  const diameter = Math.min(MOST_SIZE, Math.max(LEAST_SIZE, (share * side) / Math.sqrt(Math.max(1, count))));
  const cover = (count * diameter * diameter) / (side * side);
  return { diameter, alpha: Math.min(0.85, Math.max(0.22, 0.9 / (1 + 0.55 * cover))) };
}

export class CloudPainter {
  private readonly seen = new WeakMap<HeadMap, { turn: Turn; seen: Seen }>();
  private readonly mixed = new Map<number, Inks>();
  private mixedFor: Rgb[] | null = null;
  private readonly faint = new WeakMap<Rgb[], Rgb[]>();

  /** Paint a cloud into its square, within the clip. */
  paint(raster: Raster, painted: Painted, square: Box, clip: Box, look: Look): void {
    const { map, colours, sizes, lit, side } = painted;
    const { inks, theme, scale } = look;
    const count = side?.length ?? map.set.count;
    const dot = dotOf(count, square.width / scale);
    const ground = lit ? this.faintOf(inks, theme) : inks;
    // Fewer dots while it moves are as much colour together.
    const drawn = Math.ceil(count * look.share);
    const alpha = Math.min(0.9, dot.alpha * (1 + 0.5 * (1 - look.share)) * (lit ? 0.8 : 1));
    const diameter = dot.diameter * scale;
    if (map.solid) this.solid(raster, painted, square, clip, look, ground, alpha, diameter);
    else {
      const order = side && drawn < side.length ? side.subarray(0, drawn) : side;
      const places = side || drawn >= map.places.length ? map.places : map.places.subarray(0, drawn);
      drawPoints(raster, { places, colours, sizes, order }, square, clip, this.inks(ground, alpha), diameter);
    }
    if (!lit?.length) return;
    const places = map.solid ? this.seenOf(map, look.turn).places : map.places;
    const size = Math.max(2.4 * scale, Math.min(7 * scale, diameter * 1.35));
    drawPoints(raster, { places, colours, sizes: null, order: lit }, square, clip, this.inks(inks, 0.95), size);
  }

  /** Where points of a map are seen: of a solid, from where one looks. */
  placesOf(map: HeadMap, turn: Turn): Uint32Array {
    return map.solid ? this.seenOf(map, turn).places : map.places;
  }

  private solid(
    raster: Raster,
    { map, colours, sizes, side }: Painted,
    square: Box,
    clip: Box,
    look: Look,
    ground: Rgb[],
    alpha: number,
    diameter: number,
  ): void {
    const seen = this.seenOf(map, look.turn);
    let mask: Uint8Array | null = null;
    if (side) {
      mask = new Uint8Array(map.set.count);
      for (const point of side) mask[point] = 1;
    }
    const inks = (share: number) => this.inks(ground, Math.min(0.95, share));
    drawSolid(raster, seen, { colours, sizes }, square, clip, inks, alpha, diameter, mask);
  }

  private seenOf(map: HeadMap, turn: Turn): Seen {
    const before = this.seen.get(map);
    if (before && before.turn.around === turn.around && before.turn.up === turn.up) return before.seen;
    const seen = seenFrom(map.solid as Uint16Array, turn, before?.seen ?? null);
    this.seen.set(map, { turn, seen });
    return seen;
  }

  /** Inks of a few opacities: finer steps cannot be seen. */
  private inks(colours: Rgb[], alpha: number): Inks {
    if (this.mixedFor !== colours) {
      this.mixed.clear();
      this.mixedFor = colours;
    }
    const step = Math.max(1, Math.round(alpha * 32));
    let inks = this.mixed.get(step);
    if (!inks) {
      inks = new Inks(colours, step / 32);
      this.mixed.set(step, inks);
    }
    return inks;
  }

  private faintOf(inks: Rgb[], theme: Theme): Rgb[] {
    let faint = this.faint.get(inks);
    if (!faint) {
      faint = dimmed(inks, theme);
      this.faint.set(inks, faint);
    }
    return faint;
  }
}
