/** Edits in words, by the phrases of the glossary: "silence L3H2", "block She → nurse in L5H0". */

import { EDIT_OPTIONS, EDIT_TERMS, EDITED_PARTS, type EditTerm, type TraceProps } from "../../contract";
import { Call, parsed, type Value } from "./calls";

/** A piece of an edit's words: `strong` for tokens of the user's. */
export interface Word {
  text: string;
  strong?: boolean;
}

type Arguments = Record<string, Value | undefined>;

/** Arguments that name tokens: only the run knows their texts. */
const TOKENS = ["tokens", "queries", "query", "position"];
const KEYS = ["keys", "key"];

/** What an edit does, in words. An edit that the glossary does not know is shown as it is written. */
export function words(text: string, trace: TraceProps | null): Word[] {
  const call = parsed(text);
  const term = call && EDIT_TERMS[call.name];
  if (!call || !term) return [{ text }];
  const named = argumentsOf(call, term);
  const place = String(named.head ?? named.site ?? "");
  const filled = (phrase: string) => fill(phrase, (name) => word(name, named, place, trace));
  const options = Object.entries(EDIT_OPTIONS).filter(([name]) => isSet(name, named[name]));
  return [term.phrase, ...options.map(([, phrase]) => phrase)].flatMap(filled);
}

/** The words as one text. */
export function spoken(text: string, trace: TraceProps | null): string {
  return words(text, trace)
    .map((word) => word.text)
    .join("");
}

/** A run's edits in a few words: "silence L3H2 and L4H0". Of one that is about tokens, the label. */
export function summary(edits: string[]): string {
  const calls = edits.map(parsed);
  const silenced = calls.every((call) => call?.name === "silence" && !Object.keys(call.options).length);
  if (silenced && calls.length)
    return spoken(call("silence", joined(calls.map((each) => String(each?.args[0])))), null);
  const [first = ""] = edits;
  const phrase = brief(calls[0] ?? null) ?? spoken(first, null);
  return edits.length > 1 ? `${phrase} and ${edits.length - 1} more` : phrase;
}

function call(name: string, place: string): string {
  return String(new Call(name, [place]));
}

/** Which tokens an edit is about only the run itself can say: without it, its label and its head. */
function brief(call: Call | null): string | null {
  const term = call && EDIT_TERMS[call.name];
  if (!term) return null;
  const named = argumentsOf(call, term);
  const isOfTokens = [...TOKENS, ...KEYS].some((name) => isSet(name, named[name]));
  if (!isOfTokens) return null;
  return named.head === undefined ? term.label : `${term.label} in ${placeName(named.head)}`;
}

/** Arguments by name: those that are written by their place, too. */
function argumentsOf({ args, options }: Call, { parameters }: EditTerm): Arguments {
  return { ...Object.fromEntries(args.map((value, place) => [parameters[place] ?? "", value])), ...options };
}

function isSet(name: string, value: Value | undefined): boolean {
  return name === "renormalise" ? value === false : value !== undefined;
}

/** A phrase with a word in place of each name in braces. */
function fill(phrase: string, wordOf: (name: string) => Word): Word[] {
  return phrase
    .split(/\{(\w+)\}/)
    .map((piece, place) => (place % 2 ? wordOf(piece) : { text: piece }))
    .filter(({ text }) => text);
}

function word(name: string, named: Arguments, place: string, trace: TraceProps | null): Word {
  const value = named[name];
  if (name === "head") return { text: patched(named) + placeName(value) };
  if (name === "part") return { text: EDITED_PARTS[String(value)] ?? String(value) };
  if (name === "source") return { text: shortened(source(value)), strong: true };
  if (name === "token")
    return value === undefined || value === null ? { text: "the mask token" } : { text: String(value), strong: true };
  if (TOKENS.includes(name)) return token(value, stackOf(name === "position" ? "" : place, trace));
  if (KEYS.includes(name)) return token(value, stackOf(place, trace, true));
  return { text: number(value) };
}

function placeName(head: Value | undefined): string {
  return head === null ? "all heads" : String(head ?? "");
}

/** What is patched where it is not the output: `query of `. */
function patched({ stage }: Arguments): string {
  return typeof stage === "string" ? `${EDITED_PARTS[stage] ?? stage} of ` : "";
}

function joined(names: string[]): string {
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

function number(value: Value | undefined): string {
  if (typeof value !== "number") return String(value);
  return String(Number(value.toPrecision(4))).replace("-", "−");
}

function source(value: Value | undefined): string {
  if (!(value instanceof Call)) return "another run";
  const text = value.args[0];
  const turns = Array.isArray(text) ? text : [];
  const last = turns.at(-1) as { content?: string } | undefined;
  return typeof text === "string" ? text : (last?.content ?? "another run");
}

function shortened(text: string): string {
  return text.length > 40 ? `${text.slice(0, 39).trimEnd()}…` : text;
}

function stackOf(place: string, trace: TraceProps | null, isKeys = false): string[] {
  const site = place.replace(/H\d+$/, "");
  const layer = trace?.layers.find((layer) => layer.site === site);
  const name = isKeys ? layer?.key_stack : layer?.stack;
  return (trace?.stacks.find((stack) => stack.name === name) ?? trace?.stacks[0])?.texts ?? [];
}

/** The tokens that a choice names, by their texts where they are known. */
function token(choice: Value | undefined, texts: string[]): Word {
  const nameOf = (value: Value | undefined): string => {
    if (typeof value === "string" && value.startsWith("box:"))
      return `the region ${value.slice(4).split(",").join(", ")}`;
    if (typeof value !== "number") return String(value);
    return texts[value < 0 ? texts.length + value : value]?.trim() || `token ${value}`;
  };
  if (!Array.isArray(choice)) return { text: nameOf(choice), strong: true };
  const few = choice.slice(0, 4).map(nameOf).join(" ");
  return { text: choice.length > 4 ? `${few} …` : few, strong: true };
}
