import { describe, expect, test } from "vitest";
import { FOOT, NeuronRows } from "./neuronRows";

describe.each([
  ["of one query", false],
  ["of every token", true],
])("the rows %s", (_, isEvery) => {
  test("share the height, and are neither too low to read nor too high", () => {
    expect(new NeuronRows(5, 700, isEvery).pitch).toBe(34);
    expect(new NeuronRows(500, 700, isEvery).pitch).toBe(19);
    const rows = new NeuronRows(24, 700, isEvery);
    expect(rows.tall).toBeLessThanOrEqual(700);
  });

  test("a point is in the row that is drawn there", () => {
    const rows = new NeuronRows(200, 700, isEvery);
    for (const scroll of [0, 7, 380]) {
      const [first, last] = rows.visible(scroll);
      for (let row = first; row < last; row++) {
        const middle = rows.top(row, scroll) + rows.pitch / 2;
        if (rows.isInView(row, scroll) && middle >= rows.first && middle <= rows.foot) {
          expect(rows.at(middle, scroll)).toBe(row);
        }
      }
    }
    expect(rows.at(rows.first - 1, 0)).toBeNull();
    expect(new NeuronRows(2, 700, isEvery).at(rows.first + 200, 0)).toBeNull();
  });

  test("scrolls no further than a row needs to be seen", () => {
    const rows = new NeuronRows(200, 700, isEvery);
    expect(rows.reveal(3, 0)).toBe(0);
    expect(rows.reveal(3, 500)).toBe(3 * rows.pitch);
    const scroll = rows.reveal(150, 0);
    expect(rows.isInView(150, scroll)).toBe(true);
    expect(rows.isInView(151, scroll)).toBe(false);
  });
});

test("what stays below is under the last row, or at the bottom", () => {
  expect(new NeuronRows(3, 700, false).foot).toBe(64 + 3 * 34 + 8);
  expect(new NeuronRows(300, 700, false).foot).toBe(700 - FOOT);
});
