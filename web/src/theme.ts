/** Colours as numbers, for rasterisers. The same values as the CSS variables of `theme.css`. */

export type Rgb = readonly [number, number, number];

export interface Theme {
  name: "light" | "dark";
  background: Rgb;
  panel: Rgb;
  line: Rgb;
  ink: Rgb;
  secondary: Rgb;
  tertiary: Rgb;
  accent: Rgb;
  tint: Rgb;
  /** What is selected, on pictures: no data has this colour. */
  selection: Rgb;
  good: Rgb;
  warn: Rgb;
  /** Weight 0, ½ and 1 on the root scale. */
  ramp: readonly [Rgb, Rgb, Rgb];
  positive: Rgb;
  negative: Rgb;
  /** Colours of heads, after Tol's bright, muted and vibrant sets, for colour-blind readers; at least 3 : 1 on the
   *  background; dashed when they repeat. */
  heads: readonly Rgb[];
}

export const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Helvetica Neue", Arial, sans-serif';

export const LIGHT: Theme = {
  name: "light",
  background: hex("#fbfbfa"),
  panel: hex("#ffffff"),
  line: hex("#e4e4e1"),
  ink: hex("#1c1d1f"),
  secondary: hex("#5c6066"),
  tertiary: hex("#646970"),
  accent: hex("#3457d5"),
  tint: hex("#eaeefc"),
  selection: hex("#1c1d1f"),
  good: hex("#1b7f5c"),
  warn: hex("#9a4708"),
  ramp: [hex("#ffffff"), hex("#8fb2e8"), hex("#12306b")],
  positive: hex("#2166ac"),
  negative: hex("#d95f02"),
  heads: [
    "#4477aa",
    "#e05566",
    "#228833",
    "#a08c12",
    "#2b93b5",
    "#aa3377",
    "#332288",
    "#2f9c8b",
    "#dd6618",
    "#882255",
    "#8a5a2b",
    "#8c8c8c",
  ].map(hex),
};

// Heads keep their hues in the dark; those that would drown in it are lighter.
export const DARK: Theme = {
  name: "dark",
  background: hex("#131417"),
  panel: hex("#1a1c20"),
  line: hex("#2b2e34"),
  ink: hex("#eceef1"),
  secondary: hex("#a7adb6"),
  tertiary: hex("#8d939d"),
  accent: hex("#8fa8ff"),
  tint: hex("#242a42"),
  selection: hex("#eceef1"),
  good: hex("#4fc39a"),
  warn: hex("#f0b35a"),
  ramp: [hex("#1a1c20"), hex("#6a5acd"), hex("#ffe2a8")],
  positive: hex("#6db1ff"),
  negative: hex("#ff9e57"),
  heads: [
    "#6699cc",
    "#ee6677",
    "#3fae55",
    "#ddcc55",
    "#66ccee",
    "#cc5599",
    "#8878dd",
    "#44bbaa",
    "#ee8844",
    "#b8527e",
    "#aaaa44",
    "#bbbbbb",
  ].map(hex),
};

/** The theme in force at an element: the nearest `data-theme`, or what the system prefers. */
export function themeOf(element: Element): Theme {
  const chosen = element.closest<HTMLElement>("[data-theme]")?.dataset.theme;
  if (chosen === "light") return LIGHT;
  if (chosen === "dark") return DARK;
  return matchMedia("(prefers-color-scheme: dark)").matches ? DARK : LIGHT;
}

/** The colour of a head, and whether its lines are dashed because the colours had to begin again. */
export function headColour(theme: Theme, head: number): { colour: Rgb; dashed: boolean } {
  const count = theme.heads.length;
  return { colour: theme.heads[head % count] as Rgb, dashed: Math.floor(head / count) % 2 === 1 };
}

export function css([red, green, blue]: Rgb, alpha = 1): string {
  return alpha === 1 ? `rgb(${red} ${green} ${blue})` : `rgb(${red} ${green} ${blue} / ${alpha})`;
}

/** A share of the way from one colour to another. */
export function between(from: Rgb, to: Rgb, share: number): Rgb {
  const at = (index: 0 | 1 | 2) => Math.round(from[index] + (to[index] - from[index]) * share);
  return [at(0), at(1), at(2)];
}

export function hex(code: string): Rgb {
  const value = Number.parseInt(code.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}
