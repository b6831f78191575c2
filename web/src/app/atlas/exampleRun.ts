/** An example of an atlas as an input to run, and the head to look at in it. */

import type { AtlasExamplesProps, AtlasProps, RunRequest } from "../../contract";
import { requestOf } from "../../request";
import { DEFAULT, type Selection } from "../../selection";

/** Null where it is no text, or where its texts are gone. */
export function exampleRun(
  atlas: AtlasProps,
  examples: AtlasExamplesProps,
  index: number,
  place: string,
): { request: RunRequest; selection: Selection } | null {
  if (!atlas.model) return null;
  const [first, second] = [...atlas.stacks].sort(readsFirst).map(({ name }) => examples.texts[name]?.[index] ?? "");
  if (!first) return null;
  const request = requestOf({ model: atlas.model, text: first, ...(second ? { target: second } : {}) });
  const at = atlas.places.find(({ address }) => address === place);
  const head = at?.head ?? 0;
  return { request, selection: { ...DEFAULT, scale: "head", site: at?.site ?? "", head, heads: [head] } };
}

/** The encoder reads the text, the decoder writes the target. */
function readsFirst(a: { name: string }, b: { name: string }): number {
  return Number(a.name === "decoder") - Number(b.name === "decoder");
}
