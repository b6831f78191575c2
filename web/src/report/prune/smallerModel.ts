/** What the smaller model costs beside the original. */

import { byId, make } from "../elements";
import { figure } from "../figures";
import type { PrunePage } from "./prunePage";
import type { Smaller } from "./sweep";

const COLUMNS = ["parameters", "bytes", "flops", "seconds"] as const;
const TITLES: Record<(typeof COLUMNS)[number], string> = {
  parameters: "Parameters, million",
  bytes: "Weights, MB",
  flops: "GFLOPs per pass",
  seconds: "Time per pass, ms",
};
const UNITS: Record<(typeof COLUMNS)[number], number> = { parameters: 1e6, bytes: 1e6, flops: 1e9, seconds: 1e-3 };

export function drawSmaller({ sweep: { smaller } }: PrunePage): void {
  byId("smaller").hidden = !smaller;
  if (!smaller) return;
  byId("smaller-note").textContent = noteOf(smaller);
  byId("smaller-head").replaceChildren(
    make("th", {}, ["Model"]),
    ...COLUMNS.map((column) => make("th", { class: "n" }, [TITLES[column]])),
  );
  byId("smaller-body").replaceChildren(
    ...smaller.rows.map((row) =>
      make("tr", {}, [
        make("td", {}, [row.name === "slim" ? "Slim: heads removed" : "Original, and baked: heads folded away"]),
        ...COLUMNS.map((column) => make("td", { class: "n" }, [figure(row[column] / UNITS[column])])),
      ]),
    ),
  );
}

function noteOf({ point, heads, timed, refused, is_plain }: Smaller): string {
  const plain = is_plain
    ? "The slim folder loads with Transformers alone."
    : "The slim folder loads with headscope.load.";
  return [
    `Point ${point}: ${heads[0]} of ${heads[1]} heads. A pass is ${timed}.`,
    refused ? `There is no slim model: ${refused}` : plain,
  ].join(" ");
}
