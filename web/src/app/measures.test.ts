import { expect, test } from "vitest";
import type { MethodProps, ScoresProps } from "../contract";
import type { Part } from "../wire";
import { along, measuresOf, titled } from "./measures";

const method = (name: string): MethodProps => ({ name, about: "", baseline: null, low: 0, high: 2 });
const grid = (...values: number[]) => ({
  dtype: "float32" as const,
  shape: [values.length],
  code: "linear" as const,
  values: Float32Array.from(values),
});
const scores: Part<ScoresProps> = {
  kind: "scores",
  props: { heads: ["L0H0", "L0H1"], methods: [method("entropy"), method("induction")] },
  arrays: { entropy: grid(0.5, 1), induction: grid(Number.NaN, 0.25) },
};

test("a head has the measures that say something about it", () => {
  expect(measuresOf(scores, "L0H0").map((one) => [one.method.name, one.value])).toEqual([["entropy", 0.5]]);
  expect(measuresOf(scores, "L0H1")).toHaveLength(2);
  expect(measuresOf(scores, "L9H9")).toEqual([]);
  expect(measuresOf(null, "L0H0")).toEqual([]);
});

test("bars stay between their ends", () => {
  expect([-1, 0.5, 9].map((value) => along(method("entropy"), value))).toEqual([0, 0.25, 1]);
  expect(titled("previous_token")).toBe("previous token");
});
