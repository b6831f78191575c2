import { describe, expect, it } from "vitest";
import { DARK, LIGHT } from "../theme";
import { atlasTokens, floating } from "./atlas.fixture";
import { type ColourOptions, coloured, dimmed } from "./atlasColours";
import { hueColour, MARKS, MOD_FIVE, NONE, pairOf } from "./atlasPalettes";
import { PointSet } from "./atlasPoints";
import { AtlasTokens } from "./atlasTokens";

const rows = Int32Array.of(0, 1, 2, 3, 4);
const both = new PointSet([
  { role: "query", stack: "main", rows },
  { role: "key", stack: "main", rows },
]);

function inkOf(name: string, role: string, row: number, more: Partial<ColourOptions> = {}, tokens = atlasTokens()) {
  const options = { name, isSafe: false, theme: LIGHT, ...more };
  const { inks, colours } = coloured(both, { main: tokens }, options);
  return inks[colours[both.pointOf(role, row)] as number];
}

describe("colours of points", () => {
  it("tell queries from keys, with another pair for who cannot tell these", () => {
    expect(inkOf("role", "query", 1)).toEqual(pairOf(LIGHT, false).query);
    expect(inkOf("role", "key", 1)).toEqual(pairOf(LIGHT, false).key);
    expect(inkOf("role", "key", 1, { isSafe: true })).toEqual(pairOf(LIGHT, true).key);
    expect(inkOf("role", "key", 1, { theme: DARK })).toEqual(pairOf(DARK, false).key);
  });

  it("go by position: as a share of the example, or mod 5", () => {
    expect(inkOf("position", "query", 2)).toEqual(inkOf("position", "query", 4));
    expect(inkOf("position", "query", 0)).not.toEqual(inkOf("position", "query", 1));
    expect(inkOf("position", "query", 0)).not.toEqual(inkOf("position", "key", 0));
    expect(inkOf("position5", "key", 2)).toEqual(MOD_FIVE[2]?.key);
  });

  it("go by kind: special tokens and punctuation, tags, the most frequent tokens", () => {
    expect(inkOf("special", "query", 0)).toEqual(MARKS.mark.query);
    expect(inkOf("special", "key", 2)).toEqual(MARKS.mark.key);
    expect(inkOf("special", "key", 1)).toEqual(MARKS.word.key);
    expect(inkOf("tag_upos", "key", 1)).toEqual(LIGHT.heads[0]);
    expect(inkOf("tag_upos", "key", 0)).toEqual(NONE.light);
    expect(inkOf("token", "query", 0)).toEqual(inkOf("token", "key", 3));
    expect(inkOf("token", "query", 0)).not.toEqual(inkOf("token", "query", 1));
  });

  it("go by frequency on a log scale, and by numbers of the head", () => {
    expect(inkOf("frequency", "key", 2)).not.toEqual(inkOf("frequency", "key", 1));
    const values = Float32Array.from({ length: 10 }, (_, point) => (both.role(point) === "key" ? point : Number.NaN));
    expect(inkOf("key_bias", "query", 1, { values })).toEqual(NONE.light);
    expect(inkOf("key_bias", "key", 1, { values })).not.toEqual(NONE.light);
  });

  it("show hues as they are, and grey as grey", () => {
    const part = atlasTokens();
    const arrays = { text: floating([]), hue: floating([0, Math.PI, Number.NaN, 0, 0]) };
    const patches = new AtlasTokens({
      kind: "tokens",
      props: { stack: "main", n_tokens: 5, texts: [], tables: {} },
      arrays: { ...arrays, position: { ...floating([]), values: part.whole("position") } },
    });
    const [red, green] = inkOf("hue", "query", 0, {}, patches) as readonly number[];
    expect(red).toBeGreaterThan(2 * (green as number));
    expect(inkOf("hue", "query", 1, {}, patches)).toEqual(hueColour(LIGHT, Math.PI));
    expect(inkOf("hue", "query", 2, {}, patches)).toEqual(NONE.light);
  });

  it("have a legend that says what they mean", () => {
    const legend = (name: string) => coloured(both, { main: atlasTokens() }, { name, isSafe: false, theme: LIGHT }).key;
    expect(legend("role").swatches.map(({ text }) => text)).toEqual(["query", "key"]);
    expect(legend("position").ends).toEqual(["first", "last"]);
    expect(legend("frequency").ends).toEqual(["1", "2"]);
    expect(legend("tag_upos").swatches.map(({ text }) => text)).toEqual(["NOUN"]);
    const keys = new PointSet([{ role: "key", stack: "main", rows }]);
    const alone = coloured(keys, { main: atlasTokens() }, { name: "role", isSafe: false, theme: LIGHT }).key;
    expect(alone.swatches.map(({ text, colours }) => [text, colours])).toEqual([["key", [pairOf(LIGHT, false).key]]]);
  });

  it("are faint where others are lit", () => {
    const [grey] = dimmed([[255, 0, 0]], LIGHT);
    expect(Math.min(...(grey ?? []))).toBeGreaterThan(190);
  });
});
