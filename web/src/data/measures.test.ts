import { expect, it } from "vitest";
import type { ScoresProps } from "../contract";
import type { Grid, Part } from "../wire";
import { along, Measures, number, spoken, strongestHead } from "./measures";
import { layer, trace } from "./trace.fixture";

const values = (...of: number[]): Grid => ({
  dtype: "float32",
  code: "linear",
  shape: [2],
  values: Float32Array.from(of),
});
const part: Part<ScoresProps> = {
  kind: "scores",
  props: {
    heads: ["L0H0", "L0H1"],
    methods: [
      { name: "induction", about: "", baseline: 0.1, low: 0, high: 1 },
      { name: "distance", about: "", baseline: null, low: 0, high: 10 },
    ],
  },
  arrays: { induction: values(0.9, Number.NaN), distance: values(2, 5) },
};

it("looks up measures by head and name", () => {
  const measures = new Measures(part);
  expect(measures.of("L0H0", "induction")).toBeCloseTo(0.9);
  expect(measures.of("L0H1", "induction")).toBeNaN();
  expect(measures.of("L9H9", "induction")).toBeNaN();
  expect(measures.share("L0H1", "distance")).toBeCloseTo(0.5);
});

it("names what stands out in a head, if anything does", () => {
  const measures = new Measures(part);
  expect(measures.best("L0H0")?.name).toBe("induction");
  expect(measures.best("L0H1")).toBeNull();
  expect(new Measures(null).best("L0H0")).toBeNull();
});

it("leaves out what is counted in a unit when it says what stands out", () => {
  const entropy = { name: "entropy", about: "", baseline: 0.5, low: 0, high: 3 };
  const props = { ...part.props, methods: [entropy, ...part.props.methods] };
  expect(
    new Measures({ ...part, props, arrays: { ...part.arrays, entropy: values(2.9, 2.9) } }).best("L0H1"),
  ).toBeNull();
});

it("writes numbers with as many digits as they need", () => {
  expect([0.834, 0.0042, 0, -3.5, 123.4, Number.NaN].map(number)).toEqual(["0.83", "0.004", "0", "−3.50", "123", "–"]);
});

it("tells first what was asked for, then what is far from chance", () => {
  const measures = new Measures(part);
  expect(measures.striking("L0H0", [], 1).map((measure) => measure.name)).toEqual(["induction"]);
  expect(measures.striking("L0H0", ["distance"], 2).map((measure) => measure.name)).toEqual(["distance", "induction"]);
  expect(measures.striking("L0H1", [], 2).map((measure) => measure.name)).toEqual(["distance"]);
});

it("gives what is known of a head, and of that what lies furthest from chance", () => {
  const measures = new Measures(part);
  expect(measures.known("L0H1").map((measure) => measure.method.name)).toEqual(["distance"]);
  expect(measures.known("L9H9")).toEqual([]);
  expect(measures.telling("L0H0", 1).map((measure) => measure.method.name)).toEqual(["induction"]);
  expect(measures.telling("L0H0", 9)).toHaveLength(2);
});

it("keeps bars between their ends", () => {
  const method = { name: "entropy", about: "", baseline: null, low: 0, high: 2 };
  expect([-1, 0.5, 9].map((value) => along(method, value))).toEqual([0, 0.25, 1]);
  expect(spoken("previous_token")).toBe("previous token");
});

it("finds the head that has most of a measure, unless all are near chance", () => {
  const run = trace({ layers: [layer("L0", 4, { n_heads: 2 })] });
  expect(strongestHead(run, new Measures(part), "induction")).toEqual({ site: "L0", head: 0 });
  expect(strongestHead(run, new Measures(part), "no such measure")).toBeNull();
  const weak = new Measures({ ...part, arrays: { induction: values(0.2, 0.25) } });
  expect(strongestHead(run, weak, "induction")).toBeNull();
});
