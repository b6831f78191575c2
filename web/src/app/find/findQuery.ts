/** What heads are looked for: as the form holds it, as the server takes it, as a link carries it. */

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
  const found: Record<string, unknown> = { by };
  // Positions belong to one input: elsewhere the word itself is looked for.
  const named = ({ text, at }: Named) => (at && over === "run" ? at : text.trim());
  if (by === "example") Object.assign(found, { source: named(query.from), target: named(query.to), site: query.site });
  if (by === "pattern") found.pattern = query.pattern;
  if (by === "painted") Object.assign(found, { cells: query.cells, site: query.site });
  if (by === "effect") {
    Object.assign(found, { token: query.token, position: query.position, ablate: query.ablate });
  }
  if (by !== "painted" && over !== "run") {
    found.over = over;
    if (over === "lines") found.lines = query.lines.split("\n").filter((line) => line.trim());
  }
  return found;
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
  let given: Record<string, unknown>;
  try {
    given = JSON.parse(text);
  } catch {
    return null;
  }
  if (!given || typeof given !== "object") return null;
  const found: FindQuery = structuredClone(EMPTY_QUERY);
  for (const name of ["pattern", "site", "token", "lines"] as const) {
    if (typeof given[name] === "string") found[name] = given[name] as string;
  }
  found.by = choice(given.by, ["example", "pattern", "painted", "effect"], found.by);
  found.over = choice(given.over, ["run", "lines", "sample", "repeated"], found.over);
  found.ablate = choice(given.ablate, ["zero", "mean"], found.ablate);
  for (const name of ["from", "to"] as const) found[name] = named(given[name]) ?? found[name];
  if (isPlace(given.position)) found.position = given.position;
  if (Array.isArray(given.cells)) {
    found.cells = given.cells.filter(
      (one): one is Stretch => Array.isArray(one) && one.length === 3 && one.every(isPlace),
    );
  }
  return lacking(found) ? null : found;
}

function named(given: unknown): Named | null {
  const { text, at } = (given ?? {}) as Partial<Named>;
  if (typeof text !== "string") return null;
  return { text, at: Array.isArray(at) && at.every(isPlace) ? at : null };
}

function isPlace(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0;
}

function choice<Value extends string>(given: unknown, known: Value[], usual: Value): Value {
  return known.includes(given as Value) ? (given as Value) : usual;
}
