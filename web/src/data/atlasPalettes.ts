/** The colours of the atlas: query green and key pink, a pair that colour-blind readers can tell apart, and their ramps. */

import { between, hex, type Rgb, type Theme } from "../theme";

export interface Pair {
  query: Rgb;
  key: Rgb;
}

const PLAIN: Record<Theme["name"], Pair> = {
  light: { query: hex("#2f9e44"), key: hex("#e3378f") },
  dark: { query: hex("#5fb96c"), key: hex("#f0559f") },
};
const SAFE: Record<Theme["name"], Pair> = {
  light: { query: hex("#2166ac"), key: hex("#d95f02") },
  dark: { query: hex("#6db1ff"), key: hex("#ff9e57") },
};

export function pairOf(theme: Theme, isSafe: boolean): Pair {
  return (isSafe ? SAFE : PLAIN)[theme.name];
}

// ColorBrewer's YlGn, PuRd, Blues and Oranges from a quarter on: the lightest would be lost on white.
const RAMPS = {
  plain: {
    query: ["#d9f0a3", "#addd8e", "#78c679", "#41ab5d", "#238443", "#006837", "#004529"],
    key: ["#d4b9da", "#c994c7", "#df65b0", "#e7298a", "#ce1256", "#980043", "#67001f"],
  },
  safe: {
    query: ["#c6dbef", "#9ecae1", "#6baed6", "#4292c6", "#2171b5", "#08519c", "#08306b"],
    key: ["#fdd0a2", "#fdae6b", "#fd8d3c", "#f16913", "#d94801", "#a63603", "#7f2704"],
  },
};

/** A share of a role's ramp: from faint to strong on either ground. */
export function rampOf(theme: Theme, role: keyof Pair, isSafe: boolean): (share: number) => Rgb {
  const colours = RAMPS[isSafe ? "safe" : "plain"][role].map(hex);
  // In the dark the strong end is the light one, and the darkest two are left out.
  const stops = theme.name === "light" ? colours : colours.slice(0, 5).reverse();
  return (share) => along(stops, share);
}

function along(stops: Rgb[], share: number): Rgb {
  const at = Math.min(1, Math.max(0, share)) * (stops.length - 1);
  const first = Math.min(stops.length - 2, Math.floor(at));
  return between(stops[first] as Rgb, stops[first + 1] as Rgb, at - first);
}

/** Position mod 5: a light colour for the key and a strong one for the query of each. */
export const MOD_FIVE: readonly Pair[] = [
  { key: hex("#f5c0ca"), query: hex("#e3378f") },
  { key: hex("#f0d6a5"), query: hex("#edb50e") },
  { key: hex("#c4d6b8"), query: hex("#5fb96c") },
  { key: hex("#c8dded"), query: hex("#528ddb") },
  { key: hex("#d6bae3"), query: hex("#a144db") },
];

export interface Marks {
  word: Pair;
  mark: Pair;
}

/** Special tokens and punctuation apart from words. */
export const MARKS: Marks = {
  word: { query: hex("#f39226"), key: hex("#e3378f") },
  mark: { query: hex("#5fb96c"), key: hex("#2e93d9") },
};

/** A hue in radians, as bright as reads on either ground. */
export function hueColour(theme: Theme, radians: number): Rgb {
  const turn = ((radians / (2 * Math.PI)) % 1) + 1;
  const light = theme.name === "light" ? 0.47 : 0.6;
  const channel = (shift: number) => {
    const k = (shift + turn * 12) % 12;
    return Math.round(255 * (light - 0.75 * Math.min(light, 1 - light) * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return [channel(0), channel(8), channel(4)];
}

export const NONE: Record<Theme["name"], Rgb> = { light: hex("#c9c9c5"), dark: hex("#45494f") };
