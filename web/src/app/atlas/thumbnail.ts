/** The cloud of a head as a small picture: a dot per point, queries and keys in their colours. */

import type { AtlasMapsProps, AtlasPlaceProps } from "../../contract";
import type { Rgb } from "../../theme";
import type { Part } from "../../wire";

const MARGIN = 2;

/** Pixels [side, side, RGBA]; null where the head has no map. The longer side of the cloud fills the picture. */
export function thumbnail(
  { arrays }: Part<AtlasMapsProps>,
  { address, clouds }: AtlasPlaceProps,
  colours: { query: Rgb; key: Rgb },
  side: number,
): Uint8ClampedArray<ArrayBuffer> | null {
  const points = arrays[address]?.values;
  if (!points?.length) return null;
  const pixels = new Uint8ClampedArray(side * side * 4);
  const low = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  const high = [0, 0];
  for (let i = 0; i < points.length; i++) {
    const value = points[i] as number;
    low[i % 2] = Math.min(low[i % 2] as number, value);
    high[i % 2] = Math.max(high[i % 2] as number, value);
  }
  const extents = [0, 1].map((axis) => (high[axis] as number) - (low[axis] as number));
  const scale = (side - 2 * MARGIN - 1) / Math.max(...extents, 1);
  const at = (value: number, axis: number) =>
    Math.round((side - 1) / 2 + (value - (low[axis] as number) - (extents[axis] as number) / 2) * scale);
  let point = 0;
  for (const { role, stack } of clouds) {
    const [red, green, blue] = role === "key" ? colours.key : colours.query;
    const count = arrays[`rows:${stack}`]?.values.length ?? 0;
    for (let i = 0; i < count; i++, point++) {
      const x = at(points[2 * point] as number, 0);
      const y = side - 1 - at(points[2 * point + 1] as number, 1);
      pixels.set([red, green, blue, 200], (y * side + x) * 4);
    }
  }
  return pixels;
}
