import { describe, expect, it } from "vitest";
import type { Selection } from "../selection";
import { type Between, betweenOf, cutOff, Lines, possible, reachOf } from "./lines";
import { Plane } from "./plane";
import { readingOf } from "./reading";

const ROWS = [
  [1, 0, 0, 0],
  [0.001, 0.999, 0, 0],
  [0.25, 0.25, 0.5, 0],
  [0.25, 0.25, 0.25, 0.25],
];
const plane = (rows = ROWS) => {
  const values = Float32Array.from(rows.flat());
  return new Plane(rows.length, rows[0]?.length ?? 0, values, values);
};
const ALL: Between = { queries: new Uint8Array(4).fill(1), keys: new Uint8Array(4).fill(1) };
const by = (filter: Selection["filter"], value = 0) => ({ filter, threshold: value, mass: value, top: value });

function drawn(lines: Lines): string {
  const rows: string[] = [];
  for (let query = 0; query < lines.plane.nQueries; query++) {
    let row = "";
    lines.plane.row(query, (cell, key) => {
      row += lines.has(cell, query, key) ? "x" : ".";
    });
    rows.push(row);
  }
  return rows.join(" ");
}

describe("lines drawn", () => {
  it("are all that can be seen", () => {
    const lines = new Lines(plane(), by("all"), 1, ALL);
    expect(drawn(lines)).toBe("x... .x.. xxx. xxxx");
    expect(lines.count).toBe(9);
  });

  it("are fewer when many heads share the picture", () => {
    expect(drawn(new Lines(plane(), by("all"), 200, ALL))).toBe("x... .x.. ..x. ....");
  });

  it("begin at a weight, that weight included", () => {
    expect(drawn(new Lines(plane(), by("threshold", 0.25), 1, ALL))).toBe("x... .x.. xxx. xxxx");
    expect(drawn(new Lines(plane(), by("threshold", 0.3), 1, ALL))).toBe("x... .x.. ..x. ....");
  });

  it("are the strongest of each query; of equal ones the first", () => {
    expect(drawn(new Lines(plane(), by("top", 1), 1, ALL))).toBe("x... .x.. ..x. x...");
    const two = new Lines(plane(), by("top", 2), 1, ALL);
    expect(drawn(two)).toBe("x... xx.. x.x. xx..");
    expect(two.count).toBe(7);
  });

  it("are the strongest that make up a share of each query's weight", () => {
    expect(drawn(new Lines(plane(), by("mass", 0.7), 1, ALL))).toBe("x... .x.. x.x. xxx.");
    expect(drawn(new Lines(plane(), by("mass", 1), 1, ALL))).toBe("x... xx.. xxx. xxxx");
    expect(drawn(new Lines(plane(), by("mass", 0), 1, ALL))).toBe(".... .... .... ....");
  });

  it("run between the sentences that are asked for", () => {
    const between = { queries: Uint8Array.of(0, 0, 1, 1), keys: Uint8Array.of(1, 1, 0, 0) };
    expect(drawn(new Lines(plane(), by("all"), 1, between))).toBe(".... .... xx.. xx..");
    expect(drawn(new Lines(plane(), by("top", 1), 1, between))).toBe(".... .... x... x...");
  });

  it("follow from the strongest keys alone as from all", () => {
    const keys = Int32Array.from([0, -1, 1, 0, 2, 0, 0, 1]);
    const values = Float32Array.from([1, 0, 0.999, 0.001, 0.5, 0.25, 0.25, 0.25]);
    const lines = new Lines(new Plane(4, 4, values, values, keys, 2), by("top", 1), 1, ALL);
    expect(drawn(lines)).toBe("x x. x. x.");
    expect(lines.count).toBe(4);
  });

  it("are a share of the whole weight where only the strongest keys are known: all of them when they do not reach it", () => {
    const keys = Int32Array.from([0, 1, 1, 0, 2, 0, 0, 1]);
    const values = Float32Array.from([0.8, 0.1, 0.6, 0.1, 0.4, 0.2, 0.25, 0.25]);
    const few = new Plane(4, 4, values, values, keys, 2, 1);
    expect(drawn(new Lines(few, by("mass", 0.7), 1, ALL))).toBe("x. xx xx xx");
    expect(drawn(new Lines(few, by("mass", 0.25), 1, ALL))).toBe("x. x. x. x.");
    // Without key 0, the share is one of what can go to the others: 0.2, 0.9, 0.8 and 0.75.
    const others = { queries: ALL.queries, keys: Uint8Array.of(0, 1, 1, 1) };
    expect(drawn(new Lines(few, by("mass", 0.5), 1, others))).toBe(".x x. x. .x");
  });
});

describe("the cut", () => {
  it("agrees with sorting, for any numbers", () => {
    let seed = 7;
    const random = () => {
      seed = (seed * 1664525 + 1013904223) >>> 0;
      return Math.round((seed / 2 ** 32) * 50) / 50;
    };
    for (let round = 0; round < 200; round++) {
      const values = Float32Array.from({ length: 1 + (round % 40) }, random).filter((value) => value > 0);
      if (!values.length) continue;
      const sorted = values.toSorted((a, b) => b - a);
      const count = 1 + (round % values.length);
      const { least, ties } = cutOff(values.slice(), values.length, count, false);
      expect(least).toBe(sorted[count - 1]);
      expect(values.filter((value) => value > least).length + ties).toBe(count);
    }
  });
});

describe("lines possible", () => {
  const stack = {
    name: "m",
    kind: "text" as const,
    grid: null,
    texts: ["a", "b", "c", "d"],
    ids: [],
    special: [],
    words: [0, 1, 1, 2],
    sentences: [0, 0, 0, 0],
    segments: ["A", "A", "B", "B"],
    spaces: [],
    looks: "" as const,
    replaced: [],
    boxes: [],
    answer: null,
  };
  const reading = (by: Selection["by"], off: string[] = []) => readingOf(stack, 4, { by, hide: [], off });

  it("count pairs that the mask allows", () => {
    const plain = reading("tokens");
    const of = (pair: Selection["pair"], isCausal: boolean) =>
      possible(reachOf(plain, plain, isCausal), betweenOf(plain, plain, pair), null);
    expect(of("all", false)).toBe(16);
    expect(of("all", true)).toBe(10);
    expect(of("BA", true)).toBe(4);
    expect(of("AB", true)).toBe(0);
  });

  it("count those of one token", () => {
    const plain = reading("tokens");
    const of = (side: "query" | "key", index: number, isCausal: boolean) =>
      possible(reachOf(plain, plain, isCausal), betweenOf(plain, plain, "all"), { side, index });
    expect([of("query", 1, true), of("key", 1, true)]).toEqual([2, 3]);
    expect([of("query", 1, false), of("key", 1, false)]).toEqual([4, 4]);
  });

  it("leave out what is switched off", () => {
    const off = reading("tokens", ["m:0"]);
    expect(possible(reachOf(off, off, true), betweenOf(off, off, "all"), null)).toBe(6);
  });
});
