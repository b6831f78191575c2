/** What the sections of the report draw from, and what they may ask of it. */

import type { Theme } from "../theme";
import type { Choice } from "./choice";
import type { Contents, Measure } from "./contents";
import { make } from "./elements";
import { figure, intervalOf, isKnown } from "./figures";
import type { Tip } from "./tip";
import { trustText } from "./trustBadges";

export interface ReportPage {
  readonly contents: Contents;
  readonly theme: Theme;
  readonly tip: Tip;
  readonly choice: Choice;
  /** Change what is chosen, and draw the sections that follow it. */
  choose(change: Partial<Choice>): void;
}

/** Who a head is, and what it scores. */
export function tipOf({ contents }: ReportPage, head: number, measure?: Measure): string[] {
  const trust = contents.trust(head);
  const lines = [`${contents.name(head)}: ${contents.verdict(head).role}`, trust ? trustText(trust) : ""];
  if (!measure) return lines;
  const interval = intervalOf(measure, head);
  lines.push(`${measure.label} ${figure(measure.values[head], measure.unit)}${interval && ` (${interval})`}`);
  const baseline = measure.baselines?.[head];
  if (isKnown(baseline)) lines.push(`baseline ${figure(baseline, measure.unit)}`);
  return lines;
}

/** A menu of all measures, in their groups. */
export function measureMenu(page: ReportPage, name: "measure" | "x" | "y"): HTMLSelectElement {
  const groups = new Map<string, HTMLOptGroupElement>();
  for (const measure of page.contents.json.measures) {
    const group = groups.get(measure.group) ?? make("optgroup", { label: measure.group });
    groups.set(measure.group, group);
    group.append(make("option", { value: measure.name }, [measure.label]));
  }
  const menu = make("select", { id: `choose-${name}` }, [...groups.values()], {
    change: () => page.choose({ [name]: menu.value }),
  });
  menu.value = page.choice[name] ?? "";
  return menu;
}
