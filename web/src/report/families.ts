/** Families of roles and their colours: Tol's bright and muted ones. A short name says the same without colour. */

import { FAMILIES as LABELS } from "../contract";
import { css, hex, type Rgb, type Theme } from "../theme";
import type { Contents } from "./contents";

/** In the order of the page. The glossary says which role is of which family. */
const FAMILIES = new Map<string, Record<Theme["name"], Rgb>>(
  (
    [
      ["position", "#4477aa", "#7aa6d6"],
      ["syntax", "#228833", "#4fb862"],
      ["copying", "#aa3377", "#d96aa7"],
      ["rare", "#9a8a12", "#ddcc55"],
      ["across", "#2795b8", "#66ccee"],
      ["marks", "#d14b5f", "#ee8090"],
      ["image", "#b85c00", "#f39a4a"],
      ["rest", "#777b82", "#9aa0a8"],
      ["none", "#c3c5c8", "#565c66"],
    ] as const
  ).map(([key, light, dark]) => [key, { light: hex(light), dark: hex(dark) }]),
);

export const FAMILY_ORDER: readonly string[] = [...FAMILIES.keys()];

/** Families whose colours the lines of stacks have. */
const OF_STACKS = ["position", "copying", "syntax", "image"] as const;

export function familyLabel(key: string): string {
  return LABELS[key] ?? key;
}

export function familyColour(theme: Theme, key: string): Rgb {
  return familyOf(key)[theme.name];
}

/** The families of some heads, in the order of the page, and how many of the heads are of each. */
export function familiesOf(contents: Contents, heads: number[]): { key: string; count: number }[] {
  return [...FAMILIES.keys()]
    .map((key) => ({ key, count: heads.filter((head) => contents.verdict(head).family === key).length }))
    .filter(({ count }) => count > 0);
}

export function stackColour(theme: Theme, stack: number): string {
  return css(familyColour(theme, OF_STACKS[stack % OF_STACKS.length] as string));
}

/** What can be read on a colour. */
export function inkOn([red, green, blue]: Rgb): string {
  return red * 0.299 + green * 0.587 + blue * 0.114 > 140 ? "#1c1d1f" : "#ffffff";
}

function familyOf(key: string): Record<Theme["name"], Rgb> {
  const family = FAMILIES.get(key);
  if (!family) throw new Error(`there is no family of roles ${key}`);
  return family;
}
