/** Links: model, input and selection in the fragment of the address, only what differs from the default. */

import type { ChatMessage, RunRequest } from "../contract";
import { requestOf } from "../request";
import type { Selection } from "../selection";
import { fragmentOf, selectionFrom, selectionParams } from "../selectionLink";
import { calls, type Edit } from "./edit/edits.svelte";

/** What a link asks for. In a saved file it is only a selection. */
export interface Link {
  model: string;
  /** Null without an input. */
  request: RunRequest | null;
  /** The stack of edits, those too that are switched off. */
  edits: Edit[];
  selection: Selection;
  /** The run that it is compared with, if any. */
  other: RunRequest | null;
  /** The name under which a text too long for a link is kept in this tab; empty when the link carries it. */
  kept: string;
}

export const LONGEST_LINK = 32_000;
export const TOO_LONG = `The input is longer than ${LONGEST_LINK.toLocaleString("en")} characters, so the link cannot carry it: it works in this tab only. Save the page as HTML to pass it on.`;
/** The most tokens that the server has a model write, as Python's `server/runs.py` has it. */
export const MOST_WRITTEN = 200;

/** The fragment, without `#`. `keep` is asked to remember an input that is too long and gives it a name. */
export function linkText(
  request: RunRequest | null,
  selection: Selection,
  keep: (text: string) => string,
  other: RunRequest | null = null,
  edits?: Edit[],
): string {
  const parameters = new URLSearchParams();
  if (request) {
    parameters.set("model", request.model);
    const input = inputOf(request, edits);
    if (input.toString().length > LONGEST_LINK) parameters.set("kept", keep(input.toString()));
    else for (const [name, value] of input) parameters.append(name, value);
    if (other) parameters.set("with", withOf(request, other, keep));
  }
  for (const [name, value] of Object.entries(selectionParams(selection))) parameters.set(name, value);
  return fragmentOf(parameters);
}

/** Reads a fragment, with or without `#`; `recall` gives back what `keep` was told. Never throws. */
export function parseLink(fragment: string, recall: (name: string) => string | null): Link {
  const parameters = new URLSearchParams(fragment.replace(/^#/, ""));
  const model = parameters.get("model") ?? "";
  const kept = parameters.get("kept") ?? "";
  const input = kept ? new URLSearchParams(recall(kept) ?? "") : parameters;
  const request = requestIn(model, input);
  return {
    model,
    request,
    edits: input.getAll("edit").map(editOf),
    other: request && otherOf(request, parameters.get("with"), recall),
    selection: selectionFrom(parameters),
    kept,
  };
}

function requestIn(model: string, input: URLSearchParams): RunRequest | null {
  const has = ["text", "pair", "target", "chat", "media"].some((name) => input.has(name));
  return model && has
    ? requestOf({
        model,
        text: input.get("text"),
        pair: input.get("pair"),
        target: input.get("target"),
        chat: chatOf(input.get("chat")),
        truncate: input.get("cut") === "1",
        edits: calls(input.getAll("edit").map(editOf)),
        generate: writtenOf(input.get("write")),
        media: input.get("media"),
        language: input.get("language"),
        task: input.get("task"),
      })
    : null;
}

/** A second run, as what sets it apart from the first: names with other values, without a value where it lacks one. */
function withOf(request: RunRequest, other: RunRequest, keep: (text: string) => string): string {
  const [first, second] = [inputOf(request), inputOf(other)];
  const changes = new URLSearchParams();
  if (request.model !== other.model) changes.set("model", other.model);
  for (const name of new Set([...first.keys(), ...second.keys()])) {
    const values = second.getAll(name); // there may be several edits
    if (JSON.stringify(first.getAll(name)) === JSON.stringify(values)) continue;
    for (const value of values.length ? values : [""]) changes.append(name, value);
  }
  const text = changes.toString() || "same";
  return text.length > LONGEST_LINK ? `kept:${keep(text)}` : text;
}

function otherOf(
  request: RunRequest,
  value: string | null,
  recall: (name: string) => string | null,
): RunRequest | null {
  const text = value?.startsWith("kept:") ? recall(value.slice("kept:".length)) : value;
  if (!text) return null;
  const input = inputOf(request);
  const changes = new URLSearchParams(text === "same" ? "" : text);
  for (const name of new Set(changes.keys())) {
    input.delete(name);
    for (const value of changes.getAll(name)) if (value) input.append(name, value);
  }
  return requestIn(changes.get("model") ?? request.model, input);
}

const OFF = "off:";

/** The stack of a run of which nothing else is known. */
export function switchedOn(request: RunRequest): Edit[] {
  return request.edits.map((call) => ({ call, isOn: true }));
}

function editOf(text: string): Edit {
  return text.startsWith(OFF) ? { call: text.slice(OFF.length), isOn: false } : { call: text, isOn: true };
}

function inputOf(request: RunRequest, edits = switchedOn(request)): URLSearchParams {
  const parameters = new URLSearchParams();
  for (const name of ["text", "pair", "target"] as const) {
    const text = request[name];
    if (text !== null) parameters.set(name, text);
  }
  if (request.chat) parameters.set("chat", JSON.stringify(request.chat.map((turn) => [turn.role, turn.content])));
  if (request.truncate) parameters.set("cut", "1");
  for (const { call, isOn } of edits) parameters.append("edit", isOn ? call : OFF + call);
  if (request.generate) parameters.set("write", String(request.generate));
  for (const name of ["media", "language", "task"] as const) {
    const choice = request[name];
    if (choice) parameters.set(name, choice);
  }
  return parameters;
}

/** How many tokens the model is to write: a number that the server would take, or none. */
function writtenOf(text: string | null): number {
  return text && /^\d{1,3}$/.test(text) ? Math.min(MOST_WRITTEN, Number(text)) : 0;
}

function chatOf(text: string | null): ChatMessage[] | null {
  if (!text) return null;
  try {
    const turns: unknown = JSON.parse(text);
    if (!Array.isArray(turns)) return null;
    const messages = turns.filter(
      (turn) => Array.isArray(turn) && turn.length === 2 && turn.every((x) => typeof x === "string"),
    );
    return messages.length ? messages.map(([role, content]) => ({ role, content })) : null;
  } catch {
    return null;
  }
}
