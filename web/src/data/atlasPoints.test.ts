import { describe, expect, it } from "vitest";
import { headMap, PointSet } from "./atlasPoints";
import { shuffledOrder } from "./shuffle";

const rows = Int32Array.of(2, 5, 9);
const set = () =>
  new PointSet([
    { role: "query", stack: "main", rows },
    { role: "key", stack: "main", rows },
  ]);

describe("a shuffled order", () => {
  it("has everything once, the same each time, and mixed", () => {
    const order = shuffledOrder(1000);
    expect([...order].sort((a, b) => a - b)).toEqual([...Array(1000).keys()]);
    expect([...order]).toEqual([...shuffledOrder(1000)]);
    const early = order.slice(0, 500).filter((index) => index < 500).length;
    expect(early).toBeGreaterThan(200);
    expect(early).toBeLessThan(300);
  });
});

describe("the points of a picture", () => {
  it("know their role and token, and are found by them", () => {
    const points = set();
    expect(points.count).toBe(6);
    for (const role of ["query", "key"]) {
      for (const row of rows) {
        const point = points.pointOf(role, row);
        expect([points.role(point), points.row[point], points.stack(point)]).toEqual([role, row, "main"]);
      }
    }
    expect(points.pointOf("query", 3)).toBe(-1);
    expect(points.pointOf("value", 5)).toBe(-1);
  });

  it("are found by rows in every role", () => {
    const points = set();
    const lit = points.pointsOf({ main: Int32Array.of(5, 6), other: Int32Array.of(2) });
    expect([...lit].map((point) => points.row[point])).toEqual([5, 5]);
  });

  it("take numbers that came in the order of the part", () => {
    const points = set();
    const values = points.arranged(Float32Array.of(0, 1, 2, 10, 11, 12));
    expect(values[points.pointOf("key", 9)]).toBe(12);
    expect(values[points.pointOf("query", 2)]).toBe(0);
  });
});

describe("the map of a head", () => {
  it("is in the middle of its square, upwards, and gives its numbers back", () => {
    const pair = new PointSet([{ role: "query", stack: "main", rows: Int32Array.of(0, 1) }]);
    const map = headMap(pair, Uint16Array.of(0, 0, 65535, 10001), 2, [-1, 5], 0.5);
    const at = (row: number) => {
      const place = map.places[pair.pointOf("query", row)] as number;
      return [place & 65535, place >>> 16];
    };
    expect(at(0)[0]).toBe(0);
    expect(at(1)[0]).toBe(65535);
    const [, low] = at(0);
    const [, high] = at(1);
    expect((low as number) - (high as number)).toBe(10001);
    expect(Math.abs((low as number) + (high as number) - 65535)).toBeLessThanOrEqual(1);
    expect((map.low[1] as number) + map.step * (65535 - (high as number))).toBeCloseTo(5 + 0.5 * 10001);
    expect(map.bounds[0]).toBe(0);
    expect(map.bounds[3] - map.bounds[1]).toBeCloseTo(10001 / 65535, 4);
  });

  it("refuses another number of places than there are points", () => {
    expect(() => headMap(set(), new Uint16Array(4), 2, [0, 0], 1)).toThrow("2 places came for the 6 points");
  });
});
