import { describe, expect, it } from "vitest";
import type { SiteProps } from "../contract";
import { blocksOf, gridOf, headAt, neighbour, rankedOf, scrollTo } from "./grid";

function layers(count: number, heads: number, stack = "model", kind: "self" | "cross" = "self"): SiteProps[] {
  return Array.from({ length: count }, (_, layer) => ({
    site: `${stack}.${kind}.L${layer}`,
    stack,
    kind,
    layer,
    n_heads: heads,
    n_queries: 10,
    n_keys: 10,
    key_stack: kind === "cross" ? "encoder" : stack,
    is_causal: false,
    no_weights: "",
    no_scores: "",
    no_contributions: "",
    no_neurons: "",
    window: 0,
    global_tokens: [],
    no_token_edits: "",
    grid: null,
    places: [],
    n_experts: 0,
  }));
}

describe("the grid of heads", () => {
  it("fits every head on the screen, from 2 × 2 to 48 × 64", () => {
    for (const [count, heads] of [
      [2, 2],
      [6, 8],
      [12, 12],
      [24, 16],
      [48, 64],
    ] as const) {
      const grid = gridOf(layers(count, heads), 860, 720, false);
      expect(grid.places).toHaveLength(count * heads);
      expect(Math.max(...grid.places.map((place) => place.x)) + grid.size).toBeLessThanOrEqual(860);
      expect(Math.max(...grid.places.map((place) => place.y)) + grid.size).toBeLessThanOrEqual(720);
      expect(grid.size).toBeGreaterThanOrEqual(10);
    }
  });

  it("keeps the model's layer numbers and names the layers without softmax attention", () => {
    const attending = layers(8, 4).filter(({ layer }) => layer === 3 || layer === 5);
    const others = [0, 1, 2, 4, 6, 7].map((layer) => ({ stack: "model", layer, mixer: "GatedDeltaNet" }));
    const grid = gridOf(attending, 860, 720, false, others);
    const labels = grid.marks.filter(({ text }) => text.startsWith("L")).map(({ text }) => text);
    expect(labels).toEqual([
      "L0–L2: no softmax attention (GatedDeltaNet)",
      "L3",
      "L4: no softmax attention (GatedDeltaNet)",
      "L5",
      "L6–L7: no softmax attention (GatedDeltaNet)",
    ]);
    expect(grid.height).toBeLessThanOrEqual(720);
    const [gap, row] = [grid.marks.find(({ text }) => text.startsWith("L4")), grid.places[4]];
    expect(gap?.y).toBeGreaterThan((grid.places[0]?.y ?? 0) + grid.size);
    expect(gap?.y).toBeLessThan(row?.y ?? 0);
  });

  it("scrolls rather than draw heads smaller than ten pixels", () => {
    const grid = gridOf(layers(48, 64), 400, 300, false);
    expect(grid.size).toBe(10);
    expect(grid.width).toBeGreaterThan(400);
    expect(grid.height).toBeGreaterThan(300);
  });

  it("puts encoder, decoder and cross-attention where they are largest, apart from each other", () => {
    const all = [...layers(6, 8, "encoder"), ...layers(6, 8, "decoder"), ...layers(6, 8, "decoder", "cross")];
    expect(blocksOf(all).map((block) => block.title)).toEqual([
      "encoder",
      "decoder",
      "cross-attention, decoder → encoder",
    ]);
    const wide = gridOf(all, 1600, 500, false);
    const tall = gridOf(all, 500, 1600, false);
    expect(new Set(wide.places.map((place) => place.y)).size).toBe(6);
    expect(new Set(tall.places.map((place) => place.y)).size).toBe(18);
    const seen = new Set(wide.places.map((place) => `${place.x} ${place.y}`));
    expect(seen.size).toBe(144);
  });

  it("leaves room for words when pictures stay large", () => {
    expect(gridOf(layers(6, 8), 860, 720, true).caption).toBeGreaterThan(0);
    expect(gridOf(layers(12, 12), 860, 720, true).caption).toBe(0);
  });

  it("ranks heads line after line", () => {
    const heads = layers(12, 12).flatMap((site) => Array.from({ length: 12 }, (_, head) => ({ site, head })));
    const grid = rankedOf(heads, 860, 720, 40);
    expect(grid.places.map(({ site, head }) => ({ site, head }))).toEqual(heads);
    expect(grid.places[1]?.y).toBe(grid.places[0]?.y);
    expect(grid.width).toBeLessThanOrEqual(860);
  });
});

describe("moving from head to head", () => {
  const { places } = gridOf(layers(3, 4), 400, 300, false);
  const at = (layer: number, head: number) => places.find((place) => place.site.layer === layer && place.head === head);
  const step = (from: ReturnType<typeof at>, by: [number, number]) => neighbour(places, from as (typeof places)[0], by);

  it("goes to the next in a row or column", () => {
    expect(step(at(1, 1), [1, 0])).toBe(at(1, 2));
    expect(step(at(1, 1), [0, -1])).toBe(at(0, 1));
  });

  it("goes on in the next row, and ends at the edges", () => {
    expect(step(at(0, 3), [1, 0])).toBe(at(1, 0));
    expect(step(at(1, 0), [-1, 0])).toBe(at(0, 3));
    expect(step(at(2, 1), [0, 1])).toBeUndefined();
  });
});

describe("a head on the page", () => {
  const grid = gridOf(layers(6, 8), 860, 720, true);

  it("is under its picture and the words below, and nowhere else", () => {
    for (const place of grid.places) {
      expect(headAt(grid, place.x + grid.size / 2, place.y + grid.size / 2)).toBe(place);
      expect(headAt(grid, place.x + 1, place.y + grid.size + grid.caption - 1)).toBe(place);
    }
    expect(headAt(grid, 2, 2)).toBeNull();
  });

  it("is scrolled to no further than needed", () => {
    const target = { ...(grid.places[0] as (typeof grid.places)[0]), x: 500, y: 900 };
    const view = { x: 0, y: 0, width: 400, height: 300 };
    expect(scrollTo(target, grid, view)).toEqual({ x: 500 + grid.size + 24 - 400, y: 900 + grid.size + 24 - 300 });
    expect(scrollTo(target, grid, { ...view, x: 600, y: 1000 })).toEqual({ x: 460, y: 876 });
    expect(scrollTo(target, grid, { ...view, x: 450, y: 860 })).toEqual({ x: 450, y: 860 });
  });
});
