/** Colours as numbers, for rasterisers. The same values as the CSS variables of `app/theme.css`. */

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
  /** Weight 0, ½ and 1 on the root scale. */
  ramp: readonly [Rgb, Rgb, Rgb];
  positive: Rgb;
  negative: Rgb;
  /** Colours of heads, safe for colour-blind readers (Tol's bright and muted sets); repeated with a dash beyond. */
  heads: readonly Rgb[];
}
