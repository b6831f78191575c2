/** What the colours of the head view mean: of the matrix, and of lines. */

import type { Theme } from "../theme";
import { type Legend, lineLegend, rootLegend, signedLegend } from "./legend";
import type { Scene } from "./scene";

const QUANTITIES = {
  pattern: "attention weight",
  contribution: "contribution, weight × ‖value · W_O‖",
  scores: "score before the softmax",
};

type Coloured = Pick<Scene, "isDifference" | "isSigned" | "selection" | "drawnHeads" | "colourOf"> & {
  layer: Pick<Scene["layer"], "full" | "site">;
};

export function legendOf(scene: Coloured, theme: Theme): Legend {
  const { layer, selection, isDifference } = scene;
  const { full } = layer;
  const quantity = QUANTITIES[selection.what];
  const label = isDifference ? `difference of ${quantity}, A − B` : quantity;
  const isMatrix = selection.form === "matrix";
  const hasMask = isMatrix && layer.site.is_causal && selection.what === "scores" && !isDifference;
  if (isDifference || (isMatrix && selection.what === "scores")) {
    const legend = signedLegend(theme, label, full, isMatrix && isDifference ? "square-root" : "linear");
    return { ...legend, hasMask };
  }
  if (isMatrix) return rootLegend(theme, label, full);
  if (scene.isSigned) return signedLegend(theme, label, full, "linear");
  // The fainter the more heads there are; the colours of several are named by the chips over the picture.
  const [only] = scene.drawnHeads;
  const colour = scene.drawnHeads.length === 1 && only ? scene.colourOf(only, theme).colour : theme.secondary;
  return lineLegend(theme, `opacity of lines: ${label}`, full, colour);
}
