/** Brackets: a line that leaves a column, runs beside it and comes back, with round corners. Arcs of a tree, packed. */

import type { Rgb } from "../theme";
import { fillBox } from "./boxes";
import type { Raster } from "./raster";

export interface Bracket {
  /** Where it begins and ends beside the column, and how far out it runs. */
  from: number;
  to: number;
  base: number;
  reach: number;
}

/** Drawn from `from` to `to` (both in height); `reach` may lie at either side of `base`. An arrow points at `to`. */
export function drawBracket(
  raster: Raster,
  { from, to, base, reach }: Bracket,
  radius: number,
  thickness: number,
  colour: Rgb,
  alpha: number,
): void {
  const out = reach < base ? -1 : 1;
  const round = Math.min(radius, Math.abs(to - from) / 2, Math.abs(reach - base));
  const [top, bottom] = from < to ? [from, to] : [to, from];
  const half = thickness / 2;
  const run = (y: number) => {
    const [left, right] = out < 0 ? [reach + round, base] : [base, reach - round];
    fillBox(raster, { x: left, y: y - half, width: right - left, height: thickness }, colour, alpha);
  };
  run(from);
  run(to);
  fillBox(
    raster,
    { x: reach - half, y: top + round, width: thickness, height: Math.max(0, bottom - top - 2 * round) },
    colour,
    alpha,
  );
  corner(raster, reach - out * round, top + round, round, out, -1, thickness, colour, alpha);
  corner(raster, reach - out * round, bottom - round, round, out, 1, thickness, colour, alpha);
  arrow(raster, base, to, -out, thickness, colour, alpha);
}

/** A quarter of a ring about a point, towards one side (`out`) and up or down. */
function corner(
  raster: Raster,
  x: number,
  y: number,
  radius: number,
  out: number,
  down: number,
  thickness: number,
  colour: Rgb,
  alpha: number,
): void {
  const span = radius + thickness;
  for (let row = Math.floor(y - span); row <= y + span; row++) {
    for (let column = Math.floor(x - span); column <= x + span; column++) {
      const [aside, below] = [(column + 0.5 - x) * out, (row + 0.5 - y) * down];
      if (aside < 0 || below < 0) continue;
      const share = Math.min(1, Math.max(0, thickness / 2 + 0.5 - Math.abs(Math.hypot(aside, below) - radius)));
      if (share > 0) fillBox(raster, { x: column, y: row, width: 1, height: 1 }, colour, alpha * share);
    }
  }
}

/** A small head, its point at the column. */
function arrow(raster: Raster, x: number, y: number, towards: number, size: number, colour: Rgb, alpha: number): void {
  const length = 3.5 * size;
  for (let step = 0; step < length; step += 0.5) {
    const wide = 1.3 * size * (1 - step / length) * 2;
    const left = towards > 0 ? x + step : x - step - 0.5;
    fillBox(raster, { x: left, y: y - wide / 2, width: 0.5, height: wide }, colour, alpha);
  }
}
