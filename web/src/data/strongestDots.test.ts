import { expect, it } from "vitest";
import { strongestCells } from "./strongestDots";

const map = Uint8Array.from([9, 9, 255, 0, 0, 200, 102, 0, 255, 51, 0, 255]);

it("finds the strongest dot of each row, the first column apart", () => {
  const cells = strongestCells(map, 2, 3, 3, 2);
  expect(cells.map(({ row, column }) => [row, column])).toEqual([
    [1, 1],
    [2, 1],
  ]);
  expect(cells[0]?.weight).toBeCloseTo(0.16);
});

it("takes the first column where there is nothing else", () => {
  expect(strongestCells(Uint8Array.of(255, 0, 128, 0), 0, 2, 2, 5).map((cell) => cell.column)).toEqual([0, 0]);
});

it("finds the largest differences of either sign", () => {
  const cells = strongestCells(Uint8Array.of(128, 129, 1, 128, 255, 120), 0, 2, 3, 2, true);
  expect(cells).toEqual([
    { row: 0, column: 2, weight: -1 },
    { row: 1, column: 1, weight: 1 },
  ]);
});
