/** Edits that the head on screen does not take, with the reason: they are disabled before anybody fills in a form. */

import type { SiteProps, TraceProps } from "../../contract";

export type Refusals = Record<string, string>;

const WRITTEN = "the mean over a text that the model is still writing changes at every step";
const CROSS_WRITTEN = "single tokens of cross-attention cannot be followed while the model writes";
const MEDIA: Record<string, string> = { patches: "a picture", frames: "a sound" };

/** The stack whose tokens can be replaced: what the model reads as text. */
export function textStack(trace: TraceProps) {
  const { stacks } = trace;
  const stack =
    stacks.find(({ name }) => name === "encoder") ?? stacks.find(({ name }) => name === "text") ?? stacks[0];
  return stack?.kind === "text" && stack.texts.length ? stack : undefined;
}

/** By the name of the control; what is not in it is allowed. `isWriting`: the model writes the text anew with the edits. */
export function refusals(trace: TraceProps, site: SiteProps, isWriting = false): Refusals {
  const media = MEDIA[trace.stacks.find((stack) => stack.kind !== "text")?.kind ?? ""] ?? "this input";
  const reasons: Refusals = {
    mean_ablate: isWriting ? WRITTEN : "",
    weights: site.no_token_edits || (isWriting && site.kind === "cross" ? CROSS_WRITTEN : ""),
    token: textStack(trace) ? "" : `only tokens of a text can be replaced, and the model reads ${media}`,
    patch: trace.text === null ? `another run is named by its text, and the model reads ${media}` : "",
  };
  return Object.fromEntries(Object.entries(reasons).filter(([, reason]) => reason));
}

/** The reasons as sentences, each once, with the labels of what it disables: "Token: only tokens …". */
export function explained(reasons: Refusals, labels: Record<string, string>): string[] {
  const byReason = new Map<string, string[]>();
  for (const [name, reason] of Object.entries(reasons)) {
    byReason.set(reason, [...(byReason.get(reason) ?? []), labels[name] ?? name]);
  }
  return [...byReason].map(([reason, names]) => `${names.join(", ")}: ${reason}.`);
}
