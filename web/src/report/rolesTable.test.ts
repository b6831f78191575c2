import { describe, expect, test } from "vitest";
import { Contents } from "./contents";
import { REPORT } from "./report.fixture";
import { type Sorting, sortedBy, sortedHeads } from "./rolesTable";

const contents = new Contents(REPORT);
const BY_HEAD: Sorting = { by: "head", isDown: false };

describe("the table of roles", () => {
  test("goes by heads at first", () => expect(sortedHeads(contents, "", "", BY_HEAD)).toEqual([0, 1, 2, 3]));

  test("is sorted by any column, with what has no number last either way", () => {
    expect(sortedHeads(contents, "", "", { by: "score", isDown: true })).toEqual([1, 3, 0, 2]);
    expect(sortedHeads(contents, "", "", { by: "score", isDown: false })).toEqual([3, 1, 0, 2]);
    expect(sortedHeads(contents, "", "", { by: "interval", isDown: true })).toEqual([3, 0, 1, 2]);
    expect(sortedHeads(contents, "", "", { by: "role", isDown: false })).toEqual([3, 0, 2, 1]);
    expect(sortedHeads(contents, "", "", { by: "also", isDown: true })).toEqual([1, 3, 0, 2]);
  });

  test("is sorted by trust, the best first, and those that were not asked for last", () => {
    const trust = (["not supported", "supported", null, "mixed"] as const).map(
      (verdict) => verdict && { verdict, sentences: [] },
    );
    const tested = new Contents({ ...REPORT, trust });
    expect(sortedHeads(tested, "", "", { by: "trust", isDown: true })).toEqual([1, 3, 0, 2]);
    expect(sortedHeads(tested, "", "", { by: "trust", isDown: false })).toEqual([0, 3, 1, 2]);
    expect(sortedHeads(contents, "", "", { by: "trust", isDown: true })).toEqual([0, 1, 2, 3]);
  });

  test("is filtered by family, and by words in the name of a head or in any of its roles", () => {
    expect(sortedHeads(contents, "none", "", BY_HEAD)).toEqual([0, 2]);
    expect(sortedHeads(contents, "", " NSUBJ ", BY_HEAD)).toEqual([1]);
    expect(sortedHeads(contents, "", "l1h", BY_HEAD)).toEqual([2, 3]);
    expect(sortedHeads(contents, "position", "l1h", BY_HEAD)).toEqual([]);
  });

  test("a click sorts names from the first, numbers from the largest; another turns it round", () => {
    expect(sortedBy(BY_HEAD, "score")).toEqual({ by: "score", isDown: true });
    expect(sortedBy({ by: "score", isDown: true }, "score")).toEqual({ by: "score", isDown: false });
    expect(sortedBy({ by: "score", isDown: true }, "role")).toEqual({ by: "role", isDown: false });
    expect(sortedBy(BY_HEAD, "head")).toEqual({ by: "head", isDown: true });
  });
});
