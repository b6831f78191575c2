import { describe, expect, it } from "vitest";
import { Columns, type Room } from "./columns";

const room = (change: Partial<Room> = {}): Room => ({
  width: 860,
  height: 720,
  axis: "vertical",
  count: { query: 17, key: 17 },
  text: { query: 60, key: 60 },
  nHeads: 1,
  hasSegments: false,
  ...change,
});

describe("columns of tokens", () => {
  it("use the height they have, within what reads well", () => {
    expect(new Columns(room({ count: { query: 5, key: 5 } })).pitch).toBe(32);
    const many = new Columns(room({ count: { query: 40, key: 40 } }));
    expect(many.pitch).toBeCloseTo(668 / 40);
    expect(many.isLong).toBe(false);
    expect(many.map).toBeNull();
  });

  it("scroll when they do not fit, and show where they are", () => {
    const columns = new Columns(room({ count: { query: 1200, key: 1200 } }));
    expect(columns.isLong).toBe(true);
    expect(columns.map).not.toBeNull();
    const [first, last] = columns.visible("query", columns.furthest);
    expect(last).toBe(1200);
    expect(last - first).toBeLessThan(40);
  });

  it("meet at both ends when one side is shorter", () => {
    const columns = new Columns(room({ count: { query: 200, key: 100 } }));
    expect(columns.visible("key", 0)[0]).toBe(0);
    expect(columns.visible("key", columns.furthest)[1]).toBe(100);
    expect(columns.visible("query", columns.furthest)[1]).toBe(200);
  });

  it("find the token under the pointer on either side, and none between", () => {
    for (const axis of ["vertical", "horizontal"] as const) {
      const columns = new Columns(room({ axis }));
      for (const side of ["query", "key"] as const) {
        const { x, y } = columns.point(
          columns.at(side, 7, 0),
          side === "query" ? columns.start - 20 : columns.end + 20,
        );
        expect(columns.hit(x, y, 0)).toEqual({ side, index: 7 });
      }
      const middle = columns.point(columns.at("query", 7, 0), (columns.start + columns.end) / 2);
      expect(columns.hit(middle.x, middle.y, 0)).toBeNull();
    }
  });

  it("bring a token into the middle", () => {
    const columns = new Columns(room({ count: { query: 1200, key: 1200 } }));
    const scroll = columns.centred({ side: "key", index: 600 });
    expect(columns.at("key", 600, scroll)).toBeCloseTo((columns.from + columns.to) / 2);
    expect(columns.centred({ side: "key", index: 0 })).toBe(0);
  });

  it("keep room for lines and text in a narrow window", () => {
    const columns = new Columns(room({ width: 360, nHeads: 12, hasSegments: true }));
    expect(columns.start).toBeGreaterThan(0);
    expect(columns.end - columns.start).toBeGreaterThanOrEqual(60);
    expect(columns.end + columns.label.key).toBeLessThanOrEqual(360);
  });
});
