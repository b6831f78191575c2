/** As many heads as L0 kept, chosen in other ways: without and with fine-tuning. */

import { byId, make } from "../elements";
import type { PrunePage } from "./prunePage";
import { type Alternatives, countsText, countsTitle } from "./sweep";

export function drawAlternatives({ sweep: { alternatives, types, metric } }: PrunePage): void {
  byId("alternatives").hidden = !alternatives.length;
  byId("alternatives-head").replaceChildren(
    make("th", {}, ["Chosen by"]),
    make("th", { class: "n counts" }, [countsTitle(types)]),
    make("th", { class: "n" }, [`${metric.label}, not fine-tuned`]),
    make("th", { class: "n" }, [`${metric.label}, fine-tuned`]),
  );
  const rows = alternatives.flatMap((group) =>
    group.rows.map(({ label, counts, untuned, tuned, is_l0 }) =>
      make("tr", is_l0 ? { class: "group" } : {}, [
        make("td", {}, [label]),
        make("td", { class: "n counts" }, [counts ? countsText(types, counts) : `${group.heads}; seeds differ`]),
        make("td", { class: "n" }, [is_l0 ? ownText(group, untuned) : untuned || "–"]),
        make("td", { class: "n" }, [tuned || "–"]),
      ]),
    ),
  );
  byId("alternatives-body").replaceChildren(...rows);
}

/** L0's own score before fine-tuning is of weights that were trained with its gates. */
function ownText({ untuned: how }: Alternatives, score: string): string {
  return how === "not fine-tuned" ? score : `${score} (${how})`;
}
