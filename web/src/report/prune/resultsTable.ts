/** Heads by type and the score from the trained model and from scratch, with the published rows (table 2). */

import { byId, make } from "../elements";
import { isKnown } from "../figures";
import type { PrunePage } from "./prunePage";
import { countsText, countsTitle, type PublishedRow, type ResultRow, type ScoreJson, scoreText } from "./sweep";

export function drawTable(page: PrunePage): void {
  const { table, types, metric, baseline } = page.sweep;
  const isTranslation = types.length === 3 && metric.name === "bleu";
  byId("table-note").textContent = [table.conclusion, isTranslation ? table.source : ""].filter(Boolean).join(" ");
  const hasScratch = isTranslation || table.rows.some(({ scores }) => scores[1]);
  byId("table-head").replaceChildren(
    make("th", {}, ["Model"]),
    make("th", { class: "n" }, ["λ"]),
    make("th", { class: "n counts" }, [countsTitle(types)]),
    make("th", { class: "n" }, [`${metric.label}, from trained`]),
    hasScratch ? make("th", { class: "n" }, [`${metric.label}, from scratch`]) : "",
  );
  const whole = baseline ? [untouched(page, baseline)] : [];
  const published = isTranslation ? table.published.map((row) => publishedRow(page, row)) : [];
  byId("table-body").replaceChildren(...whole, ...table.rows.map((row) => resultRow(page, row)), ...published);
  if (!hasScratch) for (const row of document.querySelectorAll("#table-body tr")) row.lastElementChild?.remove();
}

function untouched(page: PrunePage, baseline: ScoreJson): HTMLElement {
  const { types } = page.sweep;
  const counts = Object.fromEntries(types.map(({ name, heads }) => [name, heads]));
  return make("tr", {}, [
    make("td", {}, ["Untouched model"]),
    number(""),
    countsCell(page, counts),
    scoreCell(page, baseline),
    number("–"),
  ]);
}

function resultRow(page: PrunePage, row: ResultRow): HTMLElement {
  const [trained, scratch] = row.scores;
  return make("tr", {}, [
    make("td", {}, ["Here"]),
    number(row.lambda),
    countsCell(page, row.counts),
    scoreCell(page, trained),
    scoreCell(page, scratch, row.scratch_heads && `, ${row.scratch_heads} heads`),
  ]);
}

function publishedRow(page: PrunePage, { data, counts, scores }: PublishedRow): HTMLElement {
  return make("tr", { class: "published" }, [
    make("td", {}, [`Published, ${data}`]),
    number(""),
    countsCell(page, counts),
    ...scores.map((score) => number(isKnown(score) ? score.toFixed(2) : "–")),
  ]);
}

/** A score with its 95 % interval, where there is one, and what else is to be said of it. */
function scoreCell({ sweep }: PrunePage, score: ScoreJson | null, note = ""): HTMLElement {
  if (!score) return number("–");
  const { metric } = sweep;
  const interval = isKnown(score.low) ? ` (${scoreText(metric, score.low)} to ${scoreText(metric, score.high)})` : "";
  return number(`${scoreText(metric, score.value)}${interval}${note}`);
}

function countsCell({ sweep }: PrunePage, counts: Record<string, number>): HTMLElement {
  return make("td", { class: "n counts" }, [countsText(sweep.types, counts)]);
}

function number(text: string): HTMLElement {
  return make("td", { class: "n" }, [text]);
}
