/** Runs in a few words, where several are named. */

import type { ModelProps } from "../contract";
import { nameOf, shortened, shortName } from "./input/draft";
import type { OpenRun } from "./slices";

/** `gpt: The doctor asked …`, with its edits where it has any. */
export function runName({ request, trace }: OpenRun, models: ModelProps[]): string {
  const name = request ? nameOf(request, models) : shortened(trace.text ?? "");
  const count = trace.edits.length;
  const edits = count ? ` (${count} edit${count > 1 ? "s" : ""})` : "";
  return `${shortName(trace.model)}${edits}: ${name}`;
}
