/** Every measure layer by layer: a dot for each head, a line for the mean of each layer, dashes for the baseline. */

import type { Measure } from "./contents";
import { byId, dot, make, makeSvg } from "./elements";
import { stackColour } from "./families";
import { figure, isKnown, mean } from "./figures";
import type { ReportPage } from "./reportPage";

const [WIDTH, HEIGHT] = [190, 84];
const INSIDE = { left: 26, right: WIDTH - 4, top: 6, bottom: HEIGHT - 12 };

export function drawCurves(page: ReportPage): void {
  const { measures, stacks } = page.contents.json;
  const whole = measures.filter((measure) => !measure.is_part);
  const parts = measures.filter((measure) => measure.is_part);
  byId("curves").replaceChildren(...whole.map((measure) => curve(page, measure)));
  const chips = stacks.map(({ label }, at) =>
    make("span", { class: "chip" }, [dot(stackColour(page.theme, at)), label]),
  );
  byId("curves-key").replaceChildren(...(stacks.length > 1 ? chips : []));
  const more = byId<HTMLDetailsElement>("curves-more");
  more.hidden = !parts.length;
  (more.querySelector("summary") as HTMLElement).textContent = `Relations, tags and other parts (${parts.length})`;
  const drawParts = () => {
    if (more.open) more.querySelector(".curves")?.replaceChildren(...parts.map((measure) => curve(page, measure)));
  };
  more.ontoggle = drawParts;
  drawParts();
}

/** The layer's own number, which is not its place in the list where a model has layers without attention. */
function numberOf(site: string): number {
  return Number(site.slice(site.lastIndexOf("L") + 1));
}

function curve(page: ReportPage, measure: Measure): HTMLElement {
  const { stacks } = page.contents.json;
  const { left, right, top, bottom } = INSIDE;
  const { values, baseline } = measure;
  const known = [...values, baseline].filter(isKnown);
  const low = Math.min(0, ...values.filter(isKnown));
  const most = Math.max(...known);
  const high = most > low ? most : low + 1;
  const depth = 1 + Math.max(...stacks.flatMap(({ layers }) => layers.map(({ site }) => numberOf(site))));
  const x = (layer: number) => left + (depth > 1 ? (layer / (depth - 1)) * (right - 2 - left) : (right - 2 - left) / 2);
  const y = (score: number) => bottom - ((score - low) / (high - low)) * (bottom - top);
  const level = (score: number, attributes: Record<string, string>) =>
    makeSvg("line", { x1: left, x2: right, y1: y(score), y2: y(score), ...attributes });
  const svg = makeSvg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, "aria-hidden": true }, [
    level(low, { stroke: "var(--line)" }),
    isKnown(baseline) ? level(baseline, { stroke: "var(--tertiary)", "stroke-dasharray": "2 3" }) : null,
  ]);
  stacks.forEach(({ layers }, stack) => {
    const colour = stackColour(page.theme, stack);
    const points: string[] = [];
    layers.forEach(({ heads, site }) => {
      const layer = numberOf(site);
      const scores = heads.map((head) => values[head]).filter(isKnown);
      for (const score of scores) {
        svg.append(makeSvg("circle", { cx: x(layer), cy: y(score), r: 1.6, fill: colour, opacity: 0.35 }));
      }
      if (scores.length) points.push(`${x(layer)},${y(mean(scores))}`);
    });
    svg.append(makeSvg("polyline", { points: points.join(" "), fill: "none", stroke: colour, "stroke-width": 1.8 }));
  });
  svg.append(
    makeSvg("text", { x: left - 3, y: y(high) + 4, "text-anchor": "end" }, [figure(high)]),
    makeSvg("text", { x: left - 3, y: y(low), "text-anchor": "end" }, [figure(low)]),
    makeSvg("text", { x: left, y: HEIGHT - 1 }, ["L0"]),
    makeSvg("text", { x: right, y: HEIGHT - 1, "text-anchor": "end" }, [`L${depth - 1}`]),
  );
  const attributes = { class: "panel curve", title: measure.about, "data-measure": measure.name };
  return make("button", attributes, [make("b", {}, [measure.label]), svg], {
    click: () => {
      page.choose({ measure: measure.name });
      byId("heads").scrollIntoView();
    },
  });
}
