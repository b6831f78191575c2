import { describe, expect, test } from "vitest";
import { apart, moved, SignedWindow } from "./activationDifferences";
import { signedPart } from "./activations.fixture";

describe("activations of two runs", () => {
  const window = new SignedWindow(signedPart());

  test("have numbers of all tokens, in A and in B", () => {
    expect(window.nTokens).toBe(3);
    expect(window.value("norm", 1, 0)).toEqual({ a: 4, b: 1 });
    expect(apart(window.value("norm", 1, 2))).toBe(-2);
    expect(window.value("mlp", 0, 2).a).toBeNaN();
    expect(window.hasStream("mlp")).toBe(true);
    expect(window.hasStream("attention")).toBe(false);
  });

  test("have what either finds likely, without what is there twice", () => {
    const candidates = window.candidates(1, 2);
    expect(candidates.map((candidate) => candidate.text)).toEqual(["b", "a"]);
    expect(window.candidates(0, 1).map((candidate) => candidate.text)).toEqual(["a"]);
    expect(moved({ a: Math.log(0.75), b: Math.log(0.25) })).toBeCloseTo(0.5);
    expect(window.candidates(0, 0)).toEqual([]);
  });

  test("follow what changed most, or an answer through both", () => {
    expect(window.followed("either", 1, 2)?.text).toBe("b");
    expect(window.answer("A", 0, 1)).toEqual({ text: "a", a: -1, b: -3, ranks: { a: 0, b: 4 } });
    expect(window.followed("B", 1, 2)).toMatchObject({ text: "b", a: -12, b: -16 });
    expect(window.answer("A", 0, 0)).toBeNull();
  });

  test("have neurons and heads in both", () => {
    expect(window.neurons(0, 2)).toEqual([{ index: 7, a: 0.5, b: 2 }]);
    expect(window.heads("L0", 2)).toEqual([
      { a: 11, b: 1 },
      { a: 13, b: 3 },
    ]);
  });
});
