/** The numbers of one head (or of a mean of heads) over the tokens as shown: whole rows, or the strongest keys of each.
 *
 *  Row q holds `width` cells; cell r of it is key r, or `keys[q · width + r]` where only the strongest are known (−1:
 *  nothing there). `values` are the numbers as shown, `strength` what is drawn of them, between 0 and 1.
 */
export class Plane {
  private arrivalsStart: Int32Array | null = null;
  private arrivalsCell: Int32Array | null = null;
  private sums: Float32Array | null = null;

  constructor(
    readonly nQueries: number,
    readonly nKeys: number,
    readonly values: Float32Array,
    readonly strength: Float32Array,
    readonly keys: Int32Array | null = null,
    readonly width: number = nKeys,
    /** What a whole row sums to, where only the strongest of it are known; null when that is not known. */
    readonly total: number | null = null,
  ) {}

  get bytes(): number {
    const own = this.values.byteLength + (this.strength === this.values ? 0 : this.strength.byteLength);
    return own + (this.keys ? 3 * this.keys.byteLength : 0);
  }

  keyAt(cell: number): number {
    return this.keys ? (this.keys[cell] as number) : cell % this.width;
  }

  /** The cell of a pair, −1 when it is not among the strongest. */
  cellOf(query: number, key: number): number {
    const start = query * this.width;
    if (!this.keys) return start + key;
    for (let cell = start; cell < start + this.width; cell++) if (this.keys[cell] === key) return cell;
    return -1;
  }

  /** Its number, NaN when it is not known. */
  at(query: number, key: number): number {
    const cell = this.cellOf(query, key);
    return cell < 0 ? Number.NaN : (this.values[cell] as number);
  }

  /** The known cells of one query. */
  row(query: number, visit: (cell: number, key: number) => void): void {
    const start = query * this.width;
    for (let cell = start; cell < start + this.width; cell++) {
      const key = this.keys ? (this.keys[cell] as number) : cell - start;
      if (key >= 0) visit(cell, key);
    }
  }

  /** The known cells of one key. */
  column(key: number, visit: (cell: number, query: number) => void): void {
    if (!this.keys) {
      for (let query = 0; query < this.nQueries; query++) visit(query * this.width + key, query);
      return;
    }
    const { start, cells } = this.arrivals(this.keys);
    for (let i = start[key] as number; i < (start[key + 1] as number); i++) {
      const cell = cells[i] as number;
      visit(cell, Math.floor(cell / this.width));
    }
  }

  /** What each key gets on average over the queries [key]. */
  received(): Float32Array {
    if (this.sums) return this.sums;
    const sums = new Float32Array(this.nKeys);
    const { strength, keys, width } = this;
    for (let query = 0, cell = 0; query < this.nQueries; query++) {
      for (let r = 0; r < width; r++, cell++) {
        const key = keys ? (keys[cell] as number) : r;
        if (key >= 0) sums[key] = (sums[key] as number) + (strength[cell] as number);
      }
    }
    for (let key = 0; key < sums.length; key++) sums[key] = (sums[key] as number) / Math.max(1, this.nQueries);
    this.sums = sums;
    return sums;
  }

  private arrivals(keys: Int32Array): { start: Int32Array; cells: Int32Array } {
    if (this.arrivalsStart && this.arrivalsCell) return { start: this.arrivalsStart, cells: this.arrivalsCell };
    const start = new Int32Array(this.nKeys + 1);
    for (const key of keys) if (key >= 0) start[key + 1] = (start[key + 1] as number) + 1;
    for (let key = 0; key < this.nKeys; key++) start[key + 1] = (start[key + 1] as number) + (start[key] as number);
    const next = start.slice();
    const cells = new Int32Array(keys.length);
    keys.forEach((key, cell) => {
      if (key < 0) return;
      cells[next[key] as number] = cell;
      next[key] = (next[key] as number) + 1;
    });
    this.arrivalsStart = start;
    this.arrivalsCell = cells;
    return { start, cells };
  }
}

/** The mean of several heads of a layer, which are all whole or all of the same few keys a query. */
export function meanOf(planes: Plane[]): Plane {
  const first = planes[0] as Plane;
  if (planes.length === 1) return first;
  if (!first.keys) {
    const values = mean(planes.map((plane) => plane.values));
    const isSame = planes.every((plane) => plane.values === plane.strength);
    return new Plane(
      first.nQueries,
      first.nKeys,
      values,
      isSame ? values : mean(planes.map((plane) => plane.strength)),
    );
  }
  return meanOfFew(planes, first);
}

function mean(arrays: Float32Array[]): Float32Array {
  const average = new Float32Array((arrays[0] as Float32Array).length);
  for (const array of arrays)
    for (let i = 0; i < average.length; i++) average[i] = (average[i] as number) + (array[i] as number);
  for (let i = 0; i < average.length; i++) average[i] = (average[i] as number) / arrays.length;
  return average;
}

/** A key that is not among a head's strongest counts as 0 there. */
function meanOfFew(planes: Plane[], first: Plane): Plane {
  const width = first.width * planes.length;
  const keys = new Int32Array(first.nQueries * width).fill(-1);
  const values = new Float32Array(keys.length);
  const strength = new Float32Array(keys.length);
  for (let query = 0; query < first.nQueries; query++) {
    const cells = new Map<number, number>();
    let next = query * width;
    for (const plane of planes) {
      plane.row(query, (cell, key) => {
        const place = cells.get(key) ?? next++;
        cells.set(key, place);
        keys[place] = key;
        values[place] = (values[place] as number) + (plane.values[cell] as number) / planes.length;
        strength[place] = (strength[place] as number) + (plane.strength[cell] as number) / planes.length;
      });
    }
  }
  return new Plane(first.nQueries, first.nKeys, values, strength, keys, width, first.total);
}
