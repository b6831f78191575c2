/** Legends: what the colours of a picture mean, and on which scale. */

import { number } from "../data/measures";
import { Raster } from "../marks/raster";
import { between, type Rgb, type Theme } from "../theme";
import { type Label, paintLabels } from "./labels";

export type Scale = "linear" | "square-root" | "log" | `${number}-power`;

export interface Legend {
  /** The quantity, with its unit if it has one. */
  label: string;
  scale: Scale;
  /** Along the bar, in even steps. */
  colours: Rgb[];
  /** Where values are along the bar, 0 to 1. */
  ticks: { at: number; text: string }[];
  /** Cells that the mask excludes are hatched. */
  hasMask?: boolean;
}

const STEPS = 48;
export const LEGEND_WIDTH = 132;
const SHARES = [0, 0.1, 0.25, 0.5, 1];

function colours(toneAt: (share: number) => Rgb): Rgb[] {
  return Array.from({ length: STEPS }, (_, step) => toneAt(step / (STEPS - 1)));
}

/** The colour of a share of the ramp. */
function tone(theme: Theme, share: number): Rgb {
  const [none, half, full] = theme.ramp;
  return share < 0.5 ? between(none, half, 2 * share) : between(half, full, 2 * share - 1);
}

/** From 0 to `full` in the colours of weights, on the square-root scale. */
export function rootLegend(theme: Theme, label: string, full = 1): Legend {
  const ticks = SHARES.map((share) => ({ at: Math.sqrt(share), text: number(share * full) }));
  return { label, scale: "square-root", colours: colours((share) => tone(theme, share)), ticks };
}

/** From one number to another in the colours of weights, in proportion. */
export function linearLegend(theme: Theme, label: string, low: number, high: number): Legend {
  const ticks = [0, 0.5, 1].map((at) => ({ at, text: number(low + (high - low) * at) }));
  return { label, scale: "linear", colours: colours((share) => tone(theme, share)), ticks };
}

/** From `low` to `high` by factors; `least` is the share of the ramp that `low` has. */
export function logLegend(theme: Theme, label: string, low: number, high: number, least: number): Legend {
  const ticks = [0, 0.5, 1].map((at) => ({ at, text: number(low * (high / low) ** at) }));
  return { label, scale: "log", colours: colours((share) => tone(theme, least + (1 - least) * share)), ticks };
}

/** From −`full` to `full`: two colours that meet in none. */
export function signedLegend(theme: Theme, label: string, full: number, scale: "linear" | "square-root"): Legend {
  const signed = (share: number) =>
    share < 0 ? between(theme.ramp[0], theme.negative, -share) : between(theme.ramp[0], theme.positive, share);
  const values = scale === "linear" ? [-1, -0.5, 0, 0.5, 1] : [-1, -0.25, 0, 0.25, 1];
  const ticks = values.map((value) => ({
    at: 0.5 + 0.5 * Math.sign(value) * (scale === "linear" ? Math.abs(value) : Math.sqrt(Math.abs(value))),
    text: (value > 0 ? "+" : "") + number(value * full),
  }));
  return { label, scale, colours: colours((share) => signed(2 * share - 1)), ticks };
}

/** Lines: as opaque as what they stand for, in one colour; of a difference in that of its sign. */
export function lineLegend(theme: Theme, label: string, full: number, colour: Rgb): Legend {
  const ticks = [0, 0.5, 1].map((at) => ({ at, text: number(at * full) }));
  return { label, scale: "linear", colours: colours((share) => between(theme.background, colour, share)), ticks };
}

/** Over a picture: from the weakest to the strongest patch, to a power. */
export function overlayLegend(toneAt: (share: number) => Rgb, label: string, ends: string[], power: number): Legend {
  const ticks = [0, 1].map((at) => ({ at, text: ends[at] as string }));
  return { label, scale: `${power}-power`, colours: colours(toneAt), ticks };
}

/** Neurons have the size of their column: full colour is the number over it. */
export function neuronLegend(theme: Theme, isDifference: boolean): Legend {
  const label = `neurons of each column${isDifference ? ", A − B" : ""}; full: the ± over it`;
  const ticks = ["−full", "0", "+full"].map((text, at) => ({ at: at / 2, text }));
  return { ...signedLegend(theme, label, 1, "linear"), ticks };
}

/** The whole in words, for those who do not see it. */
export function legendWords({ label, scale, ticks, hasMask }: Legend): string {
  const [first, last] = [ticks[0]?.text, ticks.at(-1)?.text];
  return `Colours: ${label}, ${scale} scale, from ${first} to ${last}${hasMask ? "; masked cells are hatched" : ""}`;
}

/** What is written before the bar. */
export function legendTitle({ label, scale, hasMask }: Legend): string {
  return `${label}, ${scale} scale${hasMask ? " (hatched: masked)" : ""}`;
}

/** Draw a legend whose right end is at `right`, and `y` the top of its bar: for pictures that are saved. */
export function paintLegend(
  context: CanvasRenderingContext2D,
  legend: Legend,
  { right, y }: { right: number; y: number },
  theme: Theme,
  scale: number,
): void {
  const left = right - LEGEND_WIDTH;
  const bar = new Raster(LEGEND_WIDTH * scale, 8 * scale);
  for (let x = 0; x < bar.width; x++) {
    const colour = legend.colours[Math.floor((x * legend.colours.length) / bar.width)] as Rgb;
    for (let row = 0; row < bar.height; row++) bar.pixels.set([...colour, 255], 4 * (row * bar.width + x));
  }
  context.putImageData(
    new ImageData(bar.pixels, bar.width, bar.height),
    Math.round(left * scale),
    Math.round(y * scale),
  );
  const small = { size: 10, colour: theme.secondary } as const;
  const labels: Label[] = legend.ticks.map(({ at, text }) => ({
    ...small,
    text,
    x: left + at * LEGEND_WIDTH,
    y: y + 15,
    align: "centre",
    width: 40,
  }));
  labels.push({ ...small, size: 11, text: legendTitle(legend), x: left - 14, y: y + 4, align: "right", width: 320 });
  paintLabels(context, labels, scale);
}
