import { expect, test } from "vitest";
import { hatch } from "./boxes";
import { Raster, word } from "./raster";

test("a hatched box has a line every few pixels, and nothing outside", () => {
  const raster = new Raster(12, 6).fill([255, 255, 255]);
  hatch(raster, { x: 3, y: 1, width: 6, height: 4 }, [10, 20, 30], 3);
  const dark = word([10, 20, 30]);
  for (let y = 0; y < 6; y++)
    for (let x = 0; x < 12; x++) {
      const isInside = x >= 3 && x < 9 && y >= 1 && y < 5;
      expect(raster.words[y * 12 + x] === dark, `${x}, ${y}`).toBe(isInside && (x + y) % 3 === 0);
    }
});
