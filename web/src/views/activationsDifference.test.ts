import { describe, expect, test } from "vitest";
import { differencesOf } from "../data/activationDifferences";
import { signedPart } from "../data/activations.fixture";
import { DEFAULT, type Selection } from "../selection";
import type { Source } from "../source";
import type { Grid, Part } from "../wire";
import { SignedCells, signed, three } from "./activationsDifference";

async function cells(change: Partial<Selection>, part: Part<unknown> = signedPart(0)) {
  const source: Source = { isLive: false, part: async () => part as never };
  const of = differencesOf(source, "main");
  await of.need(0, 1);
  return new SignedCells(of, { ...DEFAULT, ...change });
}

describe("cells of a difference", () => {
  test("are A − B, on the root scale of the largest", async () => {
    const signedCells = await cells({ stream: "norm" });
    expect(signedCells.shade(1, 0)).toBe(1); // 4 less 1, which is the largest
    expect(signedCells.shade(1, 2)).toBeCloseTo(-Math.sqrt(2 / 3));
    expect(signedCells.shade(0, 0)).toBe(0);
    expect(signedCells.words(1, 0).text).toBe("+3.00");
    expect(signedCells.words(1, 2).text).toBe("−2.00");
    expect(signedCells.told().title).toBe("A − B: norm of the residual stream");
    expect(signedCells.told().notes).toContain("full colour: a difference of 3.00, square-root scale");
    expect(signedCells.tip(1, 0)).toContain("norm  +3.00: 4 less 1");
  });

  test("hold the prediction that changed most, or the change of an answer", async () => {
    const most = await cells({ stream: "lens" });
    expect(most.words(1, 1)).toEqual({ text: "b", whole: "b +0.50" });
    expect(most.shade(1, 1)).toBe(1);
    expect(most.tip(1, 1)).toContain("b  75.0 % less 25.0 %, log-probability +1.10");
    expect(most.tip(0, 0)).toContain("the answer of A, a: number 1 in A, 5 in B");
    const answer = await cells({ stream: "lens", whose: "A" });
    expect(answer.words(0, 0)).toEqual({ text: "+0.32", whole: "a +0.32" });
    expect(most.words(1, 0)).toEqual({ text: "b", isQuiet: true }); // the same in both
    expect(answer.told().title).toContain("what A predicts in the end");
  });

  test("of a run minus itself are nothing, and say so", async () => {
    const part = signedPart(0);
    for (const name of ["norm", "mlp", "logprob", "answer"])
      part.arrays[`b:${name}`] = part.arrays[`a:${name}`] as Grid;
    for (const stream of ["norm", "mlp", "lens"] as const) {
      const signedCells = await cells({ stream }, part as Part<unknown>);
      for (const place of [0, 1]) for (const position of [0, 1]) expect(signedCells.shade(place, position)).toBe(0);
      expect(signedCells.told().notes).toContain("no difference in anything shown");
    }
  });

  test("leave rounding pale", async () => {
    const part = signedPart(0);
    part.arrays["b:norm"] = {
      ...part.arrays["a:norm"],
      values: Float32Array.from([1, 2, 3, 4.000001, 5, 6]),
    } as Grid;
    const signedCells = await cells({ stream: "norm" }, part as Part<unknown>);
    expect(Math.abs(signedCells.shade(1, 0))).toBeLessThan(0.2);
    expect(signedCells.told().notes).toContain("no difference beyond rounding");
  });

  test("say why something else is drawn than was asked for", async () => {
    const part = signedPart(0);
    part.props = { ...part.props, no_lens: "the two models choose among 8 and 9 tokens" };
    const signedCells = await cells({ stream: "lens" }, part as Part<unknown>);
    expect(signedCells.stream).toBe("norm");
    expect(signedCells.told().notes[0]).toBe("no logit lens: the two models choose among 8 and 9 tokens");
  });

  test("are a table of both runs", async () => {
    const signedCells = await cells({ stream: "norm" });
    const row = Object.fromEntries(signedCells.columns().map((name, at) => [name, signedCells.row(1, 0)[at]]));
    expect(row).toMatchObject({ "norm A": 4, "norm B": 1, "norm A − B": 3, prediction: "b" });
    expect(row["log-probability A − B"]).toBe(0);
  });
});

test("numbers with their sign", () => {
  expect([0.5, -0.5, 0, 0.00001].map(signed)).toEqual(["+0.50", "−0.50", "0", "0"]);
  expect(three({ a: 2, b: 0.5 })).toBe("+1.50: 2 less 0.5");
});
