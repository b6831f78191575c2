/** One layer as it is shown: every head a plane over the tokens as read. Computed from the part that came, once a head. */

import type { LayerProps, SiteProps } from "../contract";
import type { Selection } from "../selection";
import { floats, type Grid, type Part } from "../wire";
import { meanOf, Plane } from "./plane";
import type { Reading } from "./reading";

/** Differences smaller than this are not blown up to full strength: they are next to nothing. */
export const LEAST_DIFFERENCE = 0.01;

export class Layer {
  private readonly planes = new Map<string, Plane>();
  private readonly scale: number;
  /** What is drawn at full strength. */
  readonly full: number;
  readonly isWhole: boolean;

  /** `isRead` when the part came already read by words, or without some tokens. */
  constructor(
    readonly site: SiteProps,
    private readonly part: Part<LayerProps>,
    readonly what: Selection["what"],
    readonly queries: Reading,
    readonly keys: Reading,
    private readonly isRead: boolean,
    /** The numbers are those of one run minus another's. */
    readonly isDifference = false,
  ) {
    this.isWhole = part.props.form === "dense";
    this.full = isDifference ? Math.max(LEAST_DIFFERENCE, this.largest()) : what === "pattern" ? 1 : this.largest();
    this.scale = 1 / Math.max(1e-30, this.full);
  }

  /** How many of the strongest keys of a query are known, where not all are. */
  get kept(): number {
    return this.part.props.n_kept;
  }

  /** Numbers came as bytes, so they are good for pictures; exact ones are asked for. */
  get isCoarse(): boolean {
    return this.weights.code !== "linear";
  }

  get bytes(): number {
    let total = 0;
    for (const plane of this.planes.values()) total += plane.bytes;
    return total;
  }

  head(head: number): Plane {
    return this.remembered(`${head}`, () => (this.isWhole ? this.whole(head) : this.strongest(head)));
  }

  mean(heads: number[]): Plane {
    return this.remembered(`mean ${heads.join()}`, () => meanOf(heads.map((head) => this.head(head))));
  }

  strengthOf(value: number): number {
    return this.isShare ? value : value === Number.NEGATIVE_INFINITY ? 0 : Math.abs(value) * this.scale;
  }

  /** Weights are drawn as strong as they are. */
  private get isShare(): boolean {
    return this.what === "pattern" && !this.isDifference;
  }

  private get weights(): Grid {
    return this.part.arrays.weights as Grid;
  }

  private get norms(): Grid | undefined {
    return this.part.arrays.norms;
  }

  private remembered(name: string, make: () => Plane): Plane {
    const plane = this.planes.get(name) ?? make();
    this.planes.set(name, plane);
    return plane;
  }

  /** What counts as full strength: the largest contribution a key can make, the largest score. */
  private largest(): number {
    let most = 0;
    if (this.what === "contribution" && this.norms && this.part.props.what !== "contribution") {
      for (const norm of floats(this.norms)) if (norm > most) most = norm;
      return most;
    }
    for (const value of floats(this.weights)) {
      if (value !== Number.NEGATIVE_INFINITY && Math.abs(value) > most) most = Math.abs(value);
    }
    return most;
  }

  private whole(head: number): Plane {
    const [, rows, columns] = this.weights.shape as [number, number, number];
    const raw = floats(this.weights, head * rows * columns, (head + 1) * rows * columns);
    const norms = this.normsOf(head, columns);
    const isUntouched = (this.isRead || (this.queries.isPlain && this.keys.isPlain)) && !this.hasOff();
    const values = isUntouched
      ? norms
        ? raw.map((weight, cell) => weight * (norms[cell % columns] as number))
        : raw
      : this.isRead
        ? this.spread(raw, columns)
        : this.regrouped(raw, columns, norms);
    return new Plane(this.queries.texts.length, this.keys.texts.length, values, this.strengths(values));
  }

  private strongest(head: number): Plane {
    const [, rows, width] = this.weights.shape as [number, number, number];
    const raw = floats(this.weights, head * rows * width, (head + 1) * rows * width);
    const columns = (this.part.arrays.keys as Grid).values.subarray(head * rows * width, (head + 1) * rows * width);
    const toQuery = places(this.queries, rows, this.isRead);
    const toKey = places(this.keys, 0, this.isRead);
    const n = this.queries.texts.length;
    const keys = new Int32Array(n * width).fill(-1);
    const values = new Float32Array(n * width);
    const norms = this.normsOf(head, this.norms?.shape[1] ?? 0);
    for (let row = 0; row < rows; row++) {
      for (let rank = 0; rank < width; rank++) {
        const key = columns[row * width + rank] as number;
        const weight = raw[row * width + rank] as number;
        // A query that sees fewer keys than are kept has none for the rest: a weight of 0, or not a number.
        if (key < 0 || !(this.what === "scores" ? Number.isFinite(weight) : this.isDifference ? weight : weight > 0))
          continue;
        const place = (toQuery[row] as number) * width + rank;
        keys[place] = toKey[key] ?? -1;
        values[place] = norms ? weight * (norms[key] as number) : weight;
      }
    }
    const total = this.isShare ? 1 : null;
    return new Plane(n, this.keys.texts.length, values, this.strengths(values), keys, width, total);
  }

  private normsOf(head: number, columns: number): Float32Array | null {
    if (this.what !== "contribution" || !this.norms || this.part.props.what === "contribution") return null;
    return floats(this.norms, head * columns, (head + 1) * columns);
  }

  private hasOff(): boolean {
    return this.queries.isOff.includes(true) || this.keys.isOff.includes(true);
  }

  /** Rows and columns put where their tokens are shown, with nothing at those switched off. */
  private spread(raw: Float32Array, columns: number): Float32Array {
    const width = this.keys.texts.length;
    const toQuery = places(this.queries, raw.length / columns, true);
    const toKey = places(this.keys, columns, true);
    const values = new Float32Array(this.queries.texts.length * width);
    raw.forEach((weight, cell) => {
      values[(toQuery[Math.floor(cell / columns)] as number) * width + (toKey[cell % columns] as number)] = weight;
    });
    return values;
  }

  /** Sum over the keys of a group, bring what is left back to one, mean over the queries of a group. */
  private regrouped(raw: Float32Array, columns: number, norms: Float32Array | null): Float32Array {
    const width = this.keys.texts.length;
    const values = new Float32Array(this.queries.texts.length * width);
    // Scores are no shares of anything: tokens can be left out, but nothing is renormalised.
    const isShare = this.what !== "scores" && this.keys.isPartial && !this.isDifference;
    const { groupOf } = this.keys;
    const sums = new Float64Array(width);
    this.queries.kept.forEach((group, query) => {
      for (const position of group) {
        sums.fill(0);
        let left = 0;
        for (let column = 0, cell = position * columns; column < columns; column++, cell++) {
          const key = groupOf[column] as number;
          if (key < 0) continue;
          const weight = raw[cell] as number;
          left += weight;
          sums[key] = (sums[key] as number) + (norms ? weight * (norms[column] as number) : weight);
        }
        const share = 1 / group.length / (isShare ? Math.max(left, 1e-30) : 1);
        for (let key = 0, cell = query * width; key < width; key++, cell++) {
          values[cell] = (values[cell] as number) + (sums[key] as number) * share;
        }
      }
    });
    return values;
  }

  private strengths(values: Float32Array): Float32Array {
    if (this.isShare) return values;
    const { scale } = this;
    return values.map((value) => (value === Number.NEGATIVE_INFINITY ? 0 : Math.abs(value) * scale));
  }
}

/** Where the rows (or columns) of a part are shown, at least `count` of them: those read already skip what is switched off. */
function places(reading: Reading, count: number, isRead: boolean): number[] {
  const all = reading.texts.map((_, index) => index);
  const positions = isRead ? all.filter((index) => !reading.isOff[index]) : all;
  if (positions.length < count) throw new Error(`${count} tokens came for the ${positions.length} that are shown`);
  return positions;
}
