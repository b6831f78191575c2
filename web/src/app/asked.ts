/** What heads are looked for: as the form holds it, as the server takes it, as a link carries it. */

import type { Stretch } from "../views/painting";

export type By = "example" | "pattern" | "painted" | "effect";
export type Over = "run" | "lines" | "sample" | "repeated";

/** A token or a word: typed, or clicked, and then by the positions it stands for. */
export interface Named {
  text: string;
  at: number[] | null;
}

export interface Asked {
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

export const NOTHING: Asked = {
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
const USED: Record<By, (keyof Asked)[]> = {
  example: ["from", "to", "site"],
  pattern: ["pattern"],
  painted: ["cells", "site"],
  effect: ["token", "position", "ablate"],
};

/** Longer ones are not put into links. */
const LONGEST = 4000;

/** What is still missing, in words; empty when it can be asked. */
export function lacking(asked: Asked): string {
  if (asked.by === "example" && !(asked.from.text.trim() && asked.to.text.trim())) {
    return "Name the word that looks and the one that is looked at.";
  }
  if (asked.by === "example" && asked.over !== "run" && (asked.from.at || asked.to.at)) return "";
  if (asked.by === "painted" && !asked.cells.length) return "Paint at least one cell of the matrix.";
  if (asked.by === "effect" && !asked.token) return "Name the prediction that counts.";
  if (asked.over === "lines" && !asked.lines.trim()) return "Write at least one input.";
  return "";
}

/** The options of the server's task: what the kind of search has no use for is left out. */
export function optionsOf(asked: Asked): Record<string, unknown> {
  const { by, over } = asked;
  const found: Record<string, unknown> = { by };
  // Positions belong to one input: elsewhere the word itself is looked for.
  const named = ({ text, at }: Named) => (at && over === "run" ? at : text.trim());
  if (by === "example") Object.assign(found, { source: named(asked.from), target: named(asked.to), site: asked.site });
  if (by === "pattern") found.pattern = asked.pattern;
  if (by === "painted") Object.assign(found, { cells: asked.cells, site: asked.site });
  if (by === "effect") {
    Object.assign(found, { token: asked.token, position: asked.position, ablate: asked.ablate });
  }
  if (by !== "painted" && over !== "run") {
    found.over = over;
    if (over === "lines") found.lines = asked.lines.split("\n").filter((line) => line.trim());
  }
  return found;
}

/** For a link; empty where it would make the link too long. */
export function written(asked: Asked): string {
  const used = ["by", "over", "lines", ...USED[asked.by]];
  const changed = Object.entries(asked).filter(
    ([name, value]) => used.includes(name) && JSON.stringify(value) !== JSON.stringify(NOTHING[name as keyof Asked]),
  );
  const text = JSON.stringify(Object.fromEntries(changed));
  return text.length > LONGEST ? "" : text;
}

/** Reads what a link carries; null where that is not understood. */
export function read(text: string): Asked | null {
  if (!text) return null;
  let given: Record<string, unknown>;
  try {
    given = JSON.parse(text);
  } catch {
    return null;
  }
  if (!given || typeof given !== "object") return null;
  const found: Asked = structuredClone(NOTHING);
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
