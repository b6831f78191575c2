import { describe, expect, it } from "vitest";
import { between, fitting, panned, seenBox, under, within, zoomed } from "./atlasCamera";

const SCREEN = { width: 800, height: 600 };
const NONE = { side: 0, top: 0, bottom: 0 };

describe("a camera", () => {
  it("sees a box whole, in the middle, within its margin", () => {
    const camera = fitting({ x: 100, y: 50, width: 200, height: 400 }, SCREEN, { side: 50, top: 20, bottom: 80 });
    const box = seenBox(camera, { x: 100, y: 50, width: 200, height: 400 });
    expect(box.height).toBeCloseTo(500);
    expect(box.y).toBeCloseTo(20);
    expect(box.x + box.width / 2).toBeCloseTo(400);
  });

  it("keeps what is under the pointer there while it zooms, and stops at its limits", () => {
    const camera = { x: 10, y: 20, zoom: 2 };
    const at = { x: 300, y: 200 };
    const near = zoomed(camera, 3, at, 0.1, 100);
    expect(under(near, at)).toEqual(under(camera, at));
    expect(zoomed(camera, 1000, at, 0.1, 100).zoom).toBe(100);
    expect(zoomed(camera, 1e-9, at, 0.1, 100).zoom).toBe(0.1);
  });

  it("follows the hand", () => {
    const camera = { x: 10, y: 20, zoom: 2 };
    const spot = under(camera, { x: 100, y: 100 });
    const moved = panned(camera, 30, -10);
    expect(under(moved, { x: 130, y: 90 })).toEqual(spot);
  });

  it("does not lose the plane from sight", () => {
    const lost = within({ x: 9000, y: -9000, zoom: 1 }, { x: 0, y: 0, width: 100, height: 100 }, SCREEN);
    expect(under(lost, { x: 400, y: 300 })).toEqual({ x: 100, y: 0 });
  });

  it("flies from one place to another without leaving the way", () => {
    const from = fitting({ x: 0, y: 0, width: 1200, height: 1200 }, SCREEN, NONE);
    const to = fitting({ x: 900, y: 300, width: 100, height: 100 }, SCREEN, NONE);
    expect(between(from, to, 0, SCREEN)).toEqual(from);
    const end = between(from, to, 1, SCREEN);
    expect(end.x).toBeCloseTo(to.x);
    expect(end.zoom).toBeCloseTo(to.zoom);
    for (let share = 0; share <= 1; share += 0.1) {
      const { x, y, width } = seenBox(between(from, to, share, SCREEN), { x: 900, y: 300, width: 100, height: 100 });
      expect(x + width / 2).toBeGreaterThan(0);
      expect(x + width / 2).toBeLessThan(800);
      expect(y).toBeGreaterThan(-1);
    }
  });
});
