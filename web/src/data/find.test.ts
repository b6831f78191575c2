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

it("passes over a long text once, though every token may hold what is looked for", () => {
  const count = 200_000; // going through all tokens for each of the places takes minutes
  const tokens = { ...reading, texts: new Array(count).fill("gold"), isSpaced: new Array(count).fill(true) };
  const places = occurrences(tokens as unknown as typeof reading, "gold gold");
  expect(places.length).toBe(count / 2);
  expect(places[4321]).toEqual([8642, 8643]);
});
