/** Every head as a cell: layers as rows, or as columns whose heads are in an order of their own. */

import { css } from "../theme";
import { ColourScale } from "./colourScale";
import type { Measure, Stack } from "./contents";
import { byId, make } from "./elements";
import { familyColour, inkOn } from "./families";
import { figure, isKnown, rangeOf } from "./figures";
import { measureMenu, type ReportPage, tipOf } from "./reportPage";
import { TRUST_KEY, trustSign, trustText } from "./trustBadges";

/** How a head is drawn. */
interface Cell {
  /** Null where there is nothing to show. */
  colour: string | null;
  ink?: string;
  text?: string;
  sign?: HTMLElement | null;
  label: string;
  tip: string[];
}

export function drawGrid(page: ReportPage): void {
  const measure = page.contents.measures.get(page.choice.measure ?? "");
  if (!measure) return;
  const cell = cellsBy(page, measure);
  const range = rangeOf(measure.values);
  const legend = new ColourScale(page.theme, range).legend();
  byId("grid").replaceChildren(...page.contents.json.stacks.map((stack) => layersGrid(page, stack, cell)));
  byId("grid-tools").replaceChildren(
    make("label", {}, ["Colour by", measureMenu(page, "measure")]),
    make("span", { class: "legend" }, [figure(range.low), legend, figure(range.high, measure.unit)]),
  );
  const baseline = isKnown(measure.baseline) ? `, baseline ${figure(measure.baseline, measure.unit)} on average` : "";
  const examples = `${measure.n_samples.toLocaleString("en")} examples${baseline}.`;
  const badges = page.contents.json.trust ? ` Badges say whether its attention explains the output: ${TRUST_KEY}.` : "";
  byId("grid-note").textContent = [measure.about, examples].filter(Boolean).join(". ") + badges;
}

/** Relevance, confidence and roles of the same heads at the same places, as in Voita et al. (2019), figure 2. */
export function drawFunctions(page: ReportPage): void {
  const { measures, json } = page.contents;
  const relevance = measures.get("relevance");
  const confidence = measures.get("confidence");
  const order = relevance ?? confidence;
  if (!order) {
    (byId("three").closest("section") as HTMLElement).hidden = true;
    return;
  }
  const stacks = json.stacks.map((stack) => {
    const rows = orderedRows(stack, order.values);
    const panel = (title: string, cell: (head: number) => Cell) =>
      make("div", {}, [
        make("h3", {}, [(stack.label ? `${stack.label}: ` : "") + title]),
        orderedGrid(page, stack, rows, cell),
      ]);
    return make("div", { class: "three" }, [
      relevance ? panel("relevance", cellsBy(page, relevance)) : null,
      confidence ? panel("confidence", cellsBy(page, confidence)) : null,
      panel("functions", (head) => cellOfRole(page, head)),
    ]);
  });
  byId("three").replaceChildren(...stacks);
  byId("three-note").textContent = [
    `Layers are columns; within each, heads go by ${relevance ? "relevance" : "confidence"}, so a head has the same place in every panel (after Voita et al., 2019, figure 2).`,
    relevance ? "" : `No relevance: ${json.absent.relevance ?? "it was not asked for"}`,
  ]
    .filter(Boolean)
    .join(" ");
}

/** Heads by row and layer: in each layer the highest score first, those without one last. */
export function orderedRows({ layers }: Stack, scores: Measure["values"]): (number | undefined)[][] {
  const score = (head: number) => scores[head] ?? Number.NEGATIVE_INFINITY;
  const columns = layers.map(({ heads }) => [...heads].sort((a, b) => score(b) - score(a) || a - b));
  const depth = Math.max(...columns.map((heads) => heads.length));
  return Array.from({ length: depth }, (_, row) => columns.map((heads) => heads[row]));
}

function cellsBy(page: ReportPage, measure: Measure): (head: number) => Cell {
  const scale = new ColourScale(page.theme, rangeOf(measure.values));
  return (head) => {
    const score = measure.values[head];
    const trust = page.contents.trust(head);
    return {
      colour: isKnown(score) ? scale.css(score) : null,
      sign: trust && trustSign(trust),
      label: `${page.contents.name(head)}, ${measure.label} ${figure(score)}${trust ? `, ${trustText(trust)}` : ""}`,
      tip: tipOf(page, head, measure),
    };
  };
}

function cellOfRole(page: ReportPage, head: number): Cell {
  const { family, short, role } = page.contents.verdict(head);
  const colour = familyColour(page.theme, family);
  // What stands in the cell is part of its name: voice control reads it.
  const label = `${page.contents.name(head)}, ${role}${short ? `, ${short}` : ""}`;
  return { colour: css(colour), ink: inkOn(colour), text: short, label, tip: tipOf(page, head) };
}

/** Layers as rows and heads as columns. */
function layersGrid(page: ReportPage, { label, layers }: Stack, cell: (head: number) => Cell): HTMLElement {
  const columns = Math.max(...layers.map(({ heads }) => heads.length));
  const size = columns > 24 ? 16 : columns > 12 ? 32 : 72;
  const grid = make("div", {
    class: "grid",
    role: "group",
    style: `grid-template-columns:max-content repeat(${columns}, minmax(16px, ${size}px))`,
  });
  grid.append(axisLabel(""));
  for (let head = 0; head < columns; head++) grid.append(axisLabel(columns > 24 && head % 4 ? "" : `H${head}`));
  for (const { site, heads } of layers) {
    grid.append(axisLabel(site));
    for (let at = 0; at < columns; at++) grid.append(cellAt(page, heads[at], cell));
  }
  walkable(grid, columns);
  const title = label ? make("div", { class: "small" }, [label]) : null;
  return make("div", { class: "scroll", style: `flex:1 1 ${Math.min(560, 60 + columns * 34)}px` }, [title, grid]);
}

function orderedGrid(
  page: ReportPage,
  { layers }: Stack,
  rows: (number | undefined)[][],
  cell: (head: number) => Cell,
): HTMLElement {
  const grid = make("div", {
    class: "grid",
    role: "group",
    style: `grid-template-columns:repeat(${layers.length}, minmax(20px, 42px))`,
  });
  for (const heads of rows) grid.append(...heads.map((head) => cellAt(page, head, cell)));
  grid.append(...layers.map(({ site }) => axisLabel(site.replace(/^.*\./, ""))));
  walkable(grid, layers.length);
  return make("div", { class: "scroll" }, [grid]);
}

function axisLabel(text: string): HTMLElement {
  return make("span", { class: "axis" }, [text]);
}

function cellAt(page: ReportPage, head: number | undefined, cell: (head: number) => Cell): HTMLElement {
  if (head === undefined) return make("span");
  const { tip, contents } = page;
  const name = contents.name(head);
  const { colour, ink, text = "", sign = null, label, tip: lines } = cell(head);
  const style = [colour ? `background:${colour}` : "", ink ? `color:${ink}` : ""].filter(Boolean).join(";");
  const attributes = {
    class: colour ? "cell" : "cell none",
    style: style || null,
    "data-head": name,
    "aria-pressed": name === page.choice.head,
    "aria-label": label,
    tabindex: -1,
  };
  return make("button", attributes, [sign, text], {
    click: () => page.choose({ head: name }),
    pointerenter: (event) => tip.show(event, lines),
    pointerleave: () => tip.hide(),
    focus: (event) => {
      if ((event.target as Element).matches(":focus-visible")) tip.show(event, lines);
    },
    blur: () => tip.hide(),
  });
}

/** Arrow keys walk through a grid; one cell of it is in the order of tabs. */
function walkable(grid: HTMLElement, columns: number): void {
  const cells = [...grid.querySelectorAll<HTMLElement>(".cell")];
  const start = cells.find((cell) => cell.getAttribute("aria-pressed") === "true") ?? cells[0];
  if (start) start.tabIndex = 0;
  const steps: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns };
  grid.addEventListener("keydown", (event) => {
    const step = steps[event.key];
    const at = cells.indexOf(document.activeElement as HTMLElement);
    if (step === undefined || at < 0) return;
    event.preventDefault();
    const next = cells[at + step];
    if (!next) return;
    (cells[at] as HTMLElement).tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
}
