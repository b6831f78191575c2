/** What the picture of a head hides, in a sentence. */

import type { AtlasSelection } from "../../contract";
import { figure } from "./words";

const MUCH = 0.5;
const SOME = 0.2;
const CLOSE = -0.8;

/** In words: key bias where coordinates hide it, then how far distance stands for the logit, then the map. */
export function hidden(numbers: Record<string, number>, coordinates: AtlasSelection["coordinates"]): string {
  const { pearson = Number.NaN, key_bias_share: bias = Number.NaN, trustworthiness = Number.NaN } = numbers;
  const sentences: string[] = [];
  if (coordinates === "lifted")
    sentences.push("Nothing is hidden before the map: for every query the nearer key has the larger logit.");
  else if (bias >= SOME && coordinates !== "raw") {
    const share = Math.round(bias * 100);
    const much = bias >= MUCH ? "Most is hidden" : "Part is hidden";
    sentences.push(
      `${much}: ${share} % of what logits vary by belongs to keys alone, and no distance here shows it. Lifted coordinates do.`,
    );
  }
  if (coordinates !== "lifted" && !Number.isNaN(pearson)) {
    const how =
      pearson > 0
        ? "Far is strong here, against what one expects"
        : pearson > CLOSE
          ? "Near is only roughly strong"
          : "Near is strong";
    sentences.push(`${how} (${figure(pearson)} in the full space).`);
  }
  if (!Number.isNaN(trustworthiness)) {
    sentences.push(`The map keeps neighbours with a trustworthiness of ${figure(trustworthiness)}, 0.5 by chance.`);
  }
  return sentences.join(" ");
}
