/** Heads kept by type of attention (figure 9), and by layer (figure 10). */

import { between, css, type Theme } from "../../theme";
import { byId, make, makeSvg } from "../elements";
import { inkOn } from "../families";
import { Plot } from "./axes";
import { marker, type Style, sample } from "./markers";
import type { PrunePage } from "./prunePage";
import { headCount, type LayersFigure } from "./sweep";

const HEIGHT = 300;
const SHAPES = ["circle", "square", "triangle", "diamond"] as const;
const COLOURS = [0, 5, 2, 8] as const;

export function drawTypes(page: PrunePage): void {
  const { types_figure: figure, types } = page.sweep;
  const isDrawn = types.length > 1 && figure.curves.some(({ points }) => points.length > 0);
  byId("types").hidden = !isDrawn;
  if (!isDrawn) return;
  const plot = new Plot(
    page.width,
    HEIGHT,
    { low: 0, high: figure.total, title: `Heads of all types kept, of ${figure.total}`, text: headCount },
    { low: 0, high: 100, title: "Heads of the type kept, %", text: String },
    figure.conclusion,
  );
  const { total } = figure;
  plot.svg.append(
    makeSvg("line", { x1: plot.x(0), y1: plot.y(0), x2: plot.x(total), y2: plot.y(100), ...EVEN }), // an even share
  );
  const legend = figure.curves.map(({ type, points }, at) => {
    const style = styleOf(page.theme, at);
    const { heads, label } = types[at] as (typeof types)[number];
    const spots = points.map((point) => [plot.x(point.total), plot.y((100 * point.heads) / heads)] as const);
    const line = { points: spots.map((spot) => spot.join(",")).join(" "), fill: "none", stroke: style.colour };
    plot.svg.append(makeSvg("polyline", { ...line, "stroke-width": 1.6, "data-type": type }));
    points.forEach((point, place) => {
      const [x, y] = spots[place] as readonly [number, number];
      const mark = makeSvg("g", { class: "mark" }, [marker(x, y, 4.5, style)]);
      const lines = [`${label}: ${point.heads} of ${heads}`, `${point.total} heads kept in all`, point.id];
      mark.addEventListener("pointerenter", (event) => page.tip.show(event, lines));
      mark.addEventListener("pointerleave", () => page.tip.hide());
      mark.addEventListener("click", () => page.choose(point.id));
      plot.svg.append(mark);
    });
    return make("span", {}, [sample(style), `${label} (of ${heads})`]);
  });
  const even = makeSvg("svg", { viewBox: "0 0 34 16", width: 34, height: 16, "aria-hidden": true }, [
    makeSvg("line", { x1: 1, x2: 33, y1: 8, y2: 8, ...EVEN }),
  ]);
  byId("types-panel").replaceChildren(
    make("p", { class: "conclusion" }, [figure.conclusion]),
    make("div", { class: "panel plot" }, [
      plot.svg,
      make("div", { class: "key" }, [...legend, make("span", {}, [even, "every type keeps the same share"])]),
    ]),
    make("p", { class: "small" }, [`Published (figure 9): ${figure.published}.`]),
  );
}

const EVEN = { stroke: "var(--tertiary)", "stroke-dasharray": "2 3" };

export function drawLayers(page: PrunePage): void {
  const { layers_figure: figures, types } = page.sweep;
  byId("layers").hidden = !figures.length;
  byId("layer-grids").replaceChildren(
    ...figures.map((figure) =>
      make("div", { class: "panel" }, [
        make("h3", {}, [types.find(({ name }) => name === figure.type)?.label ?? figure.type]),
        make("div", { class: "scroll" }, [layerGrid(page, figure)]),
        make("p", { class: "conclusion" }, [figure.conclusion]),
      ]),
    ),
    make("p", { class: "small" }, [
      types.length > 1
        ? "Published (figure 10): lower decoder layers keep self-attention heads, upper ones cross-attention heads."
        : "",
    ]),
  );
}

/** Layers from the top down, as they lie in the model; points from most heads to fewest. */
function layerGrid(page: PrunePage, { columns, rows }: LayersFigure): HTMLElement {
  const style = `grid-template-columns:max-content repeat(${columns.length}, minmax(24px, 44px))`;
  const grid = make("div", { class: "grid", style });
  for (const { site, heads, kept } of [...rows].reverse()) {
    grid.append(make("span", { class: "axis" }, [site]));
    kept.forEach((count, at) => {
      const colour = between(page.theme.panel, page.theme.ramp[1], count / heads);
      const lines = [`${site}: ${count} of ${heads} heads`, columns[at]?.id ?? ""];
      const attributes = { class: "cell count", style: `background:${css(colour)};color:${inkOn(colour)}` };
      const cell = make("button", { ...attributes, type: "button", "aria-label": lines.join(", ") }, [String(count)], {
        pointerenter: (event) => page.tip.show(event, lines),
        pointerleave: () => page.tip.hide(),
        click: () => page.choose(columns[at]?.id),
      });
      grid.append(cell);
    });
  }
  grid.append(make("span", { class: "axis" }, ["heads kept"]));
  grid.append(...columns.map(({ total }) => make("span", { class: "axis" }, [String(total)])));
  return grid;
}

function styleOf(theme: Theme, at: number): Style {
  const colour = theme.heads[COLOURS[at % COLOURS.length] as number] as (typeof theme.heads)[number];
  return {
    colour: css(colour),
    shape: SHAPES[at % SHAPES.length] as (typeof SHAPES)[number],
    isFilled: true,
    dash: null,
  };
}
