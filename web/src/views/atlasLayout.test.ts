import { describe, expect, it } from "vitest";
import type { AtlasPlaceProps } from "../contract";
import { cellAt, layoutOf, neighbourOf, SIDE } from "./atlasLayout";

const place = (site: string, layer: number, head: number | null): AtlasPlaceProps => ({
  address: head === null ? site : `${site}H${head}`,
  site,
  layer,
  head,
  is_causal: false,
  clouds: [{ role: "query", stack: "main" }],
});
const SCREEN = { width: 1000, height: 600 };

describe("the plane of an atlas", () => {
  const places = [0, 1, 2].flatMap((layer) => [0, 1].map((head) => place(`L${layer}`, layer, head)));
  const layout = layoutOf(places, SCREEN);

  it("has layers down and heads across", () => {
    const cell = layout.cells.find(({ place: { address } }) => address === "L2H1");
    expect([cell?.row, cell?.column]).toEqual([2, 1]);
    expect(layout.headings.map(({ text }) => text)).toEqual(["L0", "L1", "L2", "H0", "H1"]);
    expect(layout.height).toBeGreaterThan(layout.width);
  });

  it("tells which head a place is of, and which is beside it", () => {
    const [first] = layout.cells;
    if (!first) throw new Error("no cells");
    expect(cellAt(layout, first.x + 1, first.y + 1)).toBe(first);
    expect(cellAt(layout, first.x + SIDE + 2, first.y)).toBeNull();
    expect(neighbourOf(layout, first, 1, 0).place.address).toBe("L0H1");
    expect(neighbourOf(layout, first, 0, 1).place.address).toBe("L1H0");
    expect(neighbourOf(layout, first, -1, 0)).toBe(first);
  });

  it("has a block for each stack, beside or below each other as the room is", () => {
    const two = [
      place("encoder.L0", 0, 0),
      place("encoder.L1", 1, 0),
      place("decoder.L0", 0, 0),
      place("cross.L0", 0, 0),
    ];
    const wide = layoutOf(two, { width: 1000, height: 300 });
    expect(wide.headings.filter(({ kind }) => kind === "title").map(({ text }) => text)).toEqual([
      "encoder",
      "decoder",
      "cross",
    ]);
    expect(wide.width).toBeGreaterThan(wide.height);
    const tall = layoutOf(two, { width: 300, height: 1000 });
    expect(tall.height).toBeGreaterThan(tall.width);
  });

  it("puts depths of the residual stream line after line", () => {
    const depths = layoutOf(
      Array.from({ length: 7 }, (_, layer) => place(`L${layer}`, layer, null)),
      SCREEN,
    );
    expect(new Set(depths.cells.map(({ row }) => row)).size).toBe(2);
    expect(depths.headings).toEqual([]);
  });
});
