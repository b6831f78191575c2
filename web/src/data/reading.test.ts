import { describe, expect, it, test } from "vitest";
import { patchNote, readingOf } from "./reading";
import { STACK } from "./stack.fixture";

const as = (by: "tokens" | "words" | "sentences", hide: ("special" | "first")[] = [], off: string[] = []) =>
  readingOf(STACK, 9, { by, hide, off });

describe("a reading", () => {
  it("is plain when every token is read by itself", () => {
    const reading = as("tokens");
    expect(reading.isPlain).toBe(true);
    expect(reading.texts).toEqual(STACK.texts);
  });

  it("joins the pieces of words, and those of one character", () => {
    const reading = as("words");
    expect(reading.texts).toEqual(["[CLS]", "unhappy", "cats", ".", "They", "ï", "[SEP]"]);
    expect(reading.members[1]).toEqual([1, 2]);
    expect([...reading.groupOf]).toEqual([0, 1, 1, 2, 3, 4, 5, 5, 6]);
  });

  it("joins sentences with the spaces of the text", () => {
    expect(as("sentences").texts).toEqual(["[CLS]", "unhappy cats.", "They ï", "[SEP]"]);
  });

  it("shows hidden tokens no more, and those switched off as such", () => {
    const reading = as("words", ["special"], ["model:2", "model:4", "other:1"]);
    expect(reading.texts).toEqual(["unhappy", "cats", ".", "They", "ï"]);
    expect(reading.kept[0]).toEqual([1]);
    expect(reading.isOff).toEqual([false, false, true, false, false]);
    expect(reading.isPartial).toBe(true);
  });

  it("never hides everything", () => {
    const only = { ...STACK, texts: ["[CLS]", "[SEP]"], special: [0, 1], words: [null, null], sentences: [null, null] };
    expect(readingOf(only, 2, { by: "tokens", hide: ["special", "first"], off: [] }).texts).toHaveLength(2);
  });

  it("numbers the places of a layer that sees a coarser grid", () => {
    expect(readingOf(STACK, 3, { by: "words", hide: ["first"], off: [] }).texts).toEqual(["0", "1", "2"]);
  });

  it("names patches by row and column", () => {
    const image = {
      ...STACK,
      kind: "patches" as const,
      grid: [2, 2] as [number, number],
      texts: ["[CLS]", "0", "1", "2", "3"],
      special: [0],
    };
    expect(readingOf(image, 5, { by: "tokens", hide: [], off: [] }).texts).toEqual([
      "[CLS]",
      "1·1",
      "1·2",
      "2·1",
      "2·2",
    ]);
  });
});

test("patches say how they are named, and numbers in a text do not", () => {
  expect(patchNote([{ texts: ["[CLS]"] }, { texts: ["[CLS]", "1·1", "1·2", "2·1", "2·2"] }])).toEqual([
    "patches are named row·column, counted from 1",
  ]);
  expect(patchNote([{ texts: ["2·3", "is", "6"] }])).toEqual([]);
});
