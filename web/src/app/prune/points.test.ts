import { describe, expect, test } from "vitest";
import type { PointOffer, SiteProps, SweepOffer } from "../../contract";
import { placeOf, pointLine, prunedLine, sweepOf } from "./points";

const point = (model: string, n_kept: number): PointOffer => ({
  model,
  about: `${model}: L0`,
  n_kept,
  score: "BLEU 39.8",
});
const sweep = (name: string, model: string): SweepOffer => ({
  name,
  model,
  total: 8,
  points: [point(model, 8), point(`sweep:${name}/a`, 4), point(`sweep:${name}/b`, 2)],
});
const SWEEPS = [sweep("first", "gpt"), sweep("second", "gpt")];

describe("the sweep of a model", () => {
  test("is found by a point, or by the original", () => {
    expect(sweepOf(SWEEPS, "sweep:second/b")?.name).toBe("second");
    expect(sweepOf(SWEEPS, "gpt")?.name).toBe("first");
    expect(sweepOf(SWEEPS, "bert")).toBeUndefined();
  });

  test("has the untouched model first", () => {
    const [first] = SWEEPS as [SweepOffer];
    expect([placeOf(first, "gpt"), placeOf(first, "sweep:first/b"), placeOf(first, "other")]).toEqual([0, 2, 0]);
  });
});

test("a point is told with its heads and its score", () => {
  expect(pointLine(point("sweep:first/a", 4), 8)).toBe("4 of 8 heads kept, BLEU 39.8 (sweep:first/a: L0)");
  const layers = [{ n_heads: 4 }, { n_heads: 4 }] as SiteProps[];
  expect(prunedLine({ pruned_heads: ["L0H1"], layers, model: "sweep:first/a" })).toBe("7 of 8 heads kept (point a)");
});
