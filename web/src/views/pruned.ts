/** Heads that are pruned in the model's weights: faded and hatched as pictures, grey and dashed as lines. */

import { fillBox, hatch } from "../marks/boxes";
import type { Box } from "../marks/cells";
import type { Raster } from "../marks/raster";
import type { Rgb, Theme } from "../theme";

const FADE = 0.6;
const STEP = 6; // px between the lines of the hatching

export function paintPruned(raster: Raster, box: Box, theme: Theme, scale: number): void {
  fillBox(raster, box, theme.background, FADE);
  hatch(raster, box, theme.tertiary, Math.max(2, Math.round(STEP * scale)));
}

/** The lines of a pruned head. */
export function prunedColour(theme: Theme): { colour: Rgb; dashed: boolean } {
  return { colour: theme.tertiary, dashed: true };
}
