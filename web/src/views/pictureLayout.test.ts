import { describe, expect, test } from "vitest";
import { layChips, layPictures, patchBox, patchIn, placesOf, snapped } from "./pictureLayout";

test("chips stand side by side, and begin a line where they have no room", () => {
  const { boxes, bottom } = layChips([100, 100, 100], 240);
  expect(boxes.map(({ x, y }) => [x, y])).toEqual([
    [16, 10],
    [122, 10],
    [16, 36],
  ]);
  expect(bottom).toBe(66);
  expect(layChips([], 240).bottom).toBe(10);
});

describe.each([1, 2, 5, 12])("%d pictures", (count) => {
  const boxes = layPictures({ width: 1100, height: 700, top: 40, count, shape: 0.75 });

  test("keep their shape, and stay below the chips and on the page", () => {
    expect(boxes).toHaveLength(count);
    for (const { x, y, width, height } of boxes) {
      expect(height).toBe(Math.round(width * 0.75));
      expect(y).toBeGreaterThanOrEqual(40);
      expect(x + width).toBeLessThanOrEqual(1100);
      expect(y + height).toBeLessThanOrEqual(700);
    }
  });

  test("do not touch each other", () => {
    for (const [place, a] of boxes.entries()) {
      for (const b of boxes.slice(place + 1)) {
        const isApart = a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y;
        expect(isApart).toBe(true);
      }
    }
  });
});

test("a point is in the patch that is drawn there", () => {
  const [box, cell] = [
    { x: 50, y: 20, width: 140, height: 70 },
    { width: 20, height: 10 },
  ];
  for (const patch of [0, 6, 7, 48]) {
    const { x, y, width, height } = patchBox(box, cell, 7, patch);
    expect(patchIn(box, cell, [7, 7], x + width / 2, y + height / 2)).toBe(patch);
  }
  expect(patchIn(box, cell, [7, 7], 191, 30)).toBe(-1);
});

test("patches know their tokens, and those without one that they have none", () => {
  expect([...placesOf(Int32Array.of(-1, 2, 0), 4)]).toEqual([2, -1, 1, -1]);
});

test("neighbours on whole pixels neither overlap nor leave a gap", () => {
  const area = { x: 0, y: 0, width: 10, height: 10 };
  const [a, b] = [0, 1].map((at) => snapped({ x: at * 3.4, y: 0, width: 3.4, height: 11 }, area));
  expect((a?.x ?? 0) + (a?.width ?? 0)).toBe(b?.x);
  expect(b?.height).toBe(10);
});
