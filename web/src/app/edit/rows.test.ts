import { describe, expect, it } from "vitest";
import { rowOf } from "./rows";

const KEYS = ["<s>", "The", " nurse", "'s", " nurse"];

describe("a row that is typed", () => {
  it("is its weights, and zero where nothing was said", () => {
    expect(rowOf("weights", "0.5, 0 .25", KEYS)).toEqual({
      weights: [0.5, 0, 0.25, 0, 0],
      said: "sum 0.75, the other 2 are 0",
    });
    expect(rowOf("weights", "[1, 0, 0, 0, 0]", KEYS)).toEqual({ weights: [1, 0, 0, 0, 0], said: "sum 1" });
  });

  it("or tokens alike: positions, ranges, words", () => {
    expect(rowOf("alike", "0, 3–4", KEYS).weights).toEqual([0.333333, 0, 0, 0.333333, 0.333333]);
    expect(rowOf("alike", "nurse", KEYS)).toEqual({ weights: [0, 0, 0.5, 0, 0.5], said: "2 tokens, 0.50 each" });
  });

  it("says what is wrong with it", () => {
    expect(rowOf("weights", "0.5, x", KEYS)).toEqual({
      weights: [],
      said: "x is no weight: numbers from 0 on, with commas between",
    });
    expect(rowOf("weights", "-1", KEYS).weights).toEqual([]);
    expect(rowOf("weights", "0, 0", KEYS).said).toMatch("above 0");
    expect(rowOf("weights", "1 1 1 1 1 1", KEYS).said).toBe("6 weights, but there are 5 tokens to look at");
    expect(rowOf("alike", "3-9", KEYS).said).toBe("3-9: tokens are numbered from 0 to 4");
    expect(rowOf("alike", "doctor", KEYS).said).toMatch("no token doctor");
    expect(rowOf("alike", "  ", KEYS)).toEqual({ weights: [], said: "" });
  });
});
