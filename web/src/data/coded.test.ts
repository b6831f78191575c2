import { expect, test } from "vitest";
import { coded } from "./coded";

test("code in backticks is every other piece, and a single backtick stays", () => {
  expect(coded("give `site` too, or run `headscope models`.")).toEqual([
    "give ",
    "site",
    " too, or run ",
    "headscope models",
    ".",
  ]);
  expect(coded("`x` first")).toEqual(["", "x", " first"]);
  expect(coded("a ` alone")).toEqual(["a ` alone"]);
});
