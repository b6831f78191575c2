import { describe, expect, it } from "vitest";
import { placeLabels } from "./atlasLabels";

const AREA = { x: 0, y: 0, width: 400, height: 300 };
const candidate = (point: number, x: number, y: number, width = 40) => ({ point, text: `t${point}`, x, y, width });

describe("labels", () => {
  it("give way to more important ones, or go to the other side of their point", () => {
    const placed = placeLabels([candidate(0, 200, 100), candidate(1, 204, 102), candidate(2, 206, 101)], AREA, 10);
    expect(placed.map(({ point, align }) => [point, align])).toEqual([
      [0, "left"],
      [1, "right"],
    ]);
  });

  it("never lie over each other, and lie within the picture", () => {
    const many = Array.from({ length: 500 }, (_, i) => candidate(i, (i * 97) % 400, (i * 61) % 300, 20 + (i % 50)));
    const boxes = placeLabels(many, AREA, 1000).map(({ x, y, width, align }) => {
      const left = align === "left" ? x : x - width;
      return { left, right: left + width, top: y - 6, bottom: y + 6 };
    });
    expect(boxes.length).toBeGreaterThan(40);
    for (const [i, a] of boxes.entries()) {
      expect(a.left).toBeGreaterThanOrEqual(0);
      expect(a.right).toBeLessThanOrEqual(400);
      for (const b of boxes.slice(i + 1))
        expect(a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom).toBe(false);
    }
  });

  it("are no more than asked for, and keep off what is blocked", () => {
    expect(placeLabels([candidate(0, 50, 50), candidate(1, 50, 150)], AREA, 1)).toHaveLength(1);
    const blocked = [{ x: 0, y: 0, width: 400, height: 100 }];
    expect(
      placeLabels([candidate(0, 50, 50), candidate(1, 50, 150)], AREA, 9, blocked).map(({ point }) => point),
    ).toEqual([1]);
  });
});
