/** What the edits of a run act on, for views to mark: heads, and weights between the tokens as read. */

import type { TraceProps } from "../contract";
import type { Reading } from "./reading";
import { headName } from "./trace";

/** An edited weight, by the places of its tokens as read; key −1 stands for the whole row. */
export interface EditedWeight {
  query: number;
  key: number;
}

export type Edits = Pick<TraceProps, "edited_heads" | "edited_weights">;

/** Marks beyond this many would hide what they mark. */
const MOST = 400;

/** The edited weights of a head. */
export function weightsOf(edits: Edits, head: string, queries: Reading, keys: Reading): EditedWeight[] {
  const weights = new Map<string, EditedWeight>();
  for (const edit of edits.edited_weights) {
    if (edit.head !== head) continue;
    for (const position of edit.queries) {
      const query = queries.groupOf[position] ?? -1;
      const places = edit.keys.length
        ? edit.keys.map((key) => keys.groupOf[key] ?? -1).filter((key) => key >= 0)
        : [-1];
      if (query < 0) continue;
      for (const key of places) {
        weights.set(`${query} ${key}`, { query, key });
        if (weights.size >= MOST) return [...weights.values()];
      }
    }
  }
  return [...weights.values()];
}

/** Which heads of those in view are edited, and which tokens were replaced, in words. */
export function editedNotes(edits: Edits, heads: string[], readings: Pick<Reading, "isReplaced">[] = []): string[] {
  const edited = heads.filter((head) => edits.edited_heads.includes(head));
  const few = `${edited.slice(0, 6).join(", ")}${edited.length > 6 ? ` and ${edited.length - 6} more` : ""}`;
  const nReplaced = Math.max(0, ...readings.map(({ isReplaced }) => isReplaced.filter(Boolean).length));
  return [
    ...(edited.length ? [`edited: ${few}`] : []),
    ...(nReplaced ? [`${nReplaced} ${nReplaced === 1 ? "token" : "tokens"} replaced`] : []),
  ];
}

/** The heads of these layers, by name. */
export function headNames(layers: TraceProps["layers"]): string[] {
  return layers.flatMap(({ site, n_heads }) => Array.from({ length: n_heads }, (_, head) => headName(site, head)));
}
