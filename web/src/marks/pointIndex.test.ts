import { describe, expect, it } from "vitest";
import { PointIndex } from "./pointIndex";
import { packed } from "./points";

describe("an index of points", () => {
  const places = Uint32Array.from([packed(100, 100), packed(5000, 5000), packed(5010, 5000), packed(65535, 65535)]);
  const index = new PointIndex(places);

  it("finds the nearest, within reach", () => {
    expect(index.nearest(120, 90, 50)).toBe(0);
    expect(index.nearest(5004, 5000, 50)).toBe(1);
    expect(index.nearest(5006, 5000, 50)).toBe(2);
    expect(index.nearest(65535, 65000, 600)).toBe(3);
    expect(index.nearest(3000, 3000, 50)).toBe(-1);
    expect(index.nearest(-900, 70000, 50)).toBe(-1);
  });

  it("looks at those alone that are shown", () => {
    expect(index.nearest(5004, 5000, 50, (point) => point !== 1)).toBe(2);
  });

  it("takes the upper of two at one place", () => {
    expect(new PointIndex(Uint32Array.from([packed(9, 9), packed(9, 9)])).nearest(9, 9, 5)).toBe(1);
  });

  it("finds what is in a box and in a lasso, as a look at each point does", () => {
    let state = 5;
    const next = () => {
      state = (Math.imul(state, 1103515245) + 12345) >>> 0;
      return state >>> 16;
    };
    const many = Uint32Array.from({ length: 3000 }, () => packed(next(), next()));
    const large = new PointIndex(many);
    const inside = (keep: (x: number, y: number) => boolean) =>
      [...many.keys()].filter((point) => keep((many[point] as number) & 0xffff, (many[point] as number) >>> 16));
    const box = [...large.inBox(10000, 20000, 30000, 60000)].sort((a, b) => a - b);
    expect(box).toEqual(inside((x, y) => x >= 10000 && x <= 30000 && y >= 20000 && y <= 60000));
    // A triangle whose sides are two axes and a diagonal.
    const lasso = [...large.inLasso([0, 0, 50000, 0, 0, 50000])].sort((a, b) => a - b);
    expect(lasso).toEqual(inside((x, y) => x + y < 50000));
    expect(lasso.length).toBeGreaterThan(500);
  });

  it("finds nothing in a lasso of two corners, and among no points", () => {
    expect(index.inLasso([0, 0, 70000, 70000])).toHaveLength(0);
    expect(new PointIndex(new Uint32Array(0)).nearest(1, 1, 100)).toBe(-1);
  });
});
