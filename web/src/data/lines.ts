/** Which lines of a head are drawn. Every filter comes down to the least strength drawn of each query, so that asking
 *  for one line is one comparison: nothing is computed again when the pointer moves. */

import type { Selection, Side } from "../selection";
import type { Plane } from "./plane";
import type { Reading } from "./reading";

type Filter = Pick<Selection, "filter" | "threshold" | "mass" | "top">;

/** One blend of an opacity below this changes no 8-bit pixel. */
export const SEEN = 1 / 510;

export class Lines {
  /** The least strength drawn of each query, Infinity where none is. */
  private readonly least: Float32Array;
  /** Of several cells with just that strength, the last that is drawn (as its place in the row). */
  private readonly last: Int32Array;
  readonly count: number;
  /** The strength from which lines are drawn, where it is the same for all queries; null where they are ranked. */
  readonly floor: number | null;

  constructor(
    readonly plane: Plane,
    filter: Filter,
    nActive: number,
    readonly between: Between,
  ) {
    const { nQueries, width } = plane;
    this.least = new Float32Array(nQueries);
    this.last = new Int32Array(nQueries).fill(width);
    const seen = nActive * SEEN;
    const floor = filter.filter === "threshold" ? Math.max(filter.threshold, seen) : seen;
    const isRanked = filter.filter === "mass" || filter.filter === "top";
    this.floor = isRanked ? null : floor;
    const scratch = new Float32Array(isRanked ? width : 0);
    let count = 0;
    for (let query = 0; query < nQueries; query++) {
      if (!between.queries[query]) {
        this.least[query] = Number.POSITIVE_INFINITY;
        continue;
      }
      if (isRanked) this.rank(query, filter, scratch);
      else this.least[query] = Math.fround(floor);
      count += this.countOf(query);
    }
    this.count = count;
  }

  has(cell: number, query: number, key: number): boolean {
    const strength = this.plane.strength[cell] as number;
    const least = this.least[query] as number;
    if (strength < least || !this.between.keys[key]) return false;
    return strength > least || cell - query * this.plane.width <= (this.last[query] as number);
  }

  private countOf(query: number): number {
    const { plane } = this;
    const { strength, keys, width } = plane;
    const least = this.least[query] as number;
    const start = query * width;
    let count = 0;
    for (let cell = start; cell < start + width; cell++) {
      if ((strength[cell] as number) < least) continue;
      const key = keys ? (keys[cell] as number) : cell - start;
      if (key >= 0 && this.has(cell, query, key)) count++;
    }
    return count;
  }

  private rank(query: number, filter: Filter, scratch: Float32Array): void {
    const { strength, keys, width, total: whole } = this.plane;
    const allowed = this.between.keys;
    const isMass = filter.filter === "mass";
    const start = query * width;
    let known = 0;
    let elsewhere = 0;
    for (let cell = start; isMass && cell < start + width; cell++) {
      const key = keys ? (keys[cell] as number) : cell - start;
      if (key < 0) continue;
      if (allowed[key]) known += strength[cell] as number;
      else elsewhere += strength[cell] as number;
    }
    // Where only the strongest are known, the share is one of all that goes to keys that count.
    const total = whole === null ? known : Math.max(known, whole - elsewhere);
    // Cells below this are together less than what may be missing: none of them can be needed.
    const needless = isMass && whole === null ? ((1 - filter.mass) * total) / width : 0;
    let size = 0;
    for (let cell = start; cell < start + width; cell++) {
      const weight = strength[cell] as number;
      const key = keys ? (keys[cell] as number) : cell - start;
      if (weight > 0 && weight >= needless && key >= 0 && allowed[key]) scratch[size++] = weight;
    }
    const need = isMass ? filter.mass * total - 1e-6 : filter.top;
    if (!size || need <= 0) {
      this.least[query] = Number.POSITIVE_INFINITY;
      return;
    }
    const cut = cutOff(scratch, size, need, isMass);
    this.least[query] = cut.least;
    if (cut.ties === Number.POSITIVE_INFINITY) return;
    let ties = cut.ties;
    this.plane.row(query, (cell, key) => {
      if (ties <= 0 || !this.between.keys[key] || this.plane.strength[cell] !== cut.least) return;
      if (--ties === 0) this.last[query] = cell - query * this.plane.width;
    });
  }
}

/** The strongest numbers that together are `need` (in count, or in sum): the least of them, and how many of that one.
 *  Quickselect, as sorting every row would take longer than drawing it. */
export function cutOff(
  values: Float32Array,
  size: number,
  need: number,
  isMass: boolean,
): { least: number; ties: number } {
  let low = 0;
  let high = size;
  let taken = 0;
  while (low < high) {
    const pivot = values[(low + high) >> 1] as number;
    let above = low;
    let below = high;
    let at = low;
    let mass = 0;
    while (at < below) {
      const value = values[at] as number;
      if (value > pivot) {
        mass += value;
        values[at++] = values[above] as number;
        values[above++] = value;
      } else if (value < pivot) {
        values[at] = values[--below] as number;
        values[below] = value;
      } else at++;
    }
    const greater = isMass ? mass : above - low;
    const equal = isMass ? (below - above) * pivot : below - above;
    if (taken + greater >= need) high = above;
    else if (taken + greater + equal >= need) {
      const rest = need - taken - greater;
      return { least: pivot, ties: isMass ? Math.ceil(rest / pivot) : rest };
    } else {
      taken += greater + equal;
      low = below;
    }
  }
  return { least: 1e-45, ties: Number.POSITIVE_INFINITY };
}

/** Which queries and keys lines may run between: those of one sentence of a pair, those that are not switched off. */
export interface Between {
  queries: Uint8Array;
  keys: Uint8Array;
}

export function betweenOf(queries: Reading, keys: Reading, pair: Selection["pair"]): Between {
  const allowed = (reading: Reading, segment: string | undefined) =>
    Uint8Array.from(reading.segments, (name, index) =>
      !reading.isOff[index] && (segment === undefined || name === segment) ? 1 : 0,
    );
  return {
    queries: allowed(queries, pair === "all" ? undefined : pair[0]),
    keys: allowed(keys, pair === "all" ? undefined : pair[1]),
  };
}

/** How many keys each query can see, from the first on: those that begin no later than the query ends. */
export function reachOf(queries: Reading, keys: Reading, isCausal: boolean): Int32Array {
  const n = keys.texts.length;
  if (!isCausal) return new Int32Array(queries.texts.length).fill(n);
  let key = 0;
  return Int32Array.from(queries.members, (group) => {
    const end = group.at(-1) ?? -1;
    while (key < n && ((keys.members[key] as number[])[0] as number) <= end) key++;
    return key;
  });
}

/** How many lines there could be: pairs that the mask allows; those of one token, where one is given. */
export function possible(reach: Int32Array, between: Between, token: { side: Side; index: number } | null): number {
  const before = new Int32Array(between.keys.length + 1);
  between.keys.forEach((isAllowed, key) => {
    const counts = token?.side !== "key" || token.index === key;
    before[key + 1] = (before[key] as number) + (counts ? isAllowed : 0);
  });
  let total = 0;
  reach.forEach((seen, query) => {
    if (token?.side === "query" && token.index !== query) return;
    if (between.queries[query]) total += before[seen] as number;
  });
  return total;
}
