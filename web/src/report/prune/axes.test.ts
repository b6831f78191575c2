import { describe, expect, test } from "vitest";
import { endsOf, ticks, tickTexts } from "./axes";
import { headCount, scoreText } from "./sweep";

describe("axes", () => {
  test("have round ticks within their ends", () => {
    expect(ticks(0, 32, 8)).toEqual([0, 5, 10, 15, 20, 25, 30]);
    expect(ticks(0.912, 0.934, 5)).toEqual([0.915, 0.92, 0.925, 0.93]);
    expect(ticks(3, 3, 5)).toEqual([3]);
  });

  test("leave a little room, and have a width where all values are the same", () => {
    expect(endsOf([0, 100])).toEqual([-6, 106]);
    const [low, high] = endsOf([40, 40]);
    expect(low).toBeLessThan(40);
    expect(high).toBeGreaterThan(40);
    expect(endsOf([])).toEqual([0, 1]);
  });
});

describe("numbers", () => {
  const metric = { label: "", unit: "", higher_is_better: true };
  test("of scores have the digits of the metric", () => {
    expect(scoreText({ ...metric, name: "bleu" }, 39.95)).toBe("40.0");
    expect(scoreText({ ...metric, name: "accuracy" }, 0.9)).toBe("0.900");
    expect(scoreText({ ...metric, name: "loss" }, null)).toBe("–");
  });

  test("of heads are whole, or the mean over seeds", () => {
    expect([headCount(12), headCount(1.5)]).toEqual(["12", "1.50"]);
  });
});

test("round values are written with as many digits, down to none", () => {
  expect(tickTexts([0, 0.25, 0.5])).toEqual(["0.00", "0.25", "0.50"]);
  expect(tickTexts([-1, 0, 1])).toEqual(["−1", "0", "1"]);
  expect(tickTexts([0, 1e-7])).toEqual(["0", "1e−7"]);
});
