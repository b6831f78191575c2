import { describe, expect, it } from "vitest";
import type { AlignmentProps } from "../contract";
import { DEFAULT } from "../selection";
import type { Part } from "../wire";
import { Aligned } from "./aligned";
import { layer, stack, trace } from "./trace.fixture";

// "a She b c" and "a He x b c": x has no partner.
const part: Part<AlignmentProps> = {
  kind: "alignment",
  props: {
    by: "tokens",
    line: "4 of 4 and 5 tokens aligned",
    no_difference: "",
    stacks: [
      {
        stack: "main",
        other: "main",
        texts: ["a", "She / He", "b", "c"],
        same: [true, false, true, true],
        is_whole: false,
      },
    ],
  },
  arrays: {
    "a:main": { dtype: "int32", shape: [4], code: "linear", values: Int32Array.of(0, 1, 2, 3) },
    "b:main": { dtype: "int32", shape: [5], code: "linear", values: Int32Array.of(0, 1, -1, 2, 3) },
  },
};
const aligned = new Aligned(part);
const traces = {
  a: trace({ stacks: [stack("main", ["a", "She", "b", "c"])], layers: [layer("L0", 4)] }),
  b: trace({ stacks: [stack("main", ["a", "He", "x", "b", "c"])], layers: [layer("L0", 5)] }),
};
const plain = { ...DEFAULT, site: "L0" };

describe("aligned tokens", () => {
  it("finds the partner of a token, either way", () => {
    const how = { a: plain, b: plain };
    expect(aligned.token("a", { side: "query", index: 2 }, traces, how)).toEqual({ side: "query", index: 3 });
    expect(aligned.token("b", { side: "key", index: 4 }, traces, how)).toEqual({ side: "key", index: 3 });
    expect(aligned.token("b", { side: "query", index: 2 }, traces, how)).toBeNull();
  });

  it("counts tokens as each run reads them", () => {
    // The first token is hidden in both: what is second in the text is first on screen.
    const how = { a: { ...plain, hide: ["first" as const] }, b: { ...plain, hide: ["first" as const] } };
    expect(aligned.token("a", { side: "query", index: 1 }, traces, how)).toEqual({ side: "query", index: 2 });
  });

  it("carries tokens that are switched off, as far as they have partners", () => {
    expect(aligned.off("a", ["main:2"])).toEqual(["main:3"]);
    expect(aligned.off("b", ["main:2", "main:4"])).toEqual(["main:3"]);
    expect(aligned.off("a", ["encoder:0"])).toEqual([]);
  });

  it("knows whether all tokens have partners", () => {
    expect(aligned.isWhole).toBe(false);
    expect(aligned.alone("a", traces.a)).toEqual([]);
    expect(aligned.alone("b", traces.b)).toEqual(["x"]);
  });
});
