/** The vectors of one head and the terms of its weights, as they come from the source; and the order of its neurons. */

import type { NeuronProps, SiteProps, VectorsProps } from "../contract";
import type { Selection } from "../selection";
import type { Source } from "../source";
import { floats, type Grid, type Part } from "../wire";

export type Of = VectorsProps["of"];

/** Tokens in one block of vectors; Python's `views/neurons.py` has the same number. */
export const BLOCK = 512;
/** Queries × keys up to which all queries are asked for at once: moving between them then asks for nothing. */
const WHOLE = 2 ** 14;

/** Everything between one query and its output. */
export interface Terms {
  props: NeuronProps;
  index: number;
  query: Float32Array;
  mixed: Float32Array;
  /** Query · key, scaled; after the soft cap; what is added to it. Null where the model has no such thing. */
  dots: Float32Array;
  capped: Float32Array | null;
  bias: Float32Array | null;
  /** 0 where masked; null where nothing is. */
  allowed: Uint8Array | null;
  weights: Float32Array;
  /** The length of each key's value. */
  norms: Float32Array;
  /** |q × k| of each neuron in what is attended to. */
  importance: Float32Array;
  /** The weight that goes to the sink. */
  sink: number | null;
  largest: { product: number; weighted: number };
  /** Of a difference, which all the above then are: what products of both runs are made of. */
  two: { a: Factors; b: Factors; lengths: Float32Array } | null;
}

/** A run's own query, scaled, and weights. */
interface Factors {
  query: Float32Array;
  weights: Float32Array;
}

export async function loadTerms(
  source: Source,
  site: SiteProps,
  head: string,
  index: number,
  signal: AbortSignal,
): Promise<Terms> {
  const whole = `neuron/${head}`;
  const isWhole = source.has && !source.isLive ? source.has(whole) : site.n_queries * site.n_keys <= WHOLE;
  const part = await source.part<NeuronProps>(isWhole ? whole : `${whole}?query=${index}`, signal);
  return termsOf(part, index);
}

export function termsOf({ props, arrays }: Part<NeuronProps>, index: number): Terms {
  const at = index - props.queries[0];
  const row = (name: string): Float32Array | null => {
    const grid = arrays[name];
    if (!grid) return null;
    const width = grid.shape[1] as number;
    return floats(grid, at * width, (at + 1) * width);
  };
  const figure = (name: string): number | null => {
    const grid = arrays[name];
    return grid ? (floats(grid)[at] as number) : null;
  };
  const factors = (side: "a" | "b"): Factors => ({
    query: row(`${side}:query`) as Float32Array,
    weights: row(`${side}:weights`) as Float32Array,
  });
  const { allowed } = arrays;
  const lengths = row("lengths");
  const nKeys = (arrays.dots as Grid).shape[1] as number;
  return {
    props,
    index,
    query: row("query") as Float32Array,
    mixed: row("mixed") as Float32Array,
    dots: row("dots") as Float32Array,
    capped: row("capped"),
    bias: row("bias"),
    allowed: allowed ? (allowed.values as Uint8Array).subarray(at * nKeys, (at + 1) * nKeys) : null,
    weights: row("weights") as Float32Array,
    norms: floats(arrays.norms as Grid),
    importance: row("importance") as Float32Array,
    sink: figure("sink"),
    largest: { product: figure("product_largest") ?? 1, weighted: figure("weighted_largest") ?? 1 },
    two: lengths && { a: factors("a"), b: factors("b"), lengths },
  };
}

interface Block {
  part: Part<VectorsProps>;
  values: Float32Array;
  /** Of a difference: the second run's own. */
  other: Float32Array | null;
}

/** A token's vector in both runs. */
interface Both {
  a: Float32Array;
  b: Float32Array;
}

/** Vectors of one head, a block of tokens at a time: what is looked at is asked for. */
export class Vectors {
  private readonly blocks = new Map<string, Block>();

  constructor(
    private readonly source: Source,
    readonly head: string,
    private readonly site: SiteProps,
  ) {}

  length(of: Of): number {
    return of === "key" || of === "value" ? this.site.n_keys : this.site.n_queries;
  }

  /** The vector of one token; null while it is not there. */
  row(of: Of, index: number): Float32Array | null {
    const block = this.blocks.get(`${of} ${Math.floor(index / BLOCK)}`);
    if (!block) return null;
    const width = (block.part.arrays.vectors as Grid).shape[1] as number;
    const start = (index % BLOCK) * width;
    return block.values.subarray(start, start + width);
  }

  /** Of a difference: the vector of one token in either run. */
  both(of: Of, index: number): Both | null {
    const difference = this.row(of, index);
    const block = this.blocks.get(`${of} ${Math.floor(index / BLOCK)}`);
    if (!difference || !block?.other) return null;
    const start = (index % BLOCK) * difference.length;
    const b = block.other.subarray(start, start + difference.length);
    return { a: difference.map((value, neuron) => value + (b[neuron] as number)), b };
  }

  has(of: Of, first: number, last: number): boolean {
    for (let block = Math.floor(first / BLOCK); block * BLOCK < last; block++) {
      if (!this.blocks.has(`${of} ${block}`)) return false;
    }
    return true;
  }

  /** Tokens first to last (not included) will be looked at. */
  async load(of: Of, first: number, last: number, signal: AbortSignal): Promise<void> {
    const wanted: Promise<void>[] = [];
    for (let block = Math.floor(first / BLOCK); block * BLOCK < last; block++) {
      const name = `${of} ${block}`;
      if (this.blocks.has(name)) continue;
      const rows = `${block * BLOCK}:${Math.min((block + 1) * BLOCK, this.length(of))}`;
      const asked = this.source.part<VectorsProps>(`vectors/${this.head}?of=${of}&rows=${rows}`, signal);
      wanted.push(
        asked.then((part) => {
          const { vectors, other } = part.arrays;
          this.blocks.set(name, { part, values: floats(vectors as Grid), other: other ? floats(other) : null });
        }),
      );
    }
    await Promise.all(wanted);
  }

  /** What is said of all tokens: each neuron's mean, how much it varies, and the size of full colour. */
  about(of: Of): { mean: Float32Array; spread: Float32Array; largest: number } | null {
    for (const [name, { part }] of this.blocks) {
      if (!name.startsWith(`${of} `)) continue;
      const { mean, spread } = part.arrays;
      return { mean: floats(mean as Grid), spread: floats(spread as Grid), largest: part.props.largest };
    }
    return null;
  }
}

/** The neurons in the order that the selection asks for; `products` are those of the key that they are ordered by. */
export function orderOf({ order }: Selection, terms: Terms, products: Float32Array | null): Int32Array {
  const { query, importance } = terms;
  if (order === "contribution") return descending(importance);
  if (order === "token" && products) return descending(products.map(Math.abs));
  return Int32Array.from(query.keys());
}

/** The keys with the most weight, of a difference those whose weight changed most; without those that have none. */
export function strongestKeys({ weights }: Pick<Terms, "weights">, count: number): { key: number; weight: number }[] {
  return Array.from(descending(weights.map(Math.abs)).subarray(0, count), (key) => ({
    key,
    weight: weights[key] as number,
  })).filter(({ weight }) => weight !== 0);
}

/** How much neurons vary over tokens, for their size: 0 for one that is the same whatever the token is. */
export function variation(mean: Float32Array, spread: Float32Array): Float32Array {
  return spread.map(
    (deviation, neuron) => deviation / Math.sqrt((mean[neuron] as number) ** 2 + deviation ** 2 + 1e-24),
  );
}

/** Positions by size, the largest first; of equal ones the lower first. */
export function descending(sizes: Float32Array): Int32Array {
  return Int32Array.from(sizes.keys()).sort((a, b) => (sizes[b] as number) - (sizes[a] as number) || a - b);
}

/** Query × key by neuron, scaled, so that their sum is the score; of a difference, A's less B's. Null while it loads. */
export function product({ query, props, two }: Terms, vectors: Rows, key: number): Float32Array | null {
  const own = vectors.row("key", key);
  if (!two) return own && times(own, query, props.scaling ?? 1);
  const both = vectors.both("key", key);
  return both && less(times(both.a, two.a.query, 1), times(both.b, two.b.query, 1));
}

/** Weight × value by neuron: what a key adds to the output; of a difference, A's less B's. Null while it loads. */
export function weighted({ weights, two }: Terms, vectors: Rows, key: number): Float32Array | null {
  const scaled = (values: Float32Array, by: Float32Array) => values.map((value) => value * (by[key] as number));
  const own = vectors.row("value", key);
  if (!two) return own && scaled(own, weights);
  const both = vectors.both("value", key);
  return both && less(scaled(both.a, two.a.weights), scaled(both.b, two.b.weights));
}

/** The length of weight × value. */
export function lengthOf({ weights, norms, two }: Terms, key: number): number {
  return two ? (two.lengths[key] as number) : (weights[key] as number) * (norms[key] as number);
}

type Rows = Pick<Vectors, "row" | "both">;

function times(values: Float32Array, other: Float32Array, scaling: number): Float32Array {
  return values.map((value, neuron) => value * (other[neuron] as number) * scaling);
}

function less(values: Float32Array, other: Float32Array): Float32Array {
  return values.map((value, neuron) => value - (other[neuron] as number));
}

/** A number to be read off: five digits. */
export function exact(value: number): string {
  if (Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value < 0 ? "−∞" : "∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text = size >= 1e-4 && size < 1e5 ? String(Number(value.toPrecision(5))) : value.toExponential(3);
  return text.replace("-", "−");
}
