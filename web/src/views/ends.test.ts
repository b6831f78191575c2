import { describe, expect, test } from "vitest";
import type { LayerProps } from "../contract";
import { Layer } from "../data/layer";
import { readingOf } from "../data/reading";
import { layer as site, stack } from "../data/trace.fixture";
import { DEFAULT, type Selection } from "../selection";
import type { Part } from "../wire";
import { endOf, strongestEnds } from "./ends";
import { linesLine, matrixLine, pooledNote } from "./headWords";
import { type DrawnHead, Scene } from "./scene";

const TEXTS = ["<s>", "the", "cat"];
/** Two heads of three tokens: the first looks back at once, the second at the beginning. */
const WEIGHTS = [1, 0, 0, 0.8, 0.2, 0, 0.1, 0.7, 0.2, 1, 0, 0, 0.9, 0.1, 0, 0.6, 0.3, 0.1];

function scene(more: Partial<Selection> = {}): Scene {
  const props: LayerProps = {
    site: "L0",
    what: "pattern",
    form: "dense",
    by: "tokens",
    n_kept: 3,
    queries: [],
    keys: [],
  };
  const weights = { dtype: "float32" as const, shape: [2, 3, 3], code: "linear" as const };
  const part: Part<LayerProps> = {
    kind: "layer",
    props,
    arrays: { weights: { ...weights, values: Float32Array.from(WEIGHTS) } },
  };
  const how = { by: "tokens" as const, hide: [], off: [] };
  const reading = readingOf(stack("main", TEXTS), 3, how);
  const layer = new Layer(site("L0", 3, { n_heads: 2 }), part, "pattern", reading, reading, false);
  return new Scene({ layer, notes: [], reading: how, how: "" }, { ...DEFAULT, site: "L0", heads: [0, 1], ...more });
}

const rounded = (values: Float32Array) => Array.from(values, (value) => Number(value.toFixed(3)));
const ends = (of: Scene, side: "query" | "key", index: number) =>
  of.drawnHeads.map((drawnHead) => endOf(of, drawnHead, { side, index }, null));

describe("what a token gives or gets", () => {
  test("a query gives its row, a key gets its column", () => {
    const [first] = ends(scene(), "query", 2);
    expect(rounded(first?.values ?? new Float32Array())).toEqual([0.1, 0.7, 0.2]);
    const [, second] = ends(scene(), "key", 0);
    expect(rounded(second?.values ?? new Float32Array())).toEqual([1, 0.9, 0.6]);
  });

  test("only lines that the filter leaves are drawn", () => {
    const [first] = ends(scene({ filter: "threshold", threshold: 0.5 }), "query", 2);
    expect([...(first?.isDrawn ?? [])]).toEqual([0, 1, 0]);
  });

  test("exact numbers take the place of those that came first; of a mean, those of its heads", () => {
    const mean = scene({ average: true });
    const exact = (head: number) => Float32Array.of(head, 0.5, 0);
    const end = endOf(mean, mean.drawnHeads[0] as DrawnHead, { side: "query", index: 2 }, exact);
    expect(rounded(end.values)).toEqual([0.5, 0.5, 0]);
    expect(rounded(end.strength)).toEqual([0.5, 0.5, 0]);
  });

  test("names each head's strongest end", () => {
    const both = scene();
    expect(strongestEnds(both, { side: "query", index: 2 }, ends(both, "query", 2))).toEqual([
      "L0H0  → the  0.70",
      "L0H1  → <s>  0.60",
    ]);
    expect(strongestEnds(both, { side: "key", index: 2 }, ends(both, "key", 2))).toEqual([
      "L0H0  ← cat  0.20",
      "L0H1  ← cat  0.10",
    ]);
  });
});

describe("the line over the head view", () => {
  test("counts the lines drawn, and those of a pinned token", () => {
    const both = scene({ filter: "threshold", threshold: 0.5 });
    expect(linesLine(both, null, [])).toBe("6 of 12 lines drawn");
    const pinned = { side: "query", index: 2 } as const;
    expect(linesLine(both, pinned, ends(both, "query", 2))).toBe("2 of 6 lines drawn, from cat");
    const key = { side: "key", index: 0 } as const;
    expect(linesLine(both, key, ends(both, "key", 0))).toBe("5 of 6 lines drawn, to <s>");
  });

  test("names the heads of a matrix and the part in view", () => {
    expect(matrixLine(scene(), null)).toBe("2 heads, 3 × 3");
    const part = matrixLine(scene({ heads: [1] }), { rows: [0, 2], columns: [1, 3] });
    expect(part).toBe("L0H1, queries 0–1, keys 1–2 of 3 × 3");
  });

  test("says what a dot stands for only where that is several", () => {
    expect(pooledNote(scene(), 1)).toEqual([]);
    expect(pooledNote(scene(), 4)).toEqual(["each dot is the strongest of about 4 × 4 weights"]);
  });
});
