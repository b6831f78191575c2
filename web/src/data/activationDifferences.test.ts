import { describe, expect, test } from "vitest";
import { apart, moved, SignedWindow } from "./activationDifferences";
import { signedPart } from "./activations.fixture";

describe("activations of two runs", () => {
  const window = new SignedWindow(signedPart());

  test("have numbers of all tokens, in A and in B", () => {
    expect(window.nTokens).toBe(3);
    expect(window.value("norm", 1, 0)).toEqual({ one: 4, other: 1 });
    expect(apart(window.value("norm", 1, 2))).toBe(-2);
    expect(window.value("mlp", 0, 2).one).toBeNaN();
    expect(window.hasStream("mlp")).toBe(true);
    expect(window.hasStream("attention")).toBe(false);
  });

  test("have what either finds likely, without what is there twice", () => {
    const candidates = window.candidates(1, 2);
    expect(candidates.map((candidate) => candidate.text)).toEqual(["b", "a"]);
    expect(window.candidates(0, 1).map((candidate) => candidate.text)).toEqual(["a"]);
    expect(moved({ one: Math.log(0.75), other: Math.log(0.25) })).toBeCloseTo(0.5);
    expect(window.candidates(0, 0)).toEqual([]);
  });

  test("follow what changed most, or an answer through both", () => {
    expect(window.followed("either", 1, 2)?.text).toBe("b");
    expect(window.answer("A", 0, 1)).toEqual({ text: "a", one: -1, other: -3, ranks: { one: 0, other: 4 } });
    expect(window.followed("B", 1, 2)).toMatchObject({ text: "b", one: -12, other: -16 });
    expect(window.answer("A", 0, 0)).toBeNull();
  });

  test("have neurons and heads in both", () => {
    expect(window.neurons(0, 2)).toEqual([{ index: 7, one: 0.5, other: 2 }]);
    expect(window.heads("L0", 2)).toEqual([
      { one: 11, other: 1 },
      { one: 13, other: 3 },
    ]);
  });
});
