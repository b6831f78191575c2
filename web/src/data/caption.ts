/** What a picture is of: the model, the input and the edits. It stands above the picture and in every file of it. */

import type { TraceProps } from "../contract";

/** Letters of an input that are written out: more would not fit on a line anyway. */
const MOST = 300;

/** The input on one line: `“first text” + “second text”`, `“source” → “target”`, `picture`, `sound`. */
export function inputLine({ text, pair, target, stacks }: TraceProps): string {
  const looks = stacks.find((stack) => stack.looks)?.looks || (text === null ? mediumName(stacks) : "");
  const parts = [looks === "image" ? "picture" : looks, text === null && !looks ? tokenText(stacks) : quoted(text)];
  const input = parts.filter(Boolean).join(" and ");
  return [pair ? `${input} + ${quoted(pair)}` : input, quoted(target)].filter(Boolean).join(" → ");
}

/** Model, input and edits on one line, for files: the edits as the Python that makes them. */
export function captionLine(trace: TraceProps): string {
  const { difference } = trace;
  if (difference) return `A: ${difference.a} − B: ${difference.b}`;
  return `Input: ${inputLine(trace) || "unknown"} · ${editsLine(trace.edits)}`;
}

/** `Edited: silence('L3H2'), uniform('L2H1')`; `Not edited`. */
export function editsLine(edits: string[]): string {
  return edits.length ? `Edited: ${edits.map((edit) => edit.replace(/^hs\./, "")).join(", ")}` : "Not edited";
}

/** `1 change`, `2 changes`. */
export function changes(count: number): string {
  return `${count.toLocaleString("en")} ${count === 1 ? "change" : "changes"}`;
}

function quoted(text: string | null): string {
  const line = (text ?? "").slice(0, MOST).replace(/\s+/g, " ").trim();
  return line ? `“${line}${(text ?? "").length > MOST ? "…" : ""}”` : "";
}

function tokenText(stacks: TraceProps["stacks"]): string {
  const [first] = stacks;
  return first?.kind === "text" ? quoted(first.texts.slice(0, MOST).join(" ")) : "";
}

function mediumName([first]: TraceProps["stacks"]): string {
  return first?.kind === "patches" ? "picture" : first?.kind === "frames" ? "sound" : "";
}
