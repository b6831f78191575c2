import { expect, test } from "vitest";
import { isSeparator, numbersOf, PatchBoxes, PatchGrid, patchesIn, positionsIn, regionOf } from "./patches";
import { layer, stack } from "./trace.fixture";

const AREA = { x: 50, y: 20, width: 140, height: 70 };
/** Two words around the left and the right half of a picture, and a thumbnail below. */
const TEXT = stack("main", ["what", "0,0", "0,1", "[row end]", "thumbnail 0,0", "it"], {
  looks: "image",
  boxes: [null, [0, 0, 0.5, 0.8], [0.5, 0, 1, 0.8], null, [0, 0.9, 0.2, 1], null],
});

test("a point is in the patch that is drawn there", () => {
  const grid = new PatchGrid([7, 7], { width: 2, height: 1 }, { width: 14, height: 7 });
  for (const patch of [0, 6, 7, 48]) {
    const { x, y, width, height } = grid.box(patch, AREA);
    expect(grid.at(AREA, x + width / 2, y + height / 2)).toBe(patch);
  }
  expect(grid.at(AREA, 191, 30)).toBe(-1);
});

test("patches of a coarser layer are as large as those that they stand for", () => {
  const patches = patchesIn(stack("main", [], { grid: [8, 8] }), layer("L1", 16, { grid: [4, 4] }), {
    width: 32,
    height: 32,
    patch: [4, 4],
  });
  expect(patches.cell({ x: 0, y: 0, width: 64, height: 64 })).toEqual({ width: 16, height: 16 });
});

test("image tokens within a text are where they say", () => {
  const patches = new PatchBoxes(TEXT.boxes);
  expect(patches.count).toBe(3);
  expect(patches.box(1, AREA)).toEqual({ x: 120, y: 20, width: 70, height: 56 });
  expect([...numbersOf(TEXT)]).toEqual([-1, 0, 1, -1, 2, -1]);
  expect([60, 130, 189].map((x) => patches.at(AREA, x, 30))).toEqual([0, 1, 1]);
  expect(patches.at(AREA, 60, 77)).toBe(-1);
  expect(patches.at(AREA, 60, 85)).toBe(2);
});

test("a region is of the picture as it was given, and on every copy of it", () => {
  const areas = [
    { name: "picture", box: [0, 0, 1, 0.8], source: [0, 0, 400, 200] },
    { name: "thumbnail", box: [0, 0.9, 0.2, 1], source: [0, 0, 400, 200] },
  ] as Parameters<typeof regionOf>[0];
  const region = regionOf(areas, AREA, { x: 155, y: 48 }, { x: 85, y: 34 });
  expect(region?.source).toEqual([100, 50, 300, 100]);
  expect(region?.shares.map((edges) => edges.map((edge) => Number(edge.toFixed(3))))).toEqual([
    [0.25, 0.2, 0.75, 0.4],
    [0.05, 0.925, 0.15, 0.95],
  ]);
  expect(region && positionsIn(TEXT, region)).toEqual([1, 2, 4]);
  expect(regionOf(areas, AREA, { x: 60, y: 30 }, { x: 65, y: 900 })?.source).toEqual([28.6, 35.7, 42.9, 200]);
  expect(regionOf(areas, AREA, { x: 60, y: 78 }, { x: 90, y: 90 })).toBeNull();
  expect(regionOf(areas, AREA, { x: 60, y: 30 }, { x: 60, y: 40 })).toBeNull();
});

test("separators are known by their names", () => {
  expect(["[row end]", "[outside]", "thumbnail [outside]", "[CLS]", "end"].map(isSeparator)).toEqual([
    true,
    true,
    true,
    false,
    false,
  ]);
});
