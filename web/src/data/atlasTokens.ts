/** The tokens of one stack of an atlas: their texts, places and all that points can be coloured by. */

import type { AtlasTokensProps } from "../contract";
import { floats, type Grid, type Part } from "../wire";

const SPECIAL = 1;
const PUNCTUATION = 2;

export class AtlasTokens {
  readonly stack: string;
  readonly count: number;
  private readonly arrays: Record<string, Grid>;
  private readonly texts: string[];
  readonly tables: Record<string, string[]>;

  constructor({ props, arrays }: Part<AtlasTokensProps>) {
    this.stack = props.stack;
    this.count = props.n_tokens;
    this.texts = props.texts;
    this.tables = props.tables;
    this.arrays = arrays;
  }

  has(column: string): boolean {
    return column in this.arrays;
  }

  /** A column of whole numbers: −1 where a token has none. */
  whole(column: string): Int32Array {
    return (this.arrays[column] as Grid).values as Int32Array;
  }

  /** A column of numbers, NaN where a token has none. */
  numbers(column: string): Float32Array {
    const grid = this.arrays[column] as Grid;
    if (grid.values instanceof Float32Array) return floats(grid);
    return Float32Array.from(grid.values, (value) => (value < 0 ? Number.NaN : value));
  }

  text(row: number): string {
    return this.texts[this.whole("text")[row] as number] ?? "";
  }

  /** A text by its code. */
  textOf(code: number): string {
    return this.texts[code] ?? "";
  }

  at(column: string, row: number): number {
    return (this.arrays[column]?.values[row] as number | undefined) ?? -1;
  }

  isSpecial(row: number): boolean {
    return (this.at("flags", row) & SPECIAL) !== 0 && this.has("flags");
  }

  isPunctuation(row: number): boolean {
    return (this.at("flags", row) & PUNCTUATION) !== 0 && this.has("flags");
  }

  /** The rows of an example: the first, and the first after it. */
  rowsOf(example: number): [number, number] {
    const examples = this.whole("example");
    return [firstFrom(examples, example), firstFrom(examples, example + 1)];
  }
}

/** The first place of a sorted column that is not below a value. */
function firstFrom(sorted: Int32Array, value: number): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] as number) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
