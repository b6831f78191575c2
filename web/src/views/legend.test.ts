import { describe, expect, test } from "vitest";
import { coded } from "../data/pooled";
import { ramp, signedRamp } from "../marks/cells";
import { word } from "../marks/raster";
import { DARK, LIGHT, type Rgb } from "../theme";
import { legendTitle, legendWords, linearLegend, logLegend, rootLegend, signedLegend } from "./legend";

const toneAt = (colours: Rgb[], at: number) => colours[Math.round(at * (colours.length - 1))] as Rgb;
const near = (a: Rgb, b: number) => {
  for (const channel of [0, 1, 2] as const) expect(Math.abs(a[channel] - ((b >> (8 * channel)) & 255))).toBeLessThan(9);
};

describe.each([LIGHT, DARK])("in the $name theme", (theme) => {
  test("a weight has the colour in the matrix that the legend shows at its tick", () => {
    const { colours, ticks } = rootLegend(theme, "attention weight");
    for (const { at, text } of ticks) {
      const [byte] = coded(Float32Array.of(Number(text)), false);
      near(toneAt(colours, at), ramp(theme)[byte as number] as number);
    }
  });

  test.each([["square-root", true] as const, ["linear", false] as const])(
    "so has a difference, %s",
    (scale, isRoot) => {
      const { colours, ticks } = signedLegend(theme, "difference", 0.5, scale);
      for (const { at, text } of ticks) {
        const value = Number(text.replace("−", "-")) / 0.5;
        const [byte] = coded(Float32Array.of(value), true, isRoot);
        near(toneAt(colours, at), signedRamp(theme)[byte as number] as number);
      }
      expect(toneAt(colours, 0.5).map((channel, at) => Math.abs(channel - (theme.ramp[0][at] as number)) < 9)).toEqual([
        true,
        true,
        true,
      ]);
    },
  );

  test("the ends of a signed legend are its two colours", () => {
    const { colours } = signedLegend(theme, "score", 3, "linear");
    expect([word(colours[0] as Rgb), word(colours.at(-1) as Rgb)]).toEqual([
      word(theme.negative),
      word(theme.positive),
    ]);
  });
});

test("ticks are numbers of the quantity", () => {
  expect(rootLegend(LIGHT, "weight").ticks.map(({ text }) => text)).toEqual(["0", "0.10", "0.25", "0.50", "1.00"]);
  expect(signedLegend(LIGHT, "score", 4, "linear").ticks.map(({ text }) => text)).toEqual([
    "−4.00",
    "−2.00",
    "0",
    "+2.00",
    "+4.00",
  ]);
  expect(logLegend(LIGHT, "norm", 1, 100, 0.06).ticks.map(({ text }) => text)).toEqual(["1.00", "10.0", "100"]);
  expect(linearLegend(LIGHT, "cosine", 0, 1).ticks.map(({ at }) => at)).toEqual([0, 0.5, 1]);
});

test("a legend says its scale, and what is hatched", () => {
  const legend = { ...rootLegend(LIGHT, "attention weight"), hasMask: true };
  expect(legendWords(legend)).toBe(
    "Colours: attention weight, square-root scale, from 0 to 1.00; masked cells are hatched",
  );
  expect(legendTitle(legend)).toBe("attention weight, square-root scale (hatched: masked)");
});
