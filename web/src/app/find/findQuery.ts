/** What heads are looked for: as the form holds it, as the server takes it, as a link carries it. */

import type { ModelProps, PatternOffer, RunRequest, TraceProps } from "../../contract";
import { requestOf } from "../../request";
import type { Stretch } from "../../views/painting";

export type By = "example" | "pattern" | "painted" | "effect";
export type Over = "run" | "lines" | "sample" | "repeated";

/** A token or a word: typed, or clicked, and then by the positions it stands for. */
export interface Named {
  text: string;
  at: number[] | null;
}

export interface FindQuery {
  by: By;
  from: Named;
  to: Named;
  pattern: string;
  cells: Stretch[];
  /** The layer that was clicked or painted on. */
  site: string;
  token: string;
  position: number | null;
  ablate: "zero" | "mean";
  over: Over;
  /** Inputs of one's own, one a line. */
  lines: string;
}

export const EMPTY_QUERY: FindQuery = {
  by: "example",
  from: { text: "", at: null },
  to: { text: "", at: null },
  pattern: "previous_token",
  cells: [],
  site: "",
  token: "",
  position: null,
  ablate: "zero",
  over: "run",
  lines: "",
};

/** What each kind of search goes by. */
const USED: Record<By, (keyof FindQuery)[]> = {
  example: ["from", "to", "site"],
  pattern: ["pattern"],
  painted: ["cells", "site"],
  effect: ["token", "position", "ablate"],
};

/** Longer ones are not put into links. */
const LONGEST = 4000;

/** What is still missing, in words; empty when it can be asked. */
export function lacking(query: FindQuery): string {
  if (query.by === "example" && !(query.from.text.trim() && query.to.text.trim())) {
    return "Name the word that looks and the one that is looked at.";
  }
  if (query.by === "example" && query.over !== "run" && (query.from.at || query.to.at)) return "";
  if (query.by === "painted" && !query.cells.length) return "Paint at least one cell of the matrix.";
  if (query.by === "effect" && !query.token) return "Name the prediction that counts.";
  if (query.over === "lines" && !query.lines.trim()) return "Write at least one input.";
  return "";
}

/** The options of the server's task: what the kind of search has no use for is left out. */
export function optionsOf(query: FindQuery): Record<string, unknown> {
  const { by, over } = query;
  const options: Record<string, unknown> = { by };
  // Positions belong to one input: elsewhere the word itself is looked for.
  const named = ({ text, at }: Named) => (at && over === "run" ? at : text.trim());
  if (by === "example")
    Object.assign(options, { source: named(query.from), target: named(query.to), site: query.site });
  if (by === "pattern") options.pattern = query.pattern;
  if (by === "painted") Object.assign(options, { cells: query.cells, site: query.site });
  if (by === "effect") {
    Object.assign(options, { token: query.token, position: query.position, ablate: query.ablate });
  }
  if (by !== "painted" && over !== "run") {
    options.over = over;
    if (over === "lines") options.lines = query.lines.split("\n").filter((line) => line.trim());
  }
  return options;
}

/** For a link; empty where it would make the link too long. */
export function queryText(query: FindQuery): string {
  const used = ["by", "over", "lines", ...USED[query.by]];
  const changed = Object.entries(query).filter(
    ([name, value]) =>
      used.includes(name) && JSON.stringify(value) !== JSON.stringify(EMPTY_QUERY[name as keyof FindQuery]),
  );
  const text = JSON.stringify(Object.fromEntries(changed));
  return text.length > LONGEST ? "" : text;
}

/** Reads what a link carries; null where that is not understood. */
export function parseQuery(text: string): FindQuery | null {
  if (!text) return null;
  let raw: Record<string, unknown>;
  try {
    raw = JSON.parse(text);
  } catch {
    return null;
  }
  if (!raw || typeof raw !== "object") return null;
  const query: FindQuery = structuredClone(EMPTY_QUERY);
  for (const name of ["pattern", "site", "token", "lines"] as const) {
    if (typeof raw[name] === "string") query[name] = raw[name] as string;
  }
  query.by = choice(raw.by, ["example", "pattern", "painted", "effect"], query.by);
  query.over = choice(raw.over, ["run", "lines", "sample", "repeated"], query.over);
  query.ablate = choice(raw.ablate, ["zero", "mean"], query.ablate);
  for (const name of ["from", "to"] as const) query[name] = named(raw[name]) ?? query[name];
  if (isPlace(raw.position)) query.position = raw.position;
  if (Array.isArray(raw.cells)) {
    query.cells = raw.cells.filter(
      (cell): cell is Stretch => Array.isArray(cell) && cell.length === 3 && cell.every(isPlace),
    );
  }
  return lacking(query) ? null : query;
}

function named(raw: unknown): Named | null {
  const { text, at } = (raw ?? {}) as Partial<Named>;
  if (typeof text !== "string") return null;
  return { text, at: Array.isArray(at) && at.every(isPlace) ? at : null };
}

function isPlace(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0;
}

function choice<Value extends string>(raw: unknown, known: Value[], usual: Value): Value {
  return known.includes(raw as Value) ? (raw as Value) : usual;
}

/** Two words of the input to look from and to, for a form that is still empty: a late one and an early one. */
export function exampleIn({ stacks }: Pick<TraceProps, "stacks">): { from: string; to: string } {
  const tokens = stacks.find(({ kind }) => kind === "text")?.texts.map((text) => text.trim()) ?? [];
  const words = [...new Set(tokens.filter((text) => /^\p{L}{2,}$/u.test(text)))];
  const to = words.find((text) => text.length > 3) ?? words[0] ?? "";
  return { from: words.findLast((text) => text !== to) ?? "", to };
}

/** Why a pattern cannot occur in any input of a model that takes these kinds; empty where it can, or that is unknown. */
export function unfitPattern(pattern: PatternOffer, kinds: string[] | null, isCausal: boolean): string {
  if (pattern.looks_ahead && isCausal) return "this model cannot look ahead";
  if (!kinds || !pattern.kinds.length || pattern.kinds.some((kind) => kinds.includes(kind))) return "";
  if (pattern.kinds.includes("image")) return "needs a model that reads images";
  return pattern.kinds.includes("text") ? "needs a model that reads text" : "needs a model that reads pairs";
}

/** An input that shows a pattern, for a model that takes these kinds; null where there is none. */
export function inputThatShows(pattern: PatternOffer, model: ModelProps | undefined): RunRequest | null {
  const form = pattern.pair === null ? "text" : "pair";
  if (!model?.kinds.includes(form) || !pattern.text) return null;
  return requestOf({ model: model.name, text: pattern.text, pair: pattern.pair });
}
