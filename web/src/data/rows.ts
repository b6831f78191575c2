/** Exact numbers of one token, for where a layer came as its strongest keys, or as bytes. */

import type { RowProps } from "../contract";
import type { Side } from "../selection";
import type { Source } from "../source";
import { floats, type Grid } from "../wire";
import type { Loaded } from "./load";
import type { Reading } from "./reading";

/** Numbers of one token over the tokens of the other side, by head. */
export type Exact = (head: number) => Float32Array;

/** Whether there is anything more exact to ask for. */
export function isInexact({ layer }: Loaded, source: Source): boolean {
  return source.isLive && !layer.site.no_weights && (!layer.isWhole || layer.isCoarse);
}

export async function exactRow(
  source: Source,
  { layer, how }: Loaded,
  side: Side,
  index: number,
  signal: AbortSignal,
): Promise<Exact> {
  const [own, other] = side === "query" ? [layer.queries, layer.keys] : [layer.keys, layer.queries];
  const place = counting(own).indexOf(index);
  const part = await source.part<RowProps>(`row/${layer.site.site}?${side}=${place}&what=${layer.what}${how}`, signal);
  const grid = part.arrays.weights as Grid;
  const targets = counting(other);
  const width = grid.shape[1] as number;
  return (head) => {
    const raw = floats(grid, head * width, (head + 1) * width);
    const row = new Float32Array(other.texts.length);
    targets.forEach((target, at) => {
      row[target] = raw[at] as number;
    });
    return row;
  };
}

/** The shown tokens that count, in order: the source knows only of them. */
function counting(reading: Reading): number[] {
  return reading.texts.flatMap((_, index) => (reading.isOff[index] ? [] : [index]));
}
