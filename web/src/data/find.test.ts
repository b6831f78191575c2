import { expect, it } from "vitest";
import { occurrences } from "./find";
import { readingOf } from "./reading";
import { STACK } from "./stack.fixture";

const reading = readingOf(STACK, 9, { by: "tokens", hide: [], off: [] });

it("finds a text in one token or across several, in any case", () => {
  expect(occurrences(reading, "CATS")).toEqual([[3]]);
  expect(occurrences(reading, "happy cats")).toEqual([[2, 3]]);
  expect(occurrences(reading, "unh")).toEqual([[1, 2]]);
  expect(occurrences(reading, "dog")).toEqual([]);
  expect(occurrences(reading, " ")).toEqual([]);
});
