import { expect, test } from "vitest";
import { repeatedToken } from "./repeats";

test("the last word that repeats leads to what came after it the last time", () => {
  const texts = ["<s>", " red", " stone", ",", " old", " gate", ".", " red", " stone", ",", " old"];
  expect(repeatedToken({ texts, special: [0] })).toEqual({ query: 10, key: 5, text: "old", next: "gate" });
});

test("marks and special tokens are no words, and a word beside itself leads nowhere new", () => {
  expect(repeatedToken({ texts: ["<s>", "<s>", "a", ",", "b", ","], special: [0, 1] })).toBeNull();
  expect(repeatedToken({ texts: ["a", "a"], special: [] })).toBeNull();
});
