/** Score against heads kept, a plot for each way of pruning (Voita et al., 2019, figure 7). */

import { byId, make, makeSvg } from "../elements";
import { isKnown } from "../figures";
import { type Axis, endsOf, Plot } from "./axes";
import { marker, type Style, sample, styleOf } from "./markers";
import type { PrunePage } from "./prunePage";
import { type CurvePoint, headCount, metricTitle, type Panel, type Series, scoreText } from "./sweep";

const HEIGHT = 380;

export function drawScores(page: PrunePage): void {
  const { panels } = page.sweep;
  byId("scores").hidden = !panels.length;
  byId("score-panels").replaceChildren(...panels.map((panel) => scorePanel(page, panel)));
}

function scorePanel(page: PrunePage, panel: Panel): HTMLElement {
  const legend = make("div", { class: "key" }, [
    ...panel.series.map((series) => seriesKey(page, panel, series)),
    page.sweep.baseline ? make("span", {}, [legendLine(UNTOUCHED), "untouched model"]) : null,
    panel.tuned_baseline ? make("span", {}, [legendLine(TUNED), "all heads, as much fine-tuning"]) : null,
    panel.series.some((series) => !series.is_own)
      ? make("span", {}, [legendLine(LIKE_L0), "as many heads of each type as L0 kept"])
      : null,
  ]);
  const published = panel.published.length
    ? make("p", { class: "small" }, [`Published (figure 7, English to Russian): ${panel.published.join(" ")}`])
    : null;
  return make("div", { class: "figure" }, [
    make("h3", {}, [panel.title]),
    make("p", { class: "conclusion" }, [panel.conclusion]),
    make("div", { class: "panel plot" }, [plotOf(page, panel).svg, legend]),
    published,
  ]);
}

/** A series in the legend; pressed, it is drawn. */
function seriesKey(page: PrunePage, panel: Panel, series: Series): HTMLElement {
  const key = keyOf(panel, series);
  const attributes = {
    type: "button",
    "aria-pressed": !page.hiddenSeries.has(key),
    title: "Show or hide",
    "data-series": key,
  };
  return make("button", attributes, [sample(styleOf(page.theme, series)), series.label], {
    click: () => page.toggleSeries(key),
  });
}

function keyOf(panel: Panel, series: Series): string {
  return `${panel.key}: ${series.label}`;
}

function plotOf(page: PrunePage, panel: Panel): Plot {
  const { metric, baseline } = page.sweep;
  const { tuned_baseline: tuned } = panel;
  const visible = panel.series.filter((series) => !page.hiddenSeries.has(keyOf(panel, series)));
  const known = visible.flatMap(({ curve }) => curve.flatMap(({ low, high }) => [low, high]));
  const [low, high] = endsOf([...known, baseline?.value, baseline?.low, baseline?.high, tuned?.value].filter(isKnown));
  const across: Axis = { low: 0, high: panel.total, title: panel.axis, text: headCount };
  const up: Axis = { low, high, title: metricTitle(metric), text: (score) => scoreText(metric, score) };
  const plot = new Plot(page.width, HEIGHT, across, up, `${panel.title}. ${panel.conclusion}`);
  if (isKnown(baseline?.low) && isKnown(baseline?.high)) {
    plot.svg.append(plot.band(baseline.low, baseline.high, { fill: "var(--ink)", opacity: 0.07 }));
  }
  if (isKnown(baseline?.value)) plot.svg.append(plot.level(baseline.value, UNTOUCHED));
  if (tuned) plot.svg.append(plot.level(tuned.value, TUNED));
  for (const series of visible) drawSeries(page, plot, series, styleOf(page.theme, series));
  return plot;
}

const UNTOUCHED = { stroke: "var(--ink)", "stroke-dasharray": "2 3" };
const TUNED = { stroke: "var(--ink)", "stroke-dasharray": "9 3" };
const LIKE_L0 = { stroke: "var(--secondary)", "stroke-dasharray": "5 4", "stroke-width": 1.6 };

function drawSeries(page: PrunePage, plot: Plot, series: Series, style: Style): void {
  const points = series.curve.map(({ heads, score }) => `${plot.x(heads)},${plot.y(score)}`).join(" ");
  const line = { points, fill: "none", stroke: style.colour, "stroke-width": 1.6, "stroke-dasharray": style.dash };
  plot.svg.append(makeSvg("polyline", { ...line, "data-series": series.label }));
  for (const setting of series.curve) {
    const x = plot.x(setting.heads);
    if (setting.points.length > 1) {
      const range = { x1: x, x2: x, y1: plot.y(setting.low), y2: plot.y(setting.high), stroke: style.colour };
      plot.svg.append(makeSvg("line", range));
      for (const { heads, score } of setting.points) plot.svg.append(marker(plot.x(heads), plot.y(score), 2, style));
    }
    plot.svg.append(meanOf(page, plot, series, setting, style));
  }
}

function meanOf(page: PrunePage, plot: Plot, series: Series, setting: CurvePoint, style: Style): SVGElement {
  const { metric } = page.sweep;
  const many = setting.points.length > 1;
  const lines = [
    series.label,
    `${headCount(setting.heads)} heads kept, ${metric.label} ${scoreText(metric, setting.score)}`,
    many
      ? `${setting.points.length} seeds: ${scoreText(metric, setting.low)} to ${scoreText(metric, setting.high)}`
      : "",
    setting.points.map(({ id }) => id).join(", "),
  ];
  const group = makeSvg("g", { class: "mark", "data-point": setting.points[0]?.id }, [
    marker(plot.x(setting.heads), plot.y(setting.score), 4.5, style),
  ]);
  group.addEventListener("pointerenter", (event) => page.tip.show(event, lines));
  group.addEventListener("pointerleave", () => page.tip.hide());
  group.addEventListener("click", () => page.choose(setting.points[0]?.id));
  return group;
}

function legendLine(attributes: Record<string, string | number>): SVGSVGElement {
  const line = makeSvg("line", { x1: 1, x2: 33, y1: 8, y2: 8, ...attributes });
  return makeSvg("svg", { viewBox: "0 0 34 16", width: 34, height: 16, "aria-hidden": true }, [line]);
}
