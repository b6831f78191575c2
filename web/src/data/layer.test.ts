/** Exact against patterns made by hand; the same rules as Python's `traces/pattern_reading.py`. */

import { describe, expect, it } from "vitest";
import type { LayerProps, SiteProps, StackProps } from "../contract";
import type { Selection } from "../selection";
import type { Grid, Part } from "../wire";
import { Layer } from "./layer";
import { readingOf } from "./reading";

const stack: StackProps = {
  name: "model",
  kind: "text",
  grid: null,
  texts: ["<s>", "a", "b", "c"],
  ids: [0, 1, 2, 3],
  special: [0],
  words: [null, 0, 0, 1],
  sentences: [null, 0, 0, 0],
  segments: ["A", "A", "A", "A"],
  spaces: [3],
  looks: "",
  replaced: [],
  boxes: [],
  answer: null,
};
const site: SiteProps = {
  site: "L0",
  stack: "model",
  kind: "self",
  layer: 0,
  n_heads: 2,
  n_queries: 4,
  n_keys: 4,
  key_stack: "model",
  is_causal: false,
  no_weights: "",
  no_scores: "",
  no_contributions: "",
  no_neurons: "",
  window: 0,
  global_tokens: [],
  no_token_edits: "",
  grid: null,
  places: [],
  n_experts: 0,
};
// prettier-ignore
const FIRST = [1, 0, 0, 0, 0.5, 0.5, 0, 0, 0.2, 0.2, 0.6, 0, 0.1, 0.2, 0.3, 0.4];
const SECOND = FIRST.map((_, cell) => (cell % 4 === 0 ? 0.4 : 0.2));

function grid(values: number[], shape: number[]): Grid {
  return { dtype: "float32", shape, code: "linear", values: Float32Array.from(values) };
}

function dense(arrays: Record<string, Grid> = {}, what: LayerProps["what"] = "pattern"): Part<LayerProps> {
  const props: LayerProps = { site: "L0", what, form: "dense", by: "tokens", n_kept: 4, queries: [], keys: [] };
  return { kind: "layer", props, arrays: { weights: grid([...FIRST, ...SECOND], [2, 4, 4]), ...arrays } };
}

function layer(
  how: { by?: Selection["by"]; hide?: Selection["hide"]; off?: string[] } = {},
  what: Selection["what"] = "pattern",
  part = dense(),
  isRead = false,
): Layer {
  const reading = readingOf(stack, 4, { by: "tokens", hide: [], off: [], ...how });
  return new Layer(site, part, what, reading, reading, isRead);
}

const rounded = (values: Float32Array) => Array.from(values, (value) => Math.round(value * 1e6) / 1e6);

describe("a layer", () => {
  it("gives its heads as they came", () => {
    expect(rounded(layer().head(0).values)).toEqual(FIRST);
    expect(layer().head(1).at(2, 0)).toBeCloseTo(0.4);
  });

  it("sums over the keys of a word and averages over its queries", () => {
    const plane = layer({ by: "words" }).head(0);
    expect(plane.nQueries).toBe(3);
    expect(rounded(plane.values)).toEqual([1, 0, 0, 0.35, 0.65, 0, 0.1, 0.5, 0.4]);
  });

  it("brings rows back to one where tokens are hidden, before averaging", () => {
    const plane = layer({ by: "words", hide: ["special"] }).head(0);
    // a: 0.5 of 0.5 on a, b: 0.8 of 0.8 on the word; c: 0.5 and 0.4 of 0.9.
    expect(rounded(plane.values)).toEqual([
      1,
      0,
      rounded(Float32Array.of(5 / 9))[0],
      rounded(Float32Array.of(4 / 9))[0],
    ]);
  });

  it("leaves nothing at tokens that are switched off, and keeps their place", () => {
    const plane = layer({ off: ["model:0"] }).head(0);
    expect(plane.nQueries).toBe(4);
    expect(rounded(plane.values.subarray(0, 4))).toEqual([0, 0, 0, 0]);
    expect(rounded(plane.values.subarray(4, 8))).toEqual([0, 1, 0, 0]);
    expect(rounded(plane.values.subarray(8, 12))).toEqual([0, 0.25, 0.75, 0]);
  });

  it("averages heads", () => {
    expect(rounded(layer().mean([0, 1]).values.subarray(0, 4))).toEqual([0.7, 0.1, 0.1, 0.1]);
  });

  it("weighs by the norm of what each key adds; strength is the share of the largest norm", () => {
    const norms = grid([1, 2, 4, 1, 1, 1, 1, 1], [2, 4]);
    const plane = layer({}, "contribution", dense({ norms })).head(0);
    expect(rounded(plane.values.subarray(8, 12))).toEqual([0.2, 0.4, 2.4, 0]);
    expect(rounded(plane.strength.subarray(8, 12))).toEqual([0.05, 0.1, 0.6, 0]);
    const hidden = layer({ hide: ["first"] }, "contribution", dense({ norms })).head(0);
    // Renormalised by the weight that is left (0.8), not by the contribution.
    expect(rounded(hidden.values.subarray(3, 6))).toEqual([0.5, 3, 0]);
  });

  it("shows scores with their sign, and nothing where they are masked", () => {
    const weights = grid([-4, 2, Number.NEGATIVE_INFINITY, 0, ...new Array(28).fill(1)], [2, 4, 4]);
    const plane = layer({}, "scores", dense({ weights }, "scores")).head(0);
    expect(rounded(plane.strength.subarray(0, 4))).toEqual([1, 0.5, 0, 0]);
    expect(plane.at(0, 0)).toBe(-4);
  });

  it("reads bytes on the root scale and half floats", () => {
    const bytes: Grid = { dtype: "uint8", code: "sqrt", shape: [2, 4, 4], values: new Uint8Array(32).fill(51) };
    expect(
      layer({}, "pattern", dense({ weights: bytes }))
        .head(1)
        .at(3, 3),
    ).toBeCloseTo(0.04);
    const halves: Grid = {
      dtype: "float16",
      code: "linear",
      shape: [2, 4, 4],
      values: new Uint16Array(32).fill(0x3800),
    };
    expect(
      layer({}, "pattern", dense({ weights: halves }))
        .head(1)
        .at(3, 3),
    ).toBe(0.5);
  });

  it("puts what came read already where its tokens are shown", () => {
    const weights = grid([0.25, 0.75, 0.5, 0.5, 1, 0, 0, 1], [2, 2, 2]);
    const plane = layer({ by: "words", off: ["model:0"] }, "pattern", dense({ weights }), true).head(0);
    expect(rounded(plane.values)).toEqual([0, 0, 0, 0, 0.25, 0.75, 0, 0.5, 0.5]);
  });
});

describe("a layer of which the strongest keys are known", () => {
  const keys: Grid = {
    dtype: "int32",
    code: "linear",
    shape: [2, 4, 2],
    values: Int32Array.from([0, 0, 1, 0, 2, 0, 3, 2, 0, 1, 0, 1, 0, 1, 0, 1]),
  };
  const weights = grid([1, 0, 0.5, 0.5, 0.6, 0.2, 0.4, 0.3, ...new Array(8).fill(0.25)], [2, 4, 2]);
  const part: Part<LayerProps> = {
    kind: "layer",
    props: { site: "L0", what: "pattern", form: "sparse", by: "tokens", n_kept: 2, queries: [], keys: [] },
    arrays: { keys, weights },
  };

  it("knows those and says so of the others", () => {
    const plane = layer({}, "pattern", part).head(0);
    expect(plane.at(2, 2)).toBeCloseTo(0.6);
    expect(plane.at(2, 1)).toBeNaN();
    // The first query sees one key only: the second place is empty, not key 0 twice.
    expect([...(plane.keys as Int32Array).subarray(0, 2)]).toEqual([0, -1]);
  });

  it("came without the tokens that are switched off, on both sides", () => {
    // The source numbers a, b and c as 0, 1 and 2 once <s> is off.
    const read: Part<LayerProps> = {
      ...part,
      arrays: {
        keys: { ...keys, shape: [2, 3, 2], values: Int32Array.from([0, 0, 1, 0, 2, 1, 0, 1, 0, 1, 0, 1]) },
        weights: grid([1, 0, 0.75, 0.25, 0.5, 0.25, ...new Array(6).fill(0.5)], [2, 3, 2]),
      },
    };
    const plane = layer({ off: ["model:0"] }, "pattern", read, true).head(0);
    expect(plane.nQueries).toBe(4);
    expect([...(plane.keys as Int32Array)]).toEqual([-1, -1, 1, -1, 2, 1, 3, 2]);
    expect(rounded(plane.values)).toEqual([0, 0, 1, 0, 0.75, 0.25, 0.5, 0.25]);
    const [queries, all] = [["model:3"], []].map((off) => readingOf(stack, 4, { by: "tokens", hide: [], off }));
    if (!queries || !all) throw new Error("two readings");
    const ofQueries = new Layer(site, read, "pattern", queries, all, true).head(0);
    expect([...(ofQueries.keys as Int32Array)]).toEqual([0, -1, 1, 0, 2, 1, -1, -1]);
  });

  it("finds who looks at a key", () => {
    const cells: [number, number][] = [];
    const plane = layer({}, "pattern", part).head(0);
    plane.column(0, (cell, query) => cells.push([query, plane.values[cell] as number]));
    expect(cells.map(([query]) => query)).toEqual([0, 1, 2]);
  });

  it("averages over the union of keys", () => {
    const plane = layer({}, "pattern", part).mean([0, 1]);
    expect(plane.at(3, 3)).toBeCloseTo(0.2);
    expect(plane.at(3, 0)).toBeCloseTo(0.125);
  });

  it("tells what each key gets", () => {
    expect(rounded(layer({}, "pattern", part).head(0).received())).toEqual([0.425, 0.125, 0.225, 0.1]);
  });
});

describe("a difference", () => {
  const reading = readingOf(stack, 4, { by: "tokens", hide: [], off: [] });
  const signed = (values: number[]) => ({ ...dense(), arrays: { weights: grid(values, [1, 4, 4]) } });

  it("is as strong as its share of the largest, whatever its sign", () => {
    const layer = new Layer(
      site,
      signed([0, 0.1, -0.2, ...Array(13).fill(0)]),
      "pattern",
      reading,
      reading,
      false,
      true,
    );
    expect(layer.full).toBeCloseTo(0.2);
    expect([...layer.head(0).strength.slice(0, 3)].map((strength) => Number(strength.toFixed(3)))).toEqual([0, 0.5, 1]);
    expect(layer.head(0).values[2]).toBeCloseTo(-0.2);
  });

  it("of next to nothing is not blown up", () => {
    const layer = new Layer(site, signed([1e-6, ...Array(15).fill(0)]), "pattern", reading, reading, false, true);
    expect(layer.head(0).strength[0]).toBeLessThan(0.001);
  });

  it("is summed over words, with its sign", () => {
    const words = readingOf(stack, 4, { by: "words", hide: [], off: [] });
    const values = [0, 0, 0, 0, 0, 0.3, -0.1, 0, 0, 0.1, 0.1, 0, 0, 0, 0, 0];
    const plane = new Layer(site, signed(values), "pattern", words, words, false, true).head(0);
    expect(plane.at(1, 1)).toBeCloseTo(0.2); // (0.3 − 0.1 + 0.1 + 0.1) / 2
  });
});
