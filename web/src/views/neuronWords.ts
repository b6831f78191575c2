/** What the neuron view shows, in words. */

import type { NeuronProps } from "../contract";
import { patchNote } from "../data/reading";
import type { Selection } from "../selection";
import { type Heat, TITLES } from "./neuronLayout";
import type { Content } from "./neuronTip";

const BIASES = {
  "": "",
  key: "a bias for each key is added",
  offset: "a bias for each distance is added",
  dense: "a bias for each pair is added",
  windows: "a bias for each pair in a window is added",
};
/** The score as its column is called: as far as it is scaled. */
export function dotsTitle({ scaling, dim }: Pick<NeuronProps, "scaling" | "dim">): string {
  if (scaling === null || scaling === 1) return "q·k";
  return isUsual(scaling, dim) ? "q·k/√d" : "q·k×s";
}

function isUsual(scaling: number, dim: number): boolean {
  return Math.abs(scaling * Math.sqrt(dim) - 1) < 1e-3;
}

const WORDS = { query: "queries", key: "keys", value: "values", mixed: "outputs" };

/** `forced` are the columns that had no room. */
export function wordsOf(
  content: Content,
  order: Selection["order"],
  isDifference: boolean,
  forced: Heat[],
): { line: string; notes: string[] } {
  const { terms, tokens } = content;
  const count = tokens.texts.length.toLocaleString("en");
  const notes: string[] = [];
  const sign = isDifference ? "A − B: " : "";
  if (!terms) {
    if (order === "spread") notes.push("neurons that depend least on the token first");
    const line = `${sign}${content.vectors.head}, ${WORDS[content.every ?? "query"]} of all ${count} tokens, ${content.order.length} neurons`;
    return { line, notes };
  }
  const { props } = terms;
  if (props.scaling !== null) {
    const usual = isUsual(props.scaling, props.dim) ? ` = 1/√${props.dim}` : "";
    notes.push(`scores and q × k are scaled by ${Number(props.scaling.toPrecision(4))}${usual}`);
  }
  if (props.softcap !== null) notes.push(`soft cap ${props.softcap}`);
  if (props.bias) notes.push(BIASES[props.bias]);
  if (props.sink !== null) notes.push("a sink takes a share of each row");
  notes.push(...patchNote([tokens]), ...props.notes);
  const size = terms.two ? "how far q × k changed, |A − B|," : "|q × k|";
  if (order === "contribution") notes.push(`neurons by ${size} of what is attended to`);
  if (content.against !== null)
    notes.push(`neurons by ${size} of ${tokens.texts[content.against]} (${content.against})`);
  if (forced.length) notes.push(`folded for want of room: ${forced.map((name) => TITLES[name]).join(", ")}`);
  return {
    line: `${sign}${content.vectors.head}, query ${content.query.text} (${terms.index}), ${count} keys, ${props.dim} neurons`,
    notes,
  };
}
