/** Code that compares two runs as the page does. */

import type { RunRequest, TraceProps } from "../contract";
import type { Selection } from "../selection";
import { imports, literal, run, viewOf } from "./python";

export interface Second {
  trace: TraceProps;
  request: RunRequest | null;
}

/** The view of their difference; where there is none, one relation in both. */
export function pythonOfTwo(one: Second, other: Second, difference: TraceProps | null, selection: Selection): string {
  // Activations are of one run each.
  const scale = selection.scale === "activations" ? "model" : selection.scale;
  const view = viewOf(difference ?? one.trace, { ...selection, scale });
  const lines = [
    imports(one.request, other.request),
    "",
    `model = hs.load(${literal(one.trace.model)})`,
    `one = ${run(one.trace, one.request)}`,
    ...(one.trace.model === other.trace.model ? [] : [`model = hs.load(${literal(other.trace.model)})`]),
    `other = ${run(other.trace, other.request)}`,
    "comparison = hs.compare(one, other)",
    ...(difference
      ? [`view = ${view.replace("(trace", "(comparison")}`, 'view.save("difference.html")']
      : [
          "words = comparison.words",
          "print(comparison.relation(words[-1], words[0]))  # the heads of each that look from one word to another",
        ]),
  ];
  return `${lines.join("\n")}\n`;
}
