import { expect, test } from "vitest";
import { roundPositions, roundStep } from "./ticks";

test.each([
  [1, 1],
  [1.1, 2],
  [3, 5],
  [7, 10],
  [10, 10],
  [120, 200],
  [0.03, 0.05],
])("for at least %f the step is %f", (least, step) => {
  expect(roundStep(least)).toBeCloseTo(step, 12);
});

test("positions are round, inside, and apart", () => {
  expect(roundPositions([3, 42], 390, 100)).toEqual([10, 20, 30, 40]);
  expect(roundPositions([0, 4], 1000, 40)).toEqual([0, 1, 2, 3]);
  expect(roundPositions([0, 1000], 100, 50)).toEqual([0, 500]);
});
