/** Which heads survive at a point: a grid of layers and heads for each type of attention. */

import { css } from "../../theme";
import { byId, make } from "../elements";
import { familyColour, familyLabel, inkOn } from "../families";
import type { PrunePage } from "./prunePage";
import { type Point, scoreText } from "./sweep";

export function drawSurvivors(page: PrunePage): void {
  const { sweep, point } = page;
  byId("survivors").hidden = !point;
  if (!point) return;
  byId("survivor-tools").replaceChildren(menuOf(page), make("span", { class: "note" }, [aboutOf(page, point)]));
  byId("survivor-grids").replaceChildren(...sweep.types.map(({ name, label }) => gridOf(page, point, name, label)));
  const families = new Set(Object.values(point.roles ?? {}).map(({ family }) => family));
  const kinds = point.roles
    ? [...families].map((family) => key(css(familyColour(page.theme, family)), familyLabel(family)))
    : [key("var(--accent)", "survives")];
  byId("survivor-key").replaceChildren(...kinds, make("span", {}, [make("i", { class: "cell pruned" }), "pruned"]));
}

function menuOf(page: PrunePage): HTMLElement {
  const menu = make(
    "select",
    { id: "choose-point" },
    page.sweep.points.map(({ id, label, total, seed, is_chosen }) =>
      make("option", { value: id }, [
        `${total[0]} of ${total[1]}: ${label}, seed ${seed}${is_chosen ? " (chosen)" : ""}`,
      ]),
    ),
    { change: () => page.choose(menu.value) },
  );
  menu.value = page.point?.id ?? "";
  return make("label", {}, ["Point", menu]);
}

function aboutOf({ sweep }: PrunePage, point: Point): string {
  const counts = sweep.types.map(({ name, label }) => {
    const [survivors, heads] = point.counts[name] ?? [0, 0];
    return `${label.toLowerCase()} ${survivors} of ${heads}`;
  });
  const penalty = point.lambda ? `λ ${point.lambda}; ` : "";
  return `${penalty}${counts.join(", ")}; ${sweep.metric.label} ${scoreText(sweep.metric, point.score.value)} on ${point.score.split}.`;
}

function gridOf(page: PrunePage, point: Point, type: string, label: string): HTMLElement {
  const layers = page.sweep.layers.filter((layer) => layer.type === type);
  const columns = Math.max(...layers.map(({ heads }) => heads));
  const style = `grid-template-columns:max-content repeat(${columns}, minmax(16px, ${columns > 12 ? 32 : 44}px))`;
  const grid = make("div", {
    class: "grid",
    style,
    role: "img",
    "aria-label": `${label}: ${survivorsOf(point, layers)}`,
  });
  grid.append(axisLabel(""));
  for (let head = 0; head < columns; head++) grid.append(axisLabel(columns > 24 && head % 4 ? "" : `H${head}`));
  for (const { site } of layers) {
    grid.append(axisLabel(site));
    const row = point.mask[site] ?? [];
    for (let head = 0; head < columns; head++) {
      grid.append(head < row.length ? cellOf(page, point, `${site}H${head}`, row[head] === 1) : make("span"));
    }
  }
  return make("div", { class: "scroll" }, [make("div", { class: "small" }, [label]), grid]);
}

function cellOf(page: PrunePage, point: Point, head: string, survives: boolean): HTMLElement {
  const role = point.roles?.[head];
  const colour = role ? familyColour(page.theme, role.family) : page.theme.accent;
  const lines = [head, survives ? (role?.role ?? "survives") : "pruned"];
  const style = survives ? `background:${css(colour)};color:${inkOn(colour)}` : null;
  return make("span", { class: survives ? "cell" : "cell pruned", style, "data-head": head }, [role?.short ?? ""], {
    pointerenter: (event) => page.tip.show(event, lines),
    pointerleave: () => page.tip.hide(),
  });
}

/** Who survives, for those who do not see the grid. */
function survivorsOf(point: Point, layers: { site: string }[]): string {
  const names = layers.flatMap(({ site }) =>
    (point.mask[site] ?? []).flatMap((survives, head) => (survives ? [`${site}H${head}`] : [])),
  );
  return names.length ? `${names.join(", ")} survive` : "no head survives";
}

function key(colour: string, label: string): HTMLElement {
  return make("span", {}, [make("i", { class: "cell", style: `background:${colour}` }), label]);
}

function axisLabel(text: string): HTMLElement {
  return make("span", { class: "axis" }, [text]);
}
