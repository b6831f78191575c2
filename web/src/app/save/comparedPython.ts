/** Code that compares two runs as the page does. */

import type { RunRequest, TraceProps } from "../../contract";
import type { Selection } from "../../selection";
import { imports, literal, run, viewOf } from "./python";

export interface Second {
  trace: TraceProps;
  request: RunRequest | null;
}

/** The view of their difference; where there is none, one relation in both. */
export function pythonOfTwo(first: Second, other: Second, difference: TraceProps | null, selection: Selection): string {
  const isSame = first.trace.model === other.trace.model;
  const second = run(other.trace, other.request);
  const lines = [
    imports(first.request, other.request),
    "",
    `model = hs.load(${literal(first.trace.model)})`,
    `one = ${run(first.trace, first.request)}`,
    ...(isSame ? [] : [`second = hs.load(${literal(other.trace.model)})`]),
    `other = ${isSame ? second : second.replace(/^model\./, "second.")}`,
    "comparison = hs.compare(one, other)",
    ...(difference
      ? [`view = ${differenceView(difference, selection, isSame)}`, 'view.save("difference.html")']
      : [
          "words = comparison.words",
          "print(comparison.relation(words[-1], words[0]))  # the heads of each that look from one word to another",
        ]),
  ];
  return `${lines.join("\n")}\n`;
}

/** The call that gives the view of a difference. */
function differenceView(difference: TraceProps, selection: Selection, isSame: boolean): string {
  const view = viewOf(difference, selection).replace("_view(trace", "_view(comparison");
  if (selection.scale !== "activations") return view;
  // What passed through both runs takes the models of both.
  const whole = view.replace("activations(trace, ", `activations_difference(comparison, ${isSame ? "" : "second, "}`);
  return isSame ? whole : whole.replace(/\(comparison, model(?=[,)])/, "(comparison, (model, second)");
}
