import { expect, test } from "vitest";
import { csv, json } from "./tableFiles";

const sheet = {
  columns: ["from", "weight"],
  rows: [
    ['say "hi", you', 0.5],
    ["a\nb", Number.NEGATIVE_INFINITY],
  ] as (string | number)[][],
};

test("CSV quotes what would be read otherwise", () => {
  expect(csv(sheet)).toBe('from,weight\r\n"say ""hi"", you",0.5\r\n"a\nb",-Infinity\r\n');
});

test("JSON has null where a number is not one", () => {
  expect(JSON.parse(json(sheet))).toEqual([
    { from: 'say "hi", you', weight: 0.5 },
    { from: "a\nb", weight: null },
  ]);
});
