import { describe, expect, it } from "vitest";
import type { AtlasLinesProps } from "../contract";
import { headMap, PointSet } from "../data/atlasPoints";
import type { Part } from "../wire";
import { linksOf } from "./atlasOverlay";

const rows = Int32Array.of(0, 1, 2);
const set = new PointSet([
  { role: "query", stack: "main", rows },
  { role: "key", stack: "main", rows },
]);
const map = headMap(set, new Uint16Array(12), 2, [0, 0], 1);
const part: Part<AtlasLinesProps> = {
  kind: "lines",
  props: { head: "L0H0", note: "" },
  arrays: {
    keys: { dtype: "int32", code: "linear", shape: [3, 2], values: Int32Array.of(0, -1, 0, 1, 1, 2) },
    weights: { dtype: "float32", code: "linear", shape: [3, 2], values: Float32Array.of(1, 0, 0.7, 0.2, 0.6, 0.3) },
  },
};

const linked = (role: string, row: number) =>
  linksOf(map, part, [set.pointOf(role, row)]).map(({ query, key, weight }) => [
    set.row[query],
    set.row[key],
    Number(weight.toFixed(2)),
  ]);

describe("lines to the strongest keys", () => {
  it("lead from a query to its keys, the strongest first, and to none where there is none", () => {
    expect(linked("query", 1)).toEqual([
      [1, 0, 0.7],
      [1, 1, 0.2],
    ]);
    expect(linked("query", 0)).toEqual([[0, 0, 1]]);
  });

  it("lead to a key from the queries that have it among theirs", () => {
    expect(linked("key", 1)).toEqual([
      [2, 1, 0.6],
      [1, 1, 0.2],
    ]);
  });
});
