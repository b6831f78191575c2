import { expect, test } from "vitest";
import { Experts } from "./experts";

const experts = new Experts(4, 2, [3, 1, 1, 0, 1, 2], [0.75, 0.25, 0.5, 0.5, 0.9, 0.1]);

test("a token's experts are its row, and a token that is not there has none", () => {
  expect(experts.of(1)).toEqual([
    { expert: 1, value: 0.5 },
    { expert: 0, value: 0.5 },
  ]);
  expect(experts.of(3)).toEqual([]);
  expect(experts.of(-1)).toEqual([]);
});

test("the busiest experts come first, ties by number", () => {
  expect(experts.busiest(3)).toEqual([
    { expert: 1, value: 1 },
    { expert: 0, value: 1 / 3 },
    { expert: 2, value: 1 / 3 },
  ]);
});
