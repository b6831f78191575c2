/** Cells painted on a matrix: a pattern to look for, with a brush that paints or wipes, and steps that can be undone. */

import type { Reading } from "../data/reading";

/** A stretch of one row: the query, its first key, and the one past the last. */
export type Stretch = [query: number, first: number, last: number];

export class Painting {
  private readonly painted = new Set<number>();
  /** What each stroke changed, the latest last. */
  private strokes: Set<number>[] = [];
  private isWiping = false;
  private last: [number, number] | null = null;

  constructor(
    readonly queries: number,
    readonly keys: number,
    private readonly changed: () => void = () => {},
  ) {}

  get count(): number {
    return this.painted.size;
  }

  get canUndo(): boolean {
    return this.strokes.length > 0;
  }

  has(query: number, key: number): boolean {
    return this.painted.has(query * this.keys + key);
  }

  /** Begin a stroke: it wipes if it begins on a painted cell. */
  begin(query: number, key: number, radius = 0): void {
    this.isWiping = this.has(query, key);
    this.strokes.push(new Set());
    this.last = [query, key];
    this.dab(query, key, radius);
    this.changed();
  }

  /** Go on to a cell, with nothing left out on the way. */
  to(query: number, key: number, radius = 0): void {
    if (!this.last) return;
    const [down, across] = [query - this.last[0], key - this.last[1]];
    const steps = Math.max(Math.abs(down), Math.abs(across));
    for (let step = 1; step <= steps; step++) {
      const share = step / steps;
      this.dab(Math.round(this.last[0] + down * share), Math.round(this.last[1] + across * share), radius);
    }
    this.last = [query, key];
    this.changed();
  }

  end(): void {
    this.last = null;
    if (!this.strokes.at(-1)?.size) this.strokes.pop();
    this.changed();
  }

  undo(): void {
    for (const cell of this.strokes.pop() ?? []) this.flip(cell);
    this.changed();
  }

  clear(): void {
    if (!this.count) return;
    this.strokes.push(new Set(this.painted));
    this.painted.clear();
    this.changed();
  }

  /** Calls with every painted cell. */
  each(tell: (query: number, key: number) => void): void {
    for (const cell of this.painted) tell(Math.floor(cell / this.keys), cell % this.keys);
  }

  /** The painted cells in the model's own positions, as stretches of rows. */
  stretches(queries: Reading, keys: Reading): Stretch[] {
    const rows = new Map<number, Set<number>>();
    this.each((query, key) => {
      for (const row of queries.members[query] ?? []) {
        const columns = rows.get(row) ?? new Set();
        for (const column of keys.members[key] ?? []) columns.add(column);
        rows.set(row, columns);
      }
    });
    const stretches: Stretch[] = [];
    for (const [row, columns] of [...rows].sort(([a], [b]) => a - b)) {
      for (const column of [...columns].sort((a, b) => a - b)) {
        const before = stretches.at(-1);
        if (before && before[0] === row && before[2] === column) before[2]++;
        else stretches.push([row, column, column + 1]);
      }
    }
    return stretches;
  }

  private dab(query: number, key: number, radius: number): void {
    const stroke = this.strokes.at(-1) as Set<number>;
    for (let row = Math.max(0, query - radius); row <= Math.min(this.queries - 1, query + radius); row++) {
      for (let column = Math.max(0, key - radius); column <= Math.min(this.keys - 1, key + radius); column++) {
        const cell = row * this.keys + column;
        if (this.painted.has(cell) !== this.isWiping) continue;
        this.flip(cell);
        stroke.add(cell);
      }
    }
  }

  private flip(cell: number): void {
    if (!this.painted.delete(cell)) this.painted.add(cell);
  }
}
