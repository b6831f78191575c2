import { expect, test } from "vitest";
import { atlasFrom, atlasParams, cleanedAtlas } from "./atlasSelection";
import { type AtlasSelection, DEFAULT_ATLASSELECTION as DEFAULT } from "./contract";

const OTHER: AtlasSelection = {
  ...DEFAULT,
  atlas: "builtin:bert",
  place: "encoder.L3H2",
  method: "umap",
  dims: 3,
  coordinates: "lifted",
  colour: "tag_upos",
  safe: true,
  size: "norm",
  side: "key",
  labels: false,
  lines: true,
  plot: "distances",
  token: { role: "key", row: 7 },
  sentence: true,
  hide: ["special", "first"],
  weigh: true,
  average: true,
  pictures: true,
  flows: true,
  search: "the|a & b",
  regex: true,
  ignore_case: true,
};

test("a link brings back every option", () => {
  expect(
    Object.keys(OTHER).filter((name) => OTHER[name as keyof AtlasSelection] === DEFAULT[name as keyof AtlasSelection]),
  ).toEqual([]);
  const text = new URLSearchParams(atlasParams(OTHER)).toString();
  expect(atlasFrom(new URLSearchParams(text))).toEqual({ ...OTHER, hide: cleanedAtlas({ ...OTHER }).hide });
});

test("the default is an empty link", () => {
  expect(atlasParams(DEFAULT)).toEqual({});
  expect(atlasFrom(new URLSearchParams())).toEqual(DEFAULT);
});

test("what is not understood is as by default", () => {
  const raw = { method: "mds", dims: 4, token: { role: "query", row: -1 }, hide: "special", labels: "yes", search: 3 };
  expect(cleanedAtlas(raw)).toEqual(DEFAULT);
});
