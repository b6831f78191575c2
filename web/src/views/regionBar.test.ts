import { expect, test } from "vitest";
import { blocking } from "./regionBar";

test("a region is blocked in pixels of the picture as it was given", () => {
  const region = { shares: [], source: [40, 30.5, 200, 180] as [number, number, number, number] };
  expect(blocking("L3H1", 7, region)).toBe("block('L3H1', [7], 'box:40,30.5,200,180')");
  expect(blocking("cross.L3", 0, region)).toBe("block('cross.L3', [0], 'box:40,30.5,200,180')");
});
