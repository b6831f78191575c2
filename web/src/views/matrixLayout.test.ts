import { describe, expect, test } from "vitest";
import { cellAt, fitted, layPanels, moved, scaledAround, spanOf } from "./matrixLayout";

const names = { left: 80, top: 60 };
const whole = (n: number) => ({ rows: [0, n] as [number, number], columns: [0, n] as [number, number] });

describe("the panels of a matrix", () => {
  test("a few tokens have their names and whole pixels a cell", () => {
    const { isReadable, side, boxes, room } = layPanels({
      width: 860,
      height: 620,
      count: 1,
      nRows: 9,
      nColumns: 9,
      names,
    });
    expect(isReadable).toBe(true);
    expect(side).toBe(44);
    expect(room).toEqual(names);
    expect(boxes).toHaveLength(1);
  });

  test("many tokens give up their names, and all of them still fit", () => {
    const { isReadable, side, boxes } = layPanels({
      width: 860,
      height: 620,
      count: 1,
      nRows: 500,
      nColumns: 500,
      names,
    });
    expect(isReadable).toBe(false);
    expect(side).toBeLessThan(2);
    const [box] = boxes;
    expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThanOrEqual(860);
    expect((box?.y ?? 0) + (box?.height ?? 0)).toBeLessThanOrEqual(620);
  });

  test.each([2, 4, 7, 12])("%d panels do not touch each other", (count) => {
    const { boxes } = layPanels({ width: 1200, height: 700, count, nRows: 30, nColumns: 40, names });
    expect(boxes).toHaveLength(count);
    for (const [place, a] of boxes.entries()) {
      for (const b of boxes.slice(place + 1)) {
        const isApart = a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y;
        expect(isApart).toBe(true);
      }
    }
  });
});

test("a point is in the cell it is drawn in, also of a part", () => {
  const [box, cell] = [
    { x: 100, y: 50, width: 40, height: 40 },
    { width: 10, height: 10 },
  ];
  const part = { rows: [6, 10] as [number, number], columns: [2, 6] as [number, number] };
  expect(cellAt(box, cell, part, 100, 50)).toEqual({ query: 6, key: 2 });
  expect(cellAt(box, cell, part, 139, 89)).toEqual({ query: 9, key: 5 });
  expect(cellAt(box, cell, part, 140, 60)).toBeNull();
  expect(cellAt(box, cell, part, 110, 49)).toBeNull();
});

describe("the rectangle in view", () => {
  test("stays inside, has four cells at least, and is none where it is everything", () => {
    expect(fitted({ rows: [-3, 5], columns: [98, 99] }, whole(100))).toEqual({ rows: [0, 8], columns: [96, 100] });
    expect(fitted({ rows: [0, 100.4], columns: [-1, 130] }, whole(100))).toBeNull();
    expect(fitted({ rows: [0, 1], columns: [0, 1] }, whole(3))).toBeNull();
  });

  test("grows and shrinks around a cell", () => {
    const closer = scaledAround(whole(100), { query: 20, key: 80 }, 0.5);
    expect(closer.rows[1] - closer.rows[0]).toBeCloseTo(50);
    // The cell keeps its share of the way through the rectangle.
    expect((20.5 - closer.rows[0]) / 50).toBeCloseTo(0.205);
    expect((80.5 - closer.columns[0]) / 50).toBeCloseTo(0.805);
  });

  test("moves, and spans two cells in any order", () => {
    expect(moved({ rows: [2, 6], columns: [1, 5] }, 3, -1)).toEqual({ rows: [5, 9], columns: [0, 4] });
    expect(spanOf({ query: 7, key: 2 }, { query: 3, key: 4 })).toEqual({ rows: [3, 8], columns: [2, 5] });
  });
});
