import { describe, expect, it } from "vitest";
import { headMap, PointSet } from "../data/atlasPoints";
import { Raster } from "../marks/raster";
import { LIGHT, type Rgb } from "../theme";
import { CloudPainter, dotOf } from "./atlasPicture";

const rows = Int32Array.from({ length: 50 }, (_, row) => row);
const set = new PointSet([{ role: "query", stack: "main", rows }]);
const spread = Uint16Array.from({ length: 100 }, (_, i) => (i * 7919) % 65536);
const map = headMap(set, spread, 2, [0, 0], 1);
const INK: Rgb = [200, 0, 0];
const look = { inks: [INK], theme: LIGHT, turn: { around: 0, up: 0 }, scale: 1, share: 1 };
const box = { x: 0, y: 0, width: 60, height: 60 };

function reds(lit: Int32Array | null, side: Int32Array | null, share = 1): number {
  const raster = new Raster(60, 60).fill(LIGHT.background);
  const painted = { map, colours: new Uint8Array(50), sizes: null, lit, side };
  new CloudPainter().paint(raster, painted, box, box, { ...look, share });
  let count = 0;
  for (let at = 0; at < raster.pixels.length; at += 4)
    if ((raster.pixels[at] as number) > 2 * (raster.pixels[at + 1] as number)) count++;
  return count;
}

describe("a cloud", () => {
  it("has dots that are smaller and fainter the more there are", () => {
    const sizes = [12, 1000, 20_000, 1_000_000].map((count) => dotOf(count, 800));
    for (const [i, { diameter, alpha }] of sizes.slice(1).entries()) {
      expect(diameter).toBeLessThanOrEqual(sizes[i]?.diameter as number);
      expect(alpha).toBeLessThanOrEqual(sizes[i]?.alpha as number);
    }
    expect(sizes.at(-1)?.diameter).toBeGreaterThan(1);
  });

  it("keeps its colours where it is lit, and only there", () => {
    const all = reds(null, null);
    expect(all).toBeGreaterThan(300);
    expect(reds(Int32Array.of(3), null)).toBeGreaterThan(0);
    expect(reds(Int32Array.of(3), null)).toBeLessThan(all / 10);
    expect(reds(new Int32Array(0), null)).toBe(0);
  });

  it("leaves out the points of roles that are not shown, and most while it moves", () => {
    const all = reds(null, null);
    expect(reds(null, Int32Array.of(1, 2, 3))).toBeLessThan(0.75 * all);
    expect(reds(null, null, 0.3)).toBeLessThan(0.75 * all);
  });
});
