/** The card of a head: its roles with their evidence, its patterns, its strongest cases, and all its scores. */

import { ramp } from "../marks/cells";
import { css } from "../theme";
import { caseBox } from "./cases";
import { mapCanvas } from "./colourScale";
import type { Finding, Thumbnails } from "./contents";
import { byId, dot, make } from "./elements";
import { familyColour } from "./families";
import { figure, intervalOf, isKnown } from "./figures";
import type { ReportPage } from "./reportPage";
import { trustBadge } from "./trustBadges";

const FINDINGS = 5;

export function drawCard(page: ReportPage): void {
  const { contents, choice, theme } = page;
  const card = byId("card");
  const head = contents.index(choice.head ?? "");
  card.hidden = head === undefined;
  document.body.classList.toggle("open", head !== undefined);
  if (head === undefined) return;
  const { role, family, findings, nearest } = contents.verdict(head);
  const close = make("button", { class: "quiet" }, ["Close"], { click: () => page.choose({ head: null }) });
  const parts = [
    make("div", { class: "top" }, [make("h2", { id: "card-name" }, [contents.name(head)]), close]),
    make("p", {}, [dot(css(familyColour(theme, family)), "display:inline-block;margin-right:6px;"), role]),
    ...findings.slice(0, FINDINGS).map(findingBox),
  ];
  const others = findings.slice(FINDINGS).map((finding) => `${finding.role} ${figure(finding.score)}`);
  if (others.length) parts.push(make("p", { class: "small" }, [`and ${others.join(", ")}`]));
  if (!findings.length) {
    const nothing =
      "No criterion is met. That is an answer: what it does, if anything, is none of what was looked for.";
    parts.push(make("p", { class: "note" }, [nothing]));
    if (nearest) parts.push(make("h3", {}, ["Nearest"]), findingBox(nearest));
  }
  card.replaceChildren(
    ...parts,
    ...trustOf(page, head),
    ...thumbnailsOf(page, head),
    ...casesOf(page, head),
    allScores(page, head),
  );
  card.scrollTop = 0;
}

function findingBox({ role, score, baseline, low, high, n_samples, criterion, source }: Finding): HTMLElement {
  const percent = (share: number) => `${Math.max(0, Math.min(100, share * 100))}%`;
  const label = `score ${figure(score)}, baseline ${figure(baseline)}`;
  const bar = make("div", { class: "bar", role: "img", "aria-label": label }, [
    make("i", { style: `width:${percent(score)}` }),
  ]);
  let interval = "";
  if (isKnown(low) && isKnown(high)) {
    interval = `95 %: ${figure(low)} to ${figure(high)}. `;
    bar.append(make("s", { style: `left:${low * 100}%;width:${Math.max(0.5, (high - low) * 100)}%` }));
  }
  if (isKnown(baseline)) {
    bar.append(make("u", { style: `left:${percent(baseline)}`, title: `baseline ${figure(baseline)}` }));
  }
  const examples = `${n_samples.toLocaleString("en")} examples`;
  const evidence = `${interval}Baseline ${figure(baseline)}. ${examples}. Criterion ${criterion} (${source}).`;
  return make("div", { class: "finding" }, [
    make("div", { class: "line" }, [
      make("span", { class: "name", style: "white-space:normal" }, [role]),
      make("span", {}, [figure(score)]),
    ]),
    bar,
    make("div", { class: "small" }, [evidence]),
  ]);
}

function trustOf({ contents }: ReportPage, head: number): HTMLElement[] {
  const trust = contents.trust(head);
  if (!trust) return [];
  const sentences = trust.sentences.map((sentence) => make("p", { class: "small" }, [sentence]));
  return [make("h3", {}, ["Does its attention explain the output?"]), make("p", {}, [trustBadge(trust)]), ...sentences];
}

function thumbnailsOf(page: ReportPage, head: number): HTMLElement[] {
  const patterns = page.contents.json.thumbnails.flatMap((thumbnails, at) => patternOf(page, head, thumbnails, at));
  if (!patterns.length) return [];
  return [
    make("h3", {}, ["Patterns: queries down, keys across (square-root scale)"]),
    make("div", { class: "thumbs" }, patterns),
  ];
}

function patternOf({ contents, theme }: ReportPage, head: number, { text, sites }: Thumbnails, at: number) {
  const maps = sites[contents.json.siteOf[head] ?? ""];
  if (!maps) return [];
  const { rows, columns } = maps;
  const bytes = Uint8Array.from(atob(maps.maps), (character) => character.charCodeAt(0));
  const offset = (contents.json.indexOf[head] ?? 0) * rows * columns;
  const label = `pattern of ${contents.name(head)} on “${text.slice(0, 60)}”`;
  const canvas = mapCanvas(bytes, rows, columns, ramp(theme), { role: "img", "aria-label": label }, offset);
  const name = make("span", { class: "small", title: text, dir: "auto" }, [text || `image ${at + 1}`]);
  return [make("div", {}, [canvas, name])];
}

function casesOf({ contents }: ReportPage, head: number): HTMLElement[] {
  const cases = contents.json.cases[head] ?? [];
  if (!cases[0]) return [];
  const side = (name: string) => make("span", { style: `color:var(--${name})` }, [name]);
  return [
    make("h3", {}, [`Strongest cases: ${cases[0].about}`]),
    make("p", { class: "small" }, ["from the ", side("query"), " to the ", side("key"), " it looks at"]),
    ...cases.map(caseBox),
  ];
}

function allScores({ contents }: ReportPage, head: number): HTMLElement {
  const rows = contents.json.measures
    .filter((measure) => isKnown(measure.values[head]))
    .map((measure) => {
      const interval = intervalOf(measure, head);
      return make("tr", {}, [
        make("td", { title: measure.about }, [measure.label]),
        make("td", { class: "n" }, [figure(measure.values[head], measure.unit)]),
        make("td", { class: "n small" }, [interval && `(${interval})`]),
      ]);
    });
  return make("details", {}, [make("summary", {}, ["All scores"]), make("table", {}, [make("tbody", {}, rows)])]);
}
