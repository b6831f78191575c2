/** The two ends of a pair of tokens: whole words of a text, patches of a picture. */

import type { Case, CaseToken, Pair } from "./contents";

/** The tokens at both ends, each with the rest of its word; pieces of one and the same word stay pieces. */
export function endsOf({ tokens, queries }: Case, [query, key]: Pair): { from: number[]; to: number[] } {
  const from = queries ?? tokens;
  const word = wordOf(from, query);
  if (!queries && word >= 0 && word === wordOf(tokens, key)) return { from: [query], to: [key] };
  return { from: wholeWord(from, query), to: wholeWord(tokens, key) };
}

export function textOf(tokens: CaseToken[], places: number[]): string {
  return places.map((at) => tokens[at]?.[0] ?? "").join("") || "␣";
}

/** Rows and columns are counted from 1, as in the workbench. */
export function patchName(patch: number, [, columns]: [number, number]): string {
  return patch < 0 ? "special token" : `row ${Math.floor(patch / columns) + 1}, column ${(patch % columns) + 1}`;
}

function wordOf(tokens: CaseToken[], at: number): number {
  return tokens[at]?.[3] ?? -1;
}

function wholeWord(tokens: CaseToken[], at: number): number[] {
  const word = wordOf(tokens, at);
  return word < 0 ? [at] : tokens.map((_, other) => other).filter((other) => wordOf(tokens, other) === word);
}
