import { expect, test } from "vitest";
import type { ScoresProps, SiteProps } from "../contract";
import { Measures } from "../data/measures";
import { LIGHT } from "../theme";
import type { Part } from "../wire";
import { gridOf } from "./grid";
import { captionOf, labelsOf } from "./modelLabels";

const METHODS = ["induction", "previous_token"].map((name) => ({ name, low: 0, high: 1, baseline: 0.1 }));
const HEADS = ["L0H0", "L0H1"];
const part = {
  kind: "scores",
  props: { heads: HEADS, methods: METHODS },
  arrays: Object.fromEntries(
    METHODS.map(({ name }, at) => [name, { dtype: "float32", shape: [2], values: Float32Array.of(0.2 + at / 2, 0.9) }]),
  ),
} as unknown as Part<ScoresProps>;
const measures = new Measures(part);
const site = { site: "L0", stack: "main", key_stack: "main", kind: "self", layer: 0, n_heads: 2 } as SiteProps;
const ruler = { width: (text: string) => 6 * text.length };
const content = (sort: string, colour: string, legend: { x: number; width: number } | null = null) => ({
  grid: gridOf([site], 860, 400, true),
  measures,
  selection: { sort, colour },
  isDifference: false,
  legend,
  ruler,
  theme: LIGHT,
  passes: (name: string) => name !== "L0H1",
  isEdited: () => false,
  isEditedLayer: (_: SiteProps) => false,
});

test("under a head stands what heads are sorted by, else coloured by, else what stands out in it", () => {
  expect(captionOf(content("induction", "previous_token"), "L0H0")).toMatchObject({ text: "L0H0" });
  expect(captionOf(content("", "previous_token"), "L0H0").text).toBe("previous token");
  expect(captionOf(content("", ""), "L0H0").text).toBe("previous token");
  expect(captionOf({ ...content("", ""), isDifference: true }, "L0H0").text).toBe("moved");
});

test("heads that the filter leaves out have no words, and the legend its ends", () => {
  const texts = labelsOf(content("", "induction", { x: 90, width: 96 })).map((label) => label.text);
  expect(texts.filter((text) => text === "induction")).toHaveLength(2); // the legend's and one head's
  expect(texts).toContain("0.20");
  expect(texts).not.toContain("0.90");
  expect(texts).toEqual(expect.arrayContaining(["0", "1.00"]));
});

test("the name of a layer whose MLP or residual stream was edited stands out, and says so", () => {
  const labels = labelsOf({ ...content("", ""), isEditedLayer: ({ layer }) => layer === 0 });
  const place = labels.findIndex(({ text }) => text === "L0");
  expect(labels[place]).toMatchObject({ colour: LIGHT.warn, isBold: true });
  expect(labels[place + 1]).toMatchObject({ text: "edited", colour: LIGHT.warn });
  expect(labelsOf(content("", "")).map(({ text }) => text)).not.toContain("edited");
});

test("a caption that does not fit goes without the noun that all tokens have", () => {
  const wide = { width: (text: string) => 60 * text.length };
  const texts = labelsOf({ ...content("", ""), ruler: wide }).map(({ text }) => text);
  expect(texts).toContain("previous");
  expect(texts).not.toContain("previous token");
});
