import { describe, expect, test } from "vitest";
import type { StackProps } from "../contract";
import { inputName } from "./runName";

function stack(kind: StackProps["kind"], texts: string[]): StackProps {
  const all = { ids: [], special: [], words: [], sentences: [], segments: [], spaces: [] };
  return { name: "main", kind, grid: null, texts, ...all, looks: "", replaced: [], boxes: [], answer: null };
}

const frames = stack(
  "frames",
  Array.from({ length: 105 }, (_, place) => `${(place * 0.02).toFixed(2)}s`),
);

describe("the input of a trace is named", () => {
  test("by its text, or by its tokens", () => {
    expect(inputName({ text: "She sings.", target: null, stacks: [] })).toBe("She sings.");
    expect(inputName({ text: null, target: null, stacks: [stack("text", ["the", "cat"])] })).toBe("the cat");
  });

  test("a sound by what was written of it, or by its length, never by the times of its frames", () => {
    expect(inputName({ text: null, target: " the nurse", stacks: [frames] })).toBe("sound: the nurse");
    expect(inputName({ text: null, target: null, stacks: [frames] })).toBe("sound, 2.1 s");
    expect(inputName({ text: null, target: "", stacks: [stack("frames", [])] })).toBe("sound");
  });

  test("a picture as one, with what was written of it", () => {
    const patches = stack("patches", ["[CLS]", "0,0"]);
    expect(inputName({ text: null, target: null, stacks: [patches] })).toBe("picture");
    expect(inputName({ text: null, target: "a dog", stacks: [patches] })).toBe("picture: a dog");
  });
});
