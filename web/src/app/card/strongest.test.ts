import { expect, test } from "vitest";
import { layer, trace } from "../../data/trace.fixture";
import type { Source } from "../../source";
import { strongest } from "./strongest";

const WEIGHTS = [
  [1, 0, 0, 0],
  [0.9, 0.1, 0, 0],
  [0.2, 0.7, 0.1, 0],
  [0.1, 0.2, 0.4, 0.3],
];
const source: Source = {
  isLive: true,
  part: async <Props>() => ({
    kind: "layer",
    props: { site: "L0", what: "pattern", form: "dense", by: "tokens", kept: 4, queries: [], keys: [] } as Props,
    arrays: {
      weights: { dtype: "float32", shape: [1, 4, 4], code: "linear", values: Float32Array.from(WEIGHTS.flat()) },
    },
  }),
};
const site = layer("L0", 4, { n_heads: 1 });
const find = (count: number, from: number) =>
  strongest(source, trace(), site, 0, count, from, new AbortController().signal);

test("the strongest come first, without the query that sees itself alone", async () => {
  expect((await find(3, 0)).map((pair) => `${pair.from} → ${pair.to}`)).toEqual([
    "the → <s>",
    "cat → the",
    "sat → cat",
  ]);
});

test("the first token can be left out", async () => {
  expect((await find(2, 1)).map((pair) => [pair.query, pair.key])).toEqual([
    [2, 1],
    [3, 2],
  ]);
});

test("tokens with the same text carry their positions, others do not", async () => {
  const same = trace();
  for (const stack of same.stacks) stack.texts = ["<s>", "on", "and", "on"];
  const pairs = await strongest(source, same, site, 0, 3, 0, new AbortController().signal);
  expect(pairs.map(({ from, fromAt, to, toAt }) => [from, fromAt, to, toAt])).toEqual([
    ["on", 1, "<s>", null],
    ["and", null, "on", 1],
    ["on", 3, "and", null],
  ]);
});
