/** What the edits of a run act on, for views to mark: heads, and weights between the tokens as read. */

import { EDITED_PARTS, type EditedLayerProps, type SiteProps, type TraceProps } from "../contract";
import type { Reading } from "./reading";
import { headName } from "./trace";

/** An edited weight, by the places of its tokens as read; key −1 stands for the whole row. */
export interface EditedWeight {
  query: number;
  key: number;
}

export type Edits = Pick<TraceProps, "edited_heads" | "edited_layers" | "edited_weights" | "pruned_heads">;
export const NO_EDITS: Edits = { edited_heads: [], edited_layers: [], edited_weights: [], pruned_heads: [] };

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

/** Whether the MLP neurons or the residual stream of an attention layer's block were edited. */
export function isEditedLayer(edits: Edits, { stack, layer }: Pick<SiteProps, "stack" | "layer">): boolean {
  return edits.edited_layers.some((edited) => edited.stack === stack && edited.layer === layer);
}

/** What was edited of layers rather than of heads, part by part: `edited: MLP of L2, L4`. */
export function editedLayerNotes(layers: EditedLayerProps[]): string[] {
  const names = new Map<string, string[]>();
  for (const { stack, layer, part } of layers) {
    const label = EDITED_PARTS[part] ?? part;
    names.set(label, [...(names.get(label) ?? []), `${stack === "main" ? "" : `${stack}.`}L${layer}`]);
  }
  return [...names].map(([part, sites]) => `edited: ${part} of ${sites.join(", ")}`);
}

/** Which heads of those in view are edited, which layers, and how many tokens were replaced, in words. */
export function editedNotes(edits: Edits, heads: string[], readings: Pick<Reading, "isReplaced">[] = []): string[] {
  const edited = heads.filter((head) => edits.edited_heads.includes(head));
  const few = `${edited.slice(0, 6).join(", ")}${edited.length > 6 ? ` and ${edited.length - 6} more` : ""}`;
  const nReplaced = Math.max(0, ...readings.map(({ isReplaced }) => isReplaced.filter(Boolean).length));
  return [
    ...(edited.length ? [`edited: ${few}`] : []),
    ...editedLayerNotes(edits.edited_layers),
    ...(nReplaced ? [`${nReplaced} ${nReplaced === 1 ? "token" : "tokens"} replaced`] : []),
  ];
}

/** Which heads of those in view are pruned (of many, how many), and how they are marked, in words. */
export function prunedNotes({ pruned_heads }: Pick<Edits, "pruned_heads">, heads: string[], mark: string): string[] {
  const pruned = heads.filter((head) => pruned_heads.includes(head));
  if (!pruned.length) return [];
  const names = pruned.length <= 6 ? pruned.join(", ") : `${pruned.length} of ${heads.length} heads`;
  return [`pruned (${mark}): ${names}`];
}

/** The heads of these layers, by name. */
export function headNames(layers: TraceProps["layers"]): string[] {
  return layers.flatMap(({ site, n_heads }) => Array.from({ length: n_heads }, (_, head) => headName(site, head)));
}
