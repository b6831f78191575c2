/** Points of an atlas as they are drawn: in an order in which queries and keys take turns, packed for the rasteriser. */

import { shuffledOrder } from "./shuffle";

const FULL = 65535;

export interface CloudRows {
  role: string;
  stack: string;
  /** Rows of the stack's tokens, ascending; of a whole cloud all of them. */
  rows: Int32Array;
}

/** Which points a picture has. Heads with the same clouds share them, with all that follows from tokens alone. */
export class PointSet {
  readonly count: number;
  /** By place in the order of drawing: which cloud, and the row of the token. */
  readonly cloud: Uint8Array;
  readonly row: Int32Array;
  /** By place in the order of drawing: the place in the part. */
  readonly source: Int32Array;
  private readonly starts: number[] = [];
  private readonly places: Int32Array;

  constructor(readonly clouds: CloudRows[]) {
    this.count = clouds.reduce((sum, { rows }) => sum + rows.length, 0);
    this.source = shuffledOrder(this.count);
    this.places = new Int32Array(this.count);
    this.source.forEach((from, place) => {
      this.places[from] = place;
    });
    const cloudOf = new Uint8Array(this.count);
    const rowOf = new Int32Array(this.count);
    let start = 0;
    clouds.forEach(({ rows }, index) => {
      this.starts.push(start);
      cloudOf.fill(index, start, start + rows.length);
      rowOf.set(rows, start);
      start += rows.length;
    });
    this.cloud = cloudOf.map((_, place) => cloudOf[this.source[place] as number] as number);
    this.row = rowOf.map((_, place) => rowOf[this.source[place] as number] as number);
  }

  role(point: number): string {
    return this.clouds[this.cloud[point] as number]?.role ?? "";
  }

  stack(point: number): string {
    return this.clouds[this.cloud[point] as number]?.stack ?? "";
  }

  /** The point of a token in a role; −1 where it is not in the sample. */
  pointOf(role: string, row: number): number {
    const index = this.clouds.findIndex((cloud) => cloud.role === role);
    return index < 0 ? -1 : this.inCloud(index, row);
  }

  private inCloud(index: number, row: number): number {
    const { rows } = this.clouds[index] as CloudRows;
    const isWhole = rows.length > 0 && rows[rows.length - 1] === rows.length - 1;
    const at = isWhole ? row : search(rows, row);
    if (at < 0 || at >= rows.length || rows[at] !== row) return -1;
    return this.places[(this.starts[index] as number) + at] as number;
  }

  /** The points of rows of stacks, in every role that they have: ascending. */
  pointsOf(rowsByStack: Record<string, Int32Array>): Int32Array {
    const points: number[] = [];
    this.clouds.forEach(({ stack }, index) => {
      for (const row of rowsByStack[stack] ?? []) {
        const point = this.inCloud(index, row);
        if (point >= 0) points.push(point);
      }
    });
    return Int32Array.from(points).sort();
  }

  /** Numbers of points, put into the order of drawing. */
  arranged(values: Float32Array): Float32Array {
    const { source } = this;
    return Float32Array.from(source, (from) => values[from] as number);
  }
}

function search(sorted: Int32Array, value: number): number {
  let [low, high] = [0, sorted.length - 1];
  while (low <= high) {
    const middle = (low + high) >> 1;
    const there = sorted[middle] as number;
    if (there === value) return middle;
    if (there < value) low = middle + 1;
    else high = middle - 1;
  }
  return -1;
}

/** The map of one head, packed: shifted to the middle of its square, upwards as in a figure. */
export interface HeadMap {
  set: PointSet;
  /** Two dimensions: x and y of each point. Three: empty, see `solid`. */
  places: Uint32Array;
  solid: Uint16Array | null;
  /** What the cloud takes of its square, as shares: left, top, right, bottom. */
  bounds: [number, number, number, number];
  /** A coordinate is low + step × what is packed; y counts downwards. */
  low: number[];
  step: number;
}

/** Put the map of a head, [point, dim] as it came, into the order of drawing. */
export function headMap(
  set: PointSet,
  values: Uint16Array,
  dims: number,
  low: ArrayLike<number>,
  step: number,
): HeadMap {
  if (values.length !== set.count * dims)
    throw new Error(`${values.length / dims} places came for the ${set.count} points of this head`);
  const ends = endsOf(values, dims);
  const shift = ends.map(([least, most]) => Math.round((FULL - least - most) / 2));
  const lowAt = (axis: number) => (low[axis] ?? 0) - step * (shift[axis] as number);
  const share = (axis: number, end: 0 | 1) => ((ends[axis]?.[end] ?? 0) + (shift[axis] ?? 0)) / FULL;
  const bounds: HeadMap["bounds"] = [share(0, 0), 1 - share(1, 1), share(0, 1), 1 - share(1, 0)];
  const lows = Array.from({ length: dims }, (_, axis) => lowAt(axis));
  const { source, count } = set;
  const [right, up, away] = [shift[0] as number, shift[1] as number, shift[2] ?? 0];
  const shared = { set, bounds, low: lows, step };
  if (dims === 3) {
    const solid = new Uint16Array(3 * count);
    for (let i = 0; i < count; i++) {
      const from = 3 * (source[i] as number);
      solid[3 * i] = (values[from] as number) + right;
      solid[3 * i + 1] = FULL - (values[from + 1] as number) - up;
      solid[3 * i + 2] = (values[from + 2] as number) + away;
    }
    return { ...shared, places: new Uint32Array(0), solid };
  }
  const places = new Uint32Array(count);
  for (let i = 0; i < count; i++) {
    const from = 2 * (source[i] as number);
    places[i] = (((values[from] as number) + right) | ((FULL - (values[from + 1] as number) - up) << 16)) >>> 0;
  }
  return { ...shared, places, solid: null };
}

function endsOf(values: Uint16Array, dims: number): [number, number][] {
  const least = new Array<number>(dims).fill(values.length ? FULL : 0);
  const most = new Array<number>(dims).fill(0);
  for (let i = 0; i < values.length; i += dims) {
    for (let axis = 0; axis < dims; axis++) {
      const value = values[i + axis] as number;
      if (value < (least[axis] as number)) least[axis] = value;
      if (value > (most[axis] as number)) most[axis] = value;
    }
  }
  return least.map((low, axis) => [low, most[axis] as number]);
}
