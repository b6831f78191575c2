/** Roles of the survivors at each sparsity, beside those of random survivors (Voita et al., 2019, figure 8). */

import { css } from "../../theme";
import { byId, dot, make, makeSvg } from "../elements";
import { FAMILY_ORDER, familyColour, familyLabel, inkOn } from "../families";
import { figure } from "../figures";
import type { PrunePage } from "./prunePage";
import { type Bar, headCount, type RolesFigure } from "./sweep";

const ROW = 24;
const LABEL = 124;
const END = 46;

export function drawRoles(page: PrunePage): void {
  const { roles, roles_about } = page.sweep;
  byId("roles-note").textContent = roles.length
    ? `Measured again on every pruned model. ${roles_about} A bar is as long as heads survive; the number after it is how many of them have a role.`
    : roles_about;
  byId("role-panels").replaceChildren(...roles.map((figure) => rolesPanel(page, figure)));
}

function rolesPanel(page: PrunePage, { title, bars, conclusion, published }: RolesFigure): HTMLElement {
  const families = FAMILY_ORDER.filter((family) => bars.some((bar) => bar.families[family]));
  const legend = families.map((family) =>
    make("span", {}, [dot(css(familyColour(page.theme, family))), familyLabel(family)]),
  );
  return make("div", { class: "figure" }, [
    make("h3", {}, [title]),
    make("p", { class: "conclusion" }, [conclusion]),
    make("div", { class: "panel plot" }, [barsOf(page, bars, families), make("div", { class: "key" }, legend)]),
    make("p", { class: "small" }, [`Published (figure 8): ${published}.`]),
  ]);
}

function barsOf(page: PrunePage, bars: Bar[], families: string[]): SVGSVGElement {
  const { width } = page;
  const most = Math.max(1, ...bars.map(({ heads }) => heads));
  const unit = (width - LABEL - END) / most;
  const svg = makeSvg("svg", { viewBox: `0 0 ${width} ${bars.length * ROW}`, role: "img" });
  svg.setAttribute("aria-label", bars.map(inWords).join(". "));
  bars.forEach((bar, row) => {
    const y = row * ROW + 3;
    svg.append(makeSvg("text", { x: LABEL - 8, y: y + 13, "text-anchor": "end" }, [`${bar.heads} kept, ${bar.label}`]));
    let x = LABEL;
    for (const family of families) {
      const count = bar.families[family] ?? 0;
      if (!count) continue;
      svg.append(...segment(page, bar, family, count, x, y, count * unit));
      x += count * unit;
    }
    svg.append(makeSvg("text", { x: x + 6, y: y + 13 }, [withRole(bar)]));
  });
  return svg;
}

function segment(page: PrunePage, bar: Bar, family: string, count: number, x: number, y: number, width: number) {
  const colour = familyColour(page.theme, family);
  const box = { x, y, width: Math.max(0.5, width - 1), height: ROW - 6, fill: css(colour), "data-family": family };
  const rect = makeSvg("rect", box, [], {
    pointerenter: (event) =>
      page.tip.show(event, [`${bar.heads} kept, ${bar.label}`, `${headCount(count)} ${familyLabel(family)}`]),
    pointerleave: () => page.tip.hide(),
  });
  const text = makeSvg("text", {
    x: x + width / 2,
    y: y + 13,
    "text-anchor": "middle",
    style: `fill:${inkOn(colour)}`,
  });
  text.textContent = headCount(count);
  return width > 18 ? [rect, text] : [rect];
}

/** How many survivors have a role; over seeds, from the fewest to the most. */
function withRole({ low, high }: Bar): string {
  return low === high ? figure(low).replace(/\.00?$/, "") : `${low}–${high}`;
}

function inWords(bar: Bar): string {
  const counts = Object.entries(bar.families).map(([family, count]) => `${headCount(count)} ${familyLabel(family)}`);
  return `${bar.heads} kept, ${bar.label}: ${counts.join(", ")}`;
}
