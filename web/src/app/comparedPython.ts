/** Code that compares two runs as the page does. */

import type { RunRequest, TraceProps } from "../contract";
import type { Selection } from "../selection";
import { headView, literal, modelView, neuronView, run } from "./python";

export interface Second {
  trace: TraceProps;
  request: RunRequest | null;
}

/** The view of their difference; where there is none, one relation in both. */
export function pythonOfTwo(one: Second, other: Second, difference: TraceProps | null, selection: Selection): string {
  const views = { model: modelView, head: headView, neuron: neuronView, activations: modelView };
  const view = views[selection.scale](difference ?? one.trace, selection);
  const lines = [
    "import headscope as hs",
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
