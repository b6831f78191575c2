import { describe, expect, test } from "vitest";
import { inWindow, layChips, layPictures, placesOf, snapped } from "./pictureLayout";

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

describe("chips over the picture", () => {
  const { boxes, bottom } = layChips(Array(40).fill(80), 300);

  test("are all there where there is room", () => {
    expect(inWindow(boxes, bottom, 900, { top: 0, focus: -1 }, 3)).toEqual({ top: 0, most: 0, bottom });
  });

  test("move by whole lines to the one in focus, and stay where that stays", () => {
    const first = inWindow(boxes, bottom, 120, { top: 0, focus: -1 }, 39);
    const last = boxes[39] as { y: number; height: number };
    expect(first.bottom).toBeLessThanOrEqual(120);
    expect(last.y + last.height - first.top).toBeLessThanOrEqual(first.bottom);
    expect(first.top).toBe(first.most);
    expect(inWindow(boxes, bottom, 120, { top: 26, focus: 39 }, 39).top).toBe(26);
    expect(inWindow(boxes, bottom, 120, { top: first.top, focus: 39 }, 0).top).toBe(0);
  });
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
