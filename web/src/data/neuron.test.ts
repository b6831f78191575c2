import { describe, expect, test } from "vitest";
import type { NeuronProps, VectorsProps } from "../contract";
import { DEFAULT } from "../selection";
import type { Source } from "../source";
import type { Grid, Part } from "../wire";
import {
  descending,
  exact,
  lengthOf,
  loadTerms,
  orderOf,
  product,
  strongestKeys,
  termsOf,
  Vectors,
  variation,
  weighted,
} from "./neuron";
import { layer } from "./trace.fixture";

const grid = (shape: number[], values: number[]): Grid => ({
  dtype: "float32",
  shape,
  code: "linear",
  values: Float32Array.from(values),
});

const props: NeuronProps = {
  head: "L0H1",
  queries: [0, 2],
  dim: 2,
  value_dim: 2,
  scaling: 0.5,
  softcap: null,
  key_head: 0,
  n_key_heads: 1,
  bias: "",
  sink: null,
  no_terms: "",
  is_output_edited: false,
  notes: [],
  largest: { query: 1, key: 1, value: 1, mixed: 1 },
};

const part: Part<NeuronProps> = {
  kind: "neuron",
  props,
  arrays: {
    query: grid([2, 2], [1, 2, 3, -4]),
    mixed: grid([2, 2], [0, 0, 1, 1]),
    dots: grid([2, 3], [1, 2, 3, 4, 5, 6]),
    weights: grid([2, 3], [1, 0, 0, 0.5, 0.25, 0.25]),
    norms: grid([3], [1, 2, 3]),
    importance: grid([2, 2], [1, 2, 7, 7]),
    allowed: { dtype: "uint8", shape: [2, 3], code: "linear", values: Uint8Array.from([1, 0, 0, 1, 1, 1]) },
    product_largest: grid([2], [4, 5]),
    weighted_largest: grid([2], [6, 7]),
  },
};

describe("terms of one query", () => {
  const terms = termsOf(part, 1);

  test("are its rows of the part", () => {
    expect([...terms.dots]).toEqual([4, 5, 6]);
    expect([...(terms.allowed ?? [])]).toEqual([1, 1, 1]);
    expect([...(termsOf(part, 0).allowed ?? [])]).toEqual([1, 0, 0]);
    expect(terms.largest).toEqual({ product: 5, weighted: 7 });
    expect([terms.capped, terms.bias, terms.sink]).toEqual([null, null, null]);
  });

  test("of a part that begins later are counted from there", () => {
    const later = { ...part, props: { ...props, queries: [7, 9] as [number, number] } };
    expect([...termsOf(later, 8).query]).toEqual([3, -4]);
  });

  test("products add up to the score", () => {
    const rows = { row: () => Float32Array.from([2, 1]), both: () => null };
    expect([...(product(terms, rows, 0) ?? [])]).toEqual([3, -2]);
    expect([...(weighted(terms, rows, 1) ?? [])]).toEqual([0.5, 0.25]);
    expect(lengthOf(terms, 2)).toBe(0.75);
  });

  test("of two runs, products are subtracted, not what they are made of", () => {
    const sides = {
      lengths: grid([2, 3], [0, 0, 0, 1, 2, 3]),
      "a:query": grid([2, 2], [0, 0, 1, 2]),
      "b:query": grid([2, 2], [0, 0, 3, 4]),
      "a:weights": grid([2, 3], [0, 0, 0, 1, 0, 0]),
      "b:weights": grid([2, 3], [0, 0, 0, 0.5, 0, 0]),
    };
    const two = termsOf({ ...part, arrays: { ...part.arrays, ...sides } }, 1);
    const both = { a: Float32Array.from([10, 10]), b: Float32Array.from([1, 2]) };
    const rows = { row: () => null, both: () => both };
    expect([...(product(two, rows, 0) ?? [])]).toEqual([7, 12]); // 10·1 − 1·3, 10·2 − 2·4
    expect([...(weighted(two, rows, 0) ?? [])]).toEqual([9.5, 9]);
    expect(lengthOf(two, 2)).toBe(3);
  });

  test("neurons are ordered; of equal ones the lower comes first", () => {
    const by = (order: "index" | "contribution" | "token") => [
      ...orderOf({ ...DEFAULT, order }, terms, Float32Array.from([3, -4])),
    ];
    expect(by("index")).toEqual([0, 1]);
    expect(by("contribution")).toEqual([0, 1]);
    expect(by("token")).toEqual([1, 0]);
    expect([...descending(Float32Array.from([1, 3, 3]))]).toEqual([1, 2, 0]);
  });
});

test("few queries are asked for at once, many one by one, and a file is asked for what it has", async () => {
  const asked: string[] = [];
  const source = (has?: (key: string) => boolean): Source => ({
    isLive: !has,
    part: async (key: string) => {
      asked.push(key);
      return part as never;
    },
    ...(has ? { has } : {}),
  });
  const { signal } = new AbortController();
  await loadTerms(source(), layer("L0", 100), "L0H1", 1, signal);
  await loadTerms(source(), layer("L0", 1000), "L0H1", 1, signal);
  await loadTerms(
    source((key) => key === "neuron/L0H1"),
    layer("L0", 300),
    "L0H1",
    1,
    signal,
  );
  expect(asked).toEqual(["neuron/L0H1", "neuron/L0H1?query=1", "neuron/L0H1"]);
});

test("vectors come in blocks, each once", async () => {
  const asked: string[] = [];
  const source: Source = {
    isLive: true,
    part: async (key: string) => {
      asked.push(key);
      const [first, last] = (/rows=(\d+):(\d+)/.exec(key) ?? []).slice(1).map(Number) as [number, number];
      const values = Array.from({ length: last - first }, (_, index) => first + index);
      const about: VectorsProps = { head: "L0H0", of: "key", rows: [first, last], n_tokens: 600, largest: 2 };
      const arrays = { vectors: grid([last - first, 1], values), mean: grid([1], [3]), spread: grid([1], [4]) };
      return { kind: "vectors", props: about, arrays } as never;
    },
  };
  const vectors = new Vectors(source, "L0H0", layer("L0", 600));
  const { signal } = new AbortController();
  expect(vectors.row("key", 3)).toBe(null);
  await vectors.load("key", 0, 20, signal);
  await vectors.load("key", 10, 600, signal);
  expect(asked).toEqual(["vectors/L0H0?of=key&rows=0:512", "vectors/L0H0?of=key&rows=512:600"]);
  expect(vectors.row("key", 599)?.[0]).toBe(599);
  expect(vectors.has("key", 0, 600)).toBe(true);
  expect(vectors.has("value", 0, 1)).toBe(false);
  const about = vectors.about("key");
  expect(about && [...variation(about.mean, about.spread)][0]).toBeCloseTo(0.8);
});

test("numbers are written to be read off", () => {
  expect(exact(-1.234567)).toBe("−1.2346");
  expect(exact(0)).toBe("0");
  expect(exact(Number.NEGATIVE_INFINITY)).toBe("−∞");
  expect(exact(0.0000012345)).toBe(
    "1.235e−6".replace("1.235", (0.0000012345).toExponential(3).split("e")[0] as string),
  );
});

test("the strongest keys are sorted by absolute weight, and keys of weight 0 are left out", () => {
  const weights = Float32Array.of(0.125, 0, 0.5, -0.25, 0);
  expect(strongestKeys({ weights }, 2)).toEqual([
    { key: 2, weight: 0.5 },
    { key: 3, weight: -0.25 },
  ]);
  expect(strongestKeys({ weights }, 9).map(({ key }) => key)).toEqual([2, 3, 0]);
});
