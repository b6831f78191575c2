/** An example of an atlas as an input to run. */

import type { AtlasExamplesProps, AtlasProps, RunRequest } from "../../contract";
import { requestOf } from "../../request";

/** The request that runs it; null where it is no text, or where its texts are gone. */
export function exampleRequest(atlas: AtlasProps, examples: AtlasExamplesProps, index: number): RunRequest | null {
  if (!atlas.model) return null;
  const [first, second] = [...atlas.stacks].sort(readsFirst).map(({ name }) => examples.texts[name]?.[index] ?? "");
  if (!first) return null;
  return requestOf({ model: atlas.model, text: first, ...(second ? { target: second } : {}) });
}

/** The encoder reads the text, the decoder writes the target. */
function readsFirst(a: { name: string }, b: { name: string }): number {
  return Number(a.name === "decoder") - Number(b.name === "decoder");
}
