import { describe, expect, it } from "vitest";
import { DARK, headColour, hex, LIGHT, type Rgb } from "./theme";
import css from "./theme.css?raw";

/** Contrast as WCAG 2 defines it. */
function contrast(a: Rgb, b: Rgb): number {
  const light = (colour: Rgb) => {
    const [red, green, blue] = colour.map((channel) => {
      const share = channel / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    }) as [number, number, number];
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const [low, high] = [light(a), light(b)].sort((a, b) => a - b) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

describe.each([LIGHT, DARK])("the $name theme", (theme) => {
  it("is readable: text and accent on the background (WCAG AA)", () => {
    for (const colour of [theme.ink, theme.secondary, theme.accent, theme.good, theme.warn]) {
      expect(contrast(colour, theme.background)).toBeGreaterThan(4.5);
    }
  });

  it("has no colour of a head that is too pale: at least 3 : 1 on the background and on panels", () => {
    for (const colour of theme.heads) {
      expect(contrast(colour, theme.background), JSON.stringify(colour)).toBeGreaterThanOrEqual(3);
      expect(contrast(colour, theme.panel), JSON.stringify(colour)).toBeGreaterThanOrEqual(3);
    }
  });

  it("shows what is selected in a colour that no data has", () => {
    const data = [...theme.ramp, theme.positive, theme.negative, theme.good, theme.accent, ...theme.heads];
    const apart = (a: Rgb, b: Rgb) => Math.hypot(...a.map((channel, at) => channel - (b[at] as number)));
    for (const colour of data) {
      if (colour === theme.ramp[2] && theme.name === "light") continue; // the darkest blue: framed in white, too
      expect(apart(colour, theme.selection), JSON.stringify(colour)).toBeGreaterThan(60);
    }
    expect(contrast(theme.selection, theme.background)).toBeGreaterThan(7);
  });

  it("tells more than ten heads apart, and more by dashes", () => {
    const names = Array.from({ length: 24 }, (_, head) => JSON.stringify(headColour(theme, head)));
    expect(new Set(names).size).toBe(24);
    expect(headColour(theme, 10).dashed).toBe(false);
    expect(headColour(theme, 12)).toEqual({ colour: theme.heads[0], dashed: true });
  });

  it("has the colours of the style sheet", () => {
    const rule = theme === DARK ? /\[data-theme="dark"\] \{(.*?)\n\}/s : /^\[data-headscope\] \{(.*?)\n\}/ms;
    const variables = new Map(
      [...(css.match(rule)?.[1] ?? "").matchAll(/--([a-z]+): (#[0-9a-f]{6});/g)].map(([, name, code]) => [name, code]),
    );
    const names = [
      "background",
      "panel",
      "line",
      "ink",
      "secondary",
      "tertiary",
      "accent",
      "tint",
      "good",
      "warn",
      "positive",
      "negative",
    ] as const;
    for (const name of names) expect(hex(variables.get(name) ?? ""), name).toEqual(theme[name]);
  });
});
