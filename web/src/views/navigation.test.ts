import { describe, expect, it } from "vitest";
import type { SiteProps } from "../contract";
import { readingOf } from "../data/reading";
import { STACK } from "../data/stack.fixture";
import { DEFAULT, type Selection } from "../selection";
import { nextCell, nextHead, nextLayer, nextToken, switched } from "./navigation";
import type { Scene } from "./scene";
import { Search } from "./search";

const layers = [0, 1].map((layer) => ({ site: `L${layer}`, n_heads: 2 + layer })) as SiteProps[];
const at = (site: string, head: number): Selection => ({ ...DEFAULT, site, head });

function scene(change: Partial<Selection> = {}): Scene {
  const selection = { ...DEFAULT, ...change };
  const reading = readingOf(STACK, 9, selection);
  return { selection, isSelf: true, layer: { queries: reading, keys: reading } } as unknown as Scene;
}

describe("keys lead", () => {
  it("from head to head, on into the next layer and round again", () => {
    expect(nextHead(layers, at("L0", 0), 1)).toEqual({ head: 1, heads: [1] });
    expect(nextHead(layers, at("L0", 1), 1)).toEqual({ site: "L1", head: 0, heads: [0] });
    expect(nextHead(layers, at("L0", 0), -1)).toEqual({ site: "L1", head: 2, heads: [2] });
  });

  it("from layer to layer, up to the last", () => {
    expect(nextLayer(layers, at("L0", 0), 1)).toEqual({ site: "L1" });
    expect(nextLayer(layers, at("L1", 0), 1)).toBeNull();
  });

  it("from token to token, past those that are switched off", () => {
    expect(nextToken(scene(), 1)).toEqual({ token: { side: "query", index: 0 } });
    const off = scene({ token: { side: "key", index: 2 }, off: ["model:3"] });
    expect(nextToken(off, 1)).toEqual({ token: { side: "key", index: 4 } });
    expect(nextToken(scene({ token: { side: "key", index: 8 } }), 1)).toBeNull();
  });
});

describe("arrows over cells", () => {
  const seen = { rows: [2, 5] as [number, number], columns: [0, 3] as [number, number] };

  it("begin at the first that is seen, and stay among those", () => {
    expect(nextCell(null, "ArrowDown", seen)).toEqual({ panel: 0, query: 2, key: 0 });
    expect(nextCell({ panel: 1, query: 2, key: 0 }, "ArrowDown", seen)).toEqual({ panel: 1, query: 3, key: 0 });
    expect(nextCell({ panel: 1, query: 4, key: 2 }, "ArrowDown", seen)).toEqual({ panel: 1, query: 4, key: 2 });
    expect(nextCell({ panel: 1, query: 4, key: 2 }, "ArrowLeft", seen)).toEqual({ panel: 1, query: 4, key: 1 });
    expect(nextCell(null, "x", seen)).toBeNull();
  });
});

describe("switching a token", () => {
  it("takes all its pieces, off and on again", () => {
    const words = scene({ by: "words" });
    expect(switched(words, { side: "query", index: 1 }, ["model:0"])).toEqual(["model:0", "model:1", "model:2"]);
    expect(switched(words, { side: "query", index: 1 }, ["model:1", "model:2"])).toEqual([]);
  });

  it("leaves at least one", () => {
    const off = STACK.texts.slice(1).map((_, index) => `model:${index + 1}`);
    expect(switched(scene(), { side: "key", index: 0 }, off)).toBeNull();
  });
});

describe("a search", () => {
  it("begins at what is in view and goes round", () => {
    const search = new Search();
    search.begin(scene(), "i", 0);
    expect(search.places).toHaveLength(0);
    search.begin(scene(), "ï", 7);
    expect(search.index).toBe(1);
    search.step(1);
    expect(search.index).toBe(0);
    search.step(-1);
    expect(search.current).toEqual([{ side: "query", index: 7 }]);
    expect(search.marked(scene()).tokens).toHaveLength(4);
  });
});
