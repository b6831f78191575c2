import { describe, expect, test } from "vitest";
import { axisOf, figure, intervalOf, mean, rangeOf, ranksOf, spearman } from "./figures";
import { measure } from "./report.fixture";

test("scores are written with about three digits, and a minus sign", () => {
  expect([0, 0.0949, 0.095, 1.234, 12.34, 123.4, -0.5].map((score) => figure(score))).toEqual([
    "0.00",
    "0.095",
    "0.10",
    "1.23",
    "12.3",
    "123",
    "−0.50",
  ]);
  expect(figure(2.5, "nats")).toBe("2.50 nats");
  expect([null, undefined, Number.NaN].map((score) => figure(score, "nats"))).toEqual(["–", "–", "–"]);
});

test("an interval is told where there is one", () => {
  const confidence = { ...measure("confidence", [0.5, 0.6]), low: [0.45, null], high: [0.55, null] };
  expect([intervalOf(confidence, 0), intervalOf(confidence, 1)]).toEqual(["0.45 to 0.55", ""]);
  expect(intervalOf(measure("confidence", [0.5]), 0)).toBe("");
});

describe("the range of colours", () => {
  test("begins at 0", () => expect(rangeOf([0.2, null, 0.8])).toEqual({ low: 0, high: 0.8, isSigned: false }));
  test("goes as far to both sides where scores have a sign", () =>
    expect(rangeOf([-3, 2])).toEqual({ low: -3, high: 3, isSigned: true }));
  test("is never empty", () => {
    expect(rangeOf([0, 0])).toEqual({ low: 0, high: 1, isSigned: false });
    expect(rangeOf([null])).toEqual({ low: 0, high: 1, isSigned: false });
  });
});

test("an axis has room at both ends, but none below 0 where no score is", () => {
  expect(axisOf([1, 2])).toEqual([0.94, 2.06]);
  expect(axisOf([0.01, 1])[0]).toBe(0);
  expect(axisOf([-1, 1])).toEqual([-1.12, 1.12]);
  expect(axisOf([3, 3])).toEqual([2.94, 3.06]);
});

test("the mean of nothing is no number", () => {
  expect(mean([1, 2, 6])).toBe(3);
  expect(mean([])).toBeNaN();
});

describe("rank correlation", () => {
  test("of equal scores: they share the middle of their places", () =>
    expect(ranksOf([10, 30, 20, 20])).toEqual([0, 3, 1.5, 1.5]));
  test("is 1 where the order is the same, −1 where it is turned round", () => {
    expect(spearman([1, 2, 3], [10, 100, 1000])).toBeCloseTo(1);
    expect(spearman([1, 2, 3], [3, 2, 1])).toBeCloseTo(-1);
  });
  // d = (0, 0, 1, −1, 0): 1 − 6 · Σd² / n(n² − 1) = 1 − 12/120.
  test("of one swap among five is 0.9", () => expect(spearman([1, 2, 3, 4, 5], [1, 2, 4, 3, 5])).toBeCloseTo(0.9));
  test("is no number of two pairs, or where one side is all the same", () => {
    expect(spearman([1, 2], [1, 2])).toBeNaN();
    expect(spearman([1, 2, 3], [5, 5, 5])).toBeNaN();
  });
});
