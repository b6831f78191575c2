import { describe, expect, test } from "vitest";
import type { Case, CaseToken } from "./contents";
import { endsOf, patchName, textOf } from "./pairEnds";

// <s> un believ able cats
const TOKENS: CaseToken[] = [
  ["<s>", false, true, -1],
  ["un", false, false, 0],
  ["believ", false, false, 0],
  ["able", false, false, 0],
  ["cats", true, false, 1],
];
const EXAMPLE: Case = {
  id: "1",
  about: "",
  score: null,
  pairs: [],
  tokens: TOKENS,
  queries: null,
  image: null,
  grid: null,
};

describe("the ends of a pair", () => {
  test("are whole words", () => expect(endsOf(EXAMPLE, [4, 2, 1])).toEqual({ from: [4], to: [1, 2, 3] }));
  test("are pieces where both are of one word", () =>
    expect(endsOf(EXAMPLE, [3, 1, 1])).toEqual({ from: [3], to: [1] }));
  test("may be a special token, which is of no word", () =>
    expect(endsOf(EXAMPLE, [1, 0, 1])).toEqual({ from: [1, 2, 3], to: [0] }));
  test("lie in two texts: words of the same number are not the same word", () => {
    const queries: CaseToken[] = [
      ["chats", false, false, 0],
      ["in", true, false, 1],
      ["croyables", false, false, 1],
    ];
    expect(endsOf({ ...EXAMPLE, queries }, [2, 4, 1])).toEqual({ from: [1, 2], to: [4] });
    expect(endsOf({ ...EXAMPLE, queries }, [0, 1, 1])).toEqual({ from: [0], to: [1, 2, 3] });
  });
});

test("words are read without the gaps between their pieces", () => {
  expect(textOf(TOKENS, [1, 2, 3])).toBe("unbelievable");
  expect(textOf([["", true, false, 0]], [0])).toBe("␣");
});

test("patches are counted from 1, row by row", () => {
  expect(patchName(0, [2, 3])).toBe("row 1, column 1");
  expect(patchName(5, [2, 3])).toBe("row 2, column 3");
  expect(patchName(-1, [2, 3])).toBe("special token");
});
