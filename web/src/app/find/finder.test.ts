import { expect, test } from "vitest";
import type { FoundProps } from "../../contract";
import { joined, Measures } from "../../data/measures";
import type { Part } from "../../wire";
import { measureOf, ranked } from "./finder.svelte";

const grid = (...values: number[]) => ({
  dtype: "float32" as const,
  shape: [values.length],
  code: "linear" as const,
  values: Float32Array.from(values),
});

function foundPart(order: "above" | "size", values: number[], baselines: number[]): Part<FoundProps> {
  const none = values.map(() => Number.NaN);
  return {
    kind: "found",
    props: {
      heads: values.map((_, index) => `L0H${index}`),
      method: { name: "she → nurse", about: "", baseline: null, low: 0, high: 1 },
      order,
      n_inputs: 1,
      notes: [],
      python: "",
    },
    arrays: {
      values: grid(...values),
      measure: grid(...values),
      baselines: grid(...baselines),
      low: grid(...none),
      high: grid(...none),
    },
  };
}

test("what is furthest above its own baseline comes first, and what is not known is left out", () => {
  const heads = ranked(foundPart("above", [0.9, 0.5, Number.NaN], [0.9, 0.1, 0])).map((head) => head.head);
  expect(heads).toEqual(["L0H1", "L0H0"]);
  expect(ranked(foundPart("above", [0.9, 0.5, Number.NaN], [0.9, 0.1, 0]), true)[0]?.head).toBe("L0H0");
});

test("an effect counts by its size, either way", () => {
  const none = [Number.NaN, Number.NaN, Number.NaN];
  expect(ranked(foundPart("size", [0.1, -0.4, 0.2], none)).map((head) => head.head)).toEqual(["L0H1", "L0H2", "L0H0"]);
});

test("a found measure stands beside those of the trace, in the order of its heads", () => {
  const own = {
    kind: "scores",
    props: { heads: ["L0H1", "L0H0"], methods: [{ name: "distance", about: "", baseline: null, low: 0, high: 9 }] },
    arrays: { distance: grid(4, 5) },
  };
  const all = joined([measureOf(foundPart("above", [0.9, 0.5], [0, 0])), own]);
  const measures = new Measures(all);
  expect(measures.methods.map((method) => method.name)).toEqual(["she → nurse", "distance"]);
  expect(measures.of("L0H0", "she → nurse")).toBeCloseTo(0.9);
  expect(measures.of("L0H0", "distance")).toBe(5);
  expect(joined([null, null])).toBeNull();
});
