import { describe, expect, test } from "vitest";
import { editedNotes, isEditedLayer, weightsOf } from "./edited";
import { readingOf } from "./reading";
import { stack, trace } from "./trace.fixture";

const TOKENS = stack("main", ["<s>", "the", "cat", "sat"], { special: [0], words: [null, 0, 1, 2], replaced: [2] });
const ALL = { by: "tokens" as const, hide: [], off: [] };

describe("what edits act on", () => {
  const edits = trace({
    edited_heads: ["L0H1"],
    edited_weights: [
      { head: "L0H1", queries: [3], keys: [0, 2] },
      { head: "L0H1", queries: [2], keys: [] },
      { head: "L1H0", queries: [1], keys: [0] },
    ],
  });

  test("weights are named by the tokens as read; those of hidden tokens are left out", () => {
    const plain = readingOf(TOKENS, 4, ALL);
    expect(weightsOf(edits, "L0H1", plain, plain)).toEqual([
      { query: 3, key: 0 },
      { query: 3, key: 2 },
      { query: 2, key: -1 },
    ]);
    const hidden = readingOf(TOKENS, 4, { ...ALL, hide: ["special"] });
    expect(weightsOf(edits, "L0H1", hidden, hidden)).toEqual([
      { query: 2, key: 1 },
      { query: 1, key: -1 },
    ]);
    expect(weightsOf(edits, "L0H0", plain, plain)).toEqual([]);
  });

  test("replaced tokens are known in every reading", () => {
    expect(readingOf({ ...TOKENS, answer: [1, 2] }, 4, ALL).isAnswer).toEqual([false, true, true, false]);
    expect(readingOf(TOKENS, 4, ALL).isReplaced).toEqual([false, false, true, false]);
    expect(readingOf(TOKENS, 4, { ...ALL, by: "words", hide: ["special"] }).isReplaced).toEqual([false, true, false]);
  });

  test("both are said in words, and nothing where nothing was edited", () => {
    expect(editedNotes(edits, ["L0H0", "L0H1"], [readingOf(TOKENS, 4, ALL)])).toEqual([
      "edited: L0H1",
      "1 token replaced",
    ]);
    expect(editedNotes(trace(), ["L0H0"])).toEqual([]);
  });

  test("layers are named part by part, as no head of them was edited", () => {
    const layers = trace({
      edited_layers: [
        { stack: "main", layer: 2, part: "mlp" },
        { stack: "main", layer: 4, part: "mlp" },
        { stack: "decoder", layer: 4, part: "residual" },
      ],
    });
    expect(editedNotes(layers, ["L2H0"])).toEqual(["edited: MLP of L2, L4", "edited: residual stream of decoder.L4"]);
    expect(isEditedLayer(layers, { stack: "main", layer: 2 })).toBe(true);
    expect(isEditedLayer(layers, { stack: "main", layer: 3 })).toBe(false);
    expect(isEditedLayer(layers, { stack: "decoder", layer: 2 })).toBe(false);
  });
});
