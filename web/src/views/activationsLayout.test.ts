import { describe, expect, test } from "vitest";
import { Layout, READABLE, TOP } from "./activationsLayout";

const shape = { width: 500, height: 360, nPlaces: 6, nTokens: 100, names: 30, hasWords: true };

describe("where cells lie", () => {
  test("cells with words are never too narrow for them, and are scrolled by whole columns", () => {
    const layout = new Layout(shape, 100);
    expect(layout.cell.width).toBe(READABLE.width);
    expect(layout.origin % READABLE.width).toBe(0);
    expect(layout.visible[0]).toBe(2);
    expect(layout.hit(layout.xOf(3) + 1, TOP + 1)).toEqual({ place: 0, position: 3 });
    expect(layout.hit(layout.xOf(3) + 1, 2)).toEqual({ place: -1, position: 3 });
    expect(layout.hit(2, TOP + 1)).toBeNull();
  });

  test("without words all tokens fit", () => {
    const layout = new Layout({ ...shape, hasWords: false }, 50);
    expect(layout.furthest).toBe(0);
    expect(layout.visible).toEqual([0, 100]);
    expect(layout.isReadable).toBe(false);
  });

  test("a token out of sight is brought into the middle", () => {
    const layout = new Layout(shape, 0);
    expect(layout.revealing(2)).toBeNull();
    const scroll = layout.revealing(60) as number;
    const [first, last] = new Layout(shape, scroll).visible;
    expect(first < 60 && 60 < last).toBe(true);
    for (const width of [401, 420, 437, 500]) {
      const end = new Layout({ ...shape, width }, new Layout({ ...shape, width }, 0).clamped(1e9));
      expect(end.visible[1]).toBe(100);
    }
  });
});
