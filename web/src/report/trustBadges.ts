/** Badges of heads whose attention was tested over a corpus: a sign, and always words beside it or in the tip. */

import type { HeadTrust } from "./contents";
import { make } from "./elements";

const SIGNS: Record<HeadTrust["verdict"], string> = {
  supported: "✓",
  mixed: "?",
  "not supported": "✕",
  "not tested": "–",
};
/** The best first. */
export const VERDICTS = Object.keys(SIGNS) as HeadTrust["verdict"][];

/** All signs with their words. */
export const TRUST_KEY = VERDICTS.map((verdict) => `${SIGNS[verdict]} ${verdict}`).join(", ");

export function trustText({ verdict }: HeadTrust): string {
  return `${SIGNS[verdict]}\u00a0${verdict}`; // no line ends between them
}

/** The sign on the cell of a head; its words are in the cell's name and tip. */
export function trustSign(trust: HeadTrust): HTMLElement {
  return make("i", { class: badgeClass(trust), "aria-hidden": true }, [SIGNS[trust.verdict]]);
}

export function trustBadge(trust: HeadTrust): HTMLElement {
  return make("span", { class: badgeClass(trust) }, [trustText(trust)]);
}

function badgeClass({ verdict }: HeadTrust): string {
  return verdict === "not supported" ? "badge refuted" : "badge";
}
