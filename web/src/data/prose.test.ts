import { describe, expect, test } from "vitest";
import { proseOf } from "./prose";
import { stack, trace, translation } from "./trace.fixture";

describe("texts as prose", () => {
  test("a text that was only read has none", () => {
    expect(proseOf(trace())).toEqual([]);
  });

  test("what the model wrote stands apart from what it was prompt", () => {
    const texts = ["<s>", "the", "cat", "sat", "down"];
    const stacks = [stack("main", texts, { special: [0], spaces: [2, 3, 4] })];
    const steps = [null, null, null, 0, 1];
    expect(proseOf(trace({ text: "the cat sat down", stacks, steps }))).toEqual([
      { name: "Text", prompt: "the cat ", written: "sat down" },
    ]);
    const lines = [stack("main", ["<s>", "the", "cat", "sat", ".⏎"], { special: [0], spaces: [2, 3] })];
    expect(proseOf(trace({ text: "the cat sat.\n", stacks: lines, steps }))[0]?.written).toBe("sat.\n");
    // A chat's text is not that of its tokens.
    expect(proseOf(trace({ text: null, stacks, steps }))[0]).toEqual({
      name: "Text",
      prompt: "the cat ",
      written: "sat down",
    });
  });

  test("a translation has two sentences, and says which of them the model wrote", () => {
    const texts = { text: "a cat", target: "кот" };
    expect(proseOf({ ...translation(), ...texts, steps: [null, 0] })).toEqual([
      { name: "Source", prompt: "a cat", written: "" },
      { name: "Translation", prompt: "", written: "кот" },
    ]);
    expect(proseOf({ ...translation(), ...texts })[1]).toEqual({ name: "Target", prompt: "кот", written: "" });
    expect(proseOf({ ...translation(), ...texts, model: "t5", steps: [null, 0] })[1]?.name).toBe(
      "Written by the model",
    );
  });
});
