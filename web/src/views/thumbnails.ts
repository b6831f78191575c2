/** The small pictures of heads, as lines, from maps of bytes. */

import type { Box } from "../marks/cells";
import { Curves } from "../marks/lines";
import type { Raster } from "../marks/raster";
import type { Theme } from "../theme";
import type { Grid } from "../wire";

const LINE = 51; // bytes: lines are drawn from a weight of 0.04 on
const NONE = 128; // the byte of no difference

/** Of a difference: how far its bytes are from nothing, at most. */
export function furthest(maps: Record<string, Grid>): number {
  let most = 0;
  for (const { values } of Object.values(maps)) for (const byte of values) most = Math.max(most, Math.abs(byte - NONE));
  return most;
}

/** One line for each dot of the map that is strong enough. */
export function drawMapLines(raster: Raster, map: Grid, offset: number, box: Box, theme: Theme, scale: number): void {
  const [, rows, columns] = map.shape as [number, number, number];
  const curves = new Curves(raster, box.x + 1, box.x + box.width - 1, "across", box.y, box.y + box.height);
  const bytes = map.values as Uint8Array;
  for (let row = 0, cell = offset; row < rows; row++) {
    const from = box.y + ((row + 0.5) * box.height) / rows;
    for (let column = 0; column < columns; column++, cell++) {
      const byte = bytes[cell] as number;
      if (byte < LINE) continue;
      const to = box.y + ((column + 0.5) * box.height) / columns;
      curves.draw(from, to, (byte / 255) ** 2 * 0.6, scale);
    }
  }
  curves.flush(theme.ramp[2]);
}

/** The same of a difference: those of each sign in its colour, as opaque as their share of the largest. */
export function drawSignedLines(
  raster: Raster,
  map: Grid,
  offset: number,
  box: Box,
  theme: Theme,
  scale: number,
  most: number,
): void {
  const [, rows, columns] = map.shape as [number, number, number];
  for (const [sign, colour] of [
    [-1, theme.negative],
    [1, theme.positive],
  ] as const) {
    const curves = new Curves(raster, box.x + 1, box.x + box.width - 1, "across", box.y, box.y + box.height);
    for (let cell = 0; cell < rows * columns; cell++) {
      const share = (((map.values[offset + cell] as number) - NONE) * sign) / most;
      if (share < 0.2) continue;
      const from = box.y + ((Math.floor(cell / columns) + 0.5) * box.height) / rows;
      const to = box.y + (((cell % columns) + 0.5) * box.height) / columns;
      curves.draw(from, to, Math.min(1, share * share), scale);
    }
    curves.flush(colour);
  }
}
