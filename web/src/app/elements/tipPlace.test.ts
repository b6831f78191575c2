import { expect, test } from "vitest";
import type { Around } from "../../views/view";
import { tipPlace } from "./tipPlace";

const WINDOW = { width: 1000, height: 600 };
const TIP = { width: 200, height: 80 };

function overlaps({ left, top }: { left: number; top: number }, around: Around): boolean {
  return left < around.right && left + TIP.width > around.left && top < around.bottom && top + TIP.height > around.top;
}

test("a tip never covers what it describes, wherever that is", () => {
  for (let x = 0; x <= 1000; x += 50) {
    for (let y = 0; y <= 600; y += 50) {
      const around = { left: x - 60, top: y - 40, right: x + 60, bottom: y + 40 };
      const place = tipPlace({ x, y }, TIP, WINDOW, around);
      expect(overlaps(place, around), `${x}, ${y}`).toBe(false);
      expect(place.left).toBeGreaterThanOrEqual(6);
      expect(place.left + TIP.width).toBeLessThanOrEqual(994);
    }
  }
});

test("where there is no room beside it, it stands below or above", () => {
  const wide = { left: 10, top: 100, right: 990, bottom: 140 };
  expect(tipPlace({ x: 500, y: 120 }, TIP, WINDOW, wide).top).toBe(150);
  expect(tipPlace({ x: 500, y: 570 }, TIP, WINDOW, { ...wide, top: 550, bottom: 590 }).top).toBe(460);
});

test("without a box it stands beside the pointer", () => {
  expect(tipPlace({ x: 100, y: 100 }, TIP, WINDOW)).toEqual({ left: 114, top: 116 });
  expect(tipPlace({ x: 900, y: 590 }, TIP, WINDOW)).toEqual({ left: 686, top: 514 });
});
