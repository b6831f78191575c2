/** The head finder: heads as points between two measures. */

import { css } from "../theme";
import type { Measure } from "./contents";
import { byId, dot, make, makeSvg } from "./elements";
import { familiesOf, familyColour, familyLabel } from "./families";
import { axisOf, figure, isKnown, spearman } from "./figures";
import { ticks, tickTexts } from "./prune/axes";
import { measureMenu, type ReportPage, tipOf } from "./reportPage";

const MARGIN = { left: 46, bottom: 34, top: 10, right: 12 };

export function drawScatter(page: ReportPage): void {
  const { contents, choice, theme, tip } = page;
  const across = contents.measures.get(choice.x ?? "");
  const up = contents.measures.get(choice.y ?? "");
  if (!across || !up) return;
  const box = byId<SVGSVGElement>("scatter");
  box.replaceChildren();
  byId("scatter-tools").replaceChildren(
    make("label", {}, ["Across", measureMenu(page, "x")]),
    make("label", {}, ["Up", measureMenu(page, "y")]),
  );
  const heads = contents.allHeads.filter((head) => isKnown(across.values[head]) && isKnown(up.values[head]));
  if (!heads.length) {
    byId("scatter-note").textContent = "No head has both.";
    return;
  }
  const scores = (measure: Measure) => heads.map((head) => measure.values[head] as number);
  const [xs, ys] = [scores(across), scores(up)];
  const { x, y } = drawAxes(box, across, up, axisOf(xs), axisOf(ys));
  heads.forEach((head, at) => {
    const name = contents.name(head);
    const attributes = {
      cx: x(xs[at] as number),
      cy: y(ys[at] as number),
      r: 5.5,
      fill: css(familyColour(theme, contents.verdict(head).family)),
      class: name === choice.head ? "on" : "",
      "data-head": name,
    };
    const lines = [...tipOf(page, head, across), `${up.label} ${figure(up.values[head], up.unit)}`];
    const point = makeSvg("circle", attributes, [], {
      click: () => page.choose({ head: name }),
      pointerenter: (event) => tip.show(event, lines),
      pointerleave: () => tip.hide(),
    });
    box.append(point);
  });
  byId("scatter-note").textContent =
    `${heads.length} heads. Rank correlation (Spearman) ${figure(spearman(xs, ys))}. Point at a head for its name; click for its card.`;
  byId("scatter-key").replaceChildren(
    ...familiesOf(contents, heads).map(({ key }) =>
      make("span", { class: "row", style: "gap:6px;margin:0" }, [dot(css(familyColour(theme, key))), familyLabel(key)]),
    ),
  );
}

type Axis = [low: number, high: number];

/** Lines, numbers and names of both axes; and where a score lies on each. */
function drawAxes(box: SVGSVGElement, across: Measure, up: Measure, [x0, x1]: Axis, [y0, y1]: Axis) {
  const width = Math.max(280, box.clientWidth || 800);
  const height = box.clientHeight || 420;
  const { left, top } = MARGIN;
  const [right, bottom] = [width - MARGIN.right, height - MARGIN.bottom];
  const x = (score: number) => left + ((score - x0) / (x1 - x0)) * (right - left);
  const y = (score: number) => bottom - ((score - y0) / (y1 - y0)) * (bottom - top);
  box.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const line = (x1: number, x2: number, y1: number, y2: number) =>
    makeSvg("line", { x1, x2, y1, y2, stroke: "var(--line)" });
  const text = (words: string, anchor: string, attributes: Record<string, string | number>) =>
    makeSvg("text", { "text-anchor": anchor, ...attributes }, [words]);
  const [ups, acrosses] = [ticks(y0, y1, 5), ticks(x0, x1, 5)];
  const [upTexts, acrossTexts] = [tickTexts(ups), tickTexts(acrosses)];
  ups.forEach((yAt, tick) => {
    const words = upTexts[tick] as string;
    box.append(line(left, right, y(yAt), y(yAt)), text(words, "end", { x: left - 6, y: y(yAt) + 3 }));
  });
  acrosses.forEach((xAt, tick) => {
    const words = acrossTexts[tick] as string;
    box.append(line(x(xAt), x(xAt), top, bottom), text(words, "middle", { x: x(xAt), y: bottom + 13 }));
  });
  const turned = `translate(11 ${(top + bottom) / 2}) rotate(-90)`;
  box.append(text(titleOf(across), "middle", { x: (left + right) / 2, y: height - 4 }));
  box.append(text(titleOf(up), "middle", { x: 0, y: 0, transform: turned }));
  return { x, y };
}

function titleOf({ label, unit }: Measure): string {
  return unit ? `${label}, ${unit}` : label;
}
