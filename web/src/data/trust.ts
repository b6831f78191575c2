/** What the quick set says of heads on one input: in words, and why an input cannot be tested. */

import type { BadgeProps, TraceProps, TrustProps } from "../contract";
import { number } from "./measures";

export type Verdict = BadgeProps["verdict"];

/** Read without colour: a sign, and always words beside it or in the line under the picture. */
export const SIGNS: Record<Verdict, string> = { "not supported": "✕", mixed: "?", "not tested": "–" };

const WORDS: Record<Verdict, string> = {
  "not supported": "not supported on this input",
  mixed: "mixed",
  "not tested": "not tested",
};
const ORDER: Verdict[] = ["not supported", "mixed", "not tested"];
/** The fewest tokens that attention may point to, as in Python's `faithfulness/kendall_tau.py`. */
const LEAST_TOKENS = 3;

export interface Figure {
  name: string;
  value: number;
  about: string;
}

export function verdictText(verdict: Verdict): string {
  return `${SIGNS[verdict]}\u00a0${WORDS[verdict]}`; // no line ends between them
}

export function badgeOf(trust: TrustProps | null | undefined, head: string): BadgeProps | undefined {
  return trust?.badges.find((badge) => badge.head === head);
}

/** The figures behind a verdict; NaN where one is not known, none where the head was not tested. */
export function figuresOf(badge: BadgeProps, trust: TrustProps): Figure[] {
  const none = `total variation, 0 to 1; up to ${number(trust.same_output)} counts as no change`;
  const figures: [string, string, string][] = [
    ["change_permuted", "permuted", `Change of the output, median of ${trust.n_permutations} permutations: ${none}`],
    ["change_uniform", "uniform", `Change of the output when all weights are equal: ${none}`],
    ["change_identity", "identity", `Change of the output when each token attends to itself: ${none}`],
    ["tau_gradient", "τ with gradient", "Kendall's τ-b of attention with gradient × input, −1 to 1; 0 by chance"],
  ];
  return figures
    .filter(([key]) => key in badge.figures)
    .map(([key, name, about]) => ({ name, value: badge.figures[key] ?? Number.NaN, about }));
}

/** A figure as text; – where it is not known. */
export function figureText({ value }: Figure): string {
  return Number.isNaN(value) ? "–" : number(value);
}

/** A badge beside the pointer. */
export function badgeLines(badge: BadgeProps, trust: TrustProps): string[] {
  const figures = figuresOf(badge, trust);
  const changes = figures.slice(0, -1).map((figure) => `${figure.name} ${figureText(figure)}`);
  return [
    verdictText(badge.verdict),
    ...(changes.length
      ? [`change of the output: ${changes.join(", ")} (up to ${number(trust.same_output)}: none)`]
      : []),
    ...figures.slice(-1).map((figure) => `${figure.name} ${figureText(figure)}`),
  ];
}

/** How many of these heads have which verdict: few by name. */
export function verdictNotes(trust: TrustProps | null | undefined, heads: string[]): string[] {
  const badges = (trust?.badges ?? []).filter(({ head }) => heads.includes(head));
  return ORDER.flatMap((verdict) => {
    const names = badges.filter((badge) => badge.verdict === verdict).map(({ head }) => head);
    if (!names.length) return [];
    return [
      `${verdictText(verdict)}: ${names.length <= 6 ? names.join(", ") : `${names.length} of ${heads.length} heads`}`,
    ];
  });
}

/** Two tests of one run: of each head the later word. */
export function joinTrust(before: TrustProps | null, after: TrustProps): TrustProps {
  const tested = new Set(after.badges.map(({ head }) => head));
  return { ...after, badges: [...(before?.badges ?? []).filter(({ head }) => !tested.has(head)), ...after.badges] };
}

/** Why attention cannot be tested on this input, as far as the page can tell; empty where it may be. */
export function untestable(trace: TraceProps): string {
  const names = trace.stacks.map(({ name }) => name);
  if (names.includes("encoder") && names.includes("decoder")) {
    return "Attention is tested in models that classify texts, tag words or predict tokens. This is an encoder-decoder.";
  }
  const text = trace.stacks.find(({ kind }) => kind === "text");
  if (!text) return "Attention is tested on texts.";
  const count = text.texts.length - text.special.length;
  if (count >= LEAST_TOKENS) return "";
  return `The text has ${count} ${count === 1 ? "token" : "tokens"} apart from special ones; the test needs ${LEAST_TOKENS}.`;
}
