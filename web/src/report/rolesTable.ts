/** The table of roles: sorted by any column, filtered by family and by words. */

import { css } from "../theme";
import type { Contents, Verdict } from "./contents";
import { byId, dot, make } from "./elements";
import { familyColour } from "./families";
import { figure, isKnown } from "./figures";
import type { ReportPage } from "./reportPage";
import { trustBadge, VERDICTS } from "./trustBadges";

type ColumnName = "head" | "role" | "trust" | "score" | "baseline" | "interval" | "also";

export interface Sorting {
  by: ColumnName;
  isDown: boolean;
}

const COLUMNS: { name: ColumnName; label: string; kind: string }[] = [
  { name: "head", label: "Head", kind: "" },
  { name: "role", label: "Role", kind: "" },
  { name: "trust", label: "Trust", kind: "" },
  { name: "score", label: "Score", kind: "n" },
  { name: "baseline", label: "Baseline", kind: "n" },
  { name: "interval", label: "95 % interval", kind: "n wide" },
  { name: "also", label: "Also, or nearest", kind: "wide" },
];

/** What a column is sorted by. */
function valueIn(name: ColumnName, head: number, contents: Contents): number | string | null {
  const { role, findings } = contents.verdict(head);
  switch (name) {
    case "head":
      return head;
    case "role":
      return role;
    case "trust": {
      const trust = contents.trust(head);
      return trust && VERDICTS.length - VERDICTS.indexOf(trust.verdict);
    }
    case "score":
      return findings[0]?.score ?? null;
    case "baseline":
      return findings[0]?.baseline ?? null;
    case "interval":
      return findings[0]?.low ?? null;
    case "also":
      return findings.length;
  }
}

/** The heads of the table, in its order; what has no value comes last, whichever way it is sorted. */
export function sortedHeads(contents: Contents, family: string, words: string, { by, isDown }: Sorting): number[] {
  const wanted = words.trim().toLowerCase();
  const values = contents.allHeads.map((head) => valueIn(by, head, contents));
  return contents.allHeads
    .filter((head) => {
      const verdict = contents.verdict(head);
      const text = [contents.name(head), ...verdict.findings.map(({ role }) => role), verdict.role].join(" ");
      return (!family || verdict.family === family) && text.toLowerCase().includes(wanted);
    })
    .sort((a, b) => {
      const [first, second] = [values[a] ?? null, values[b] ?? null];
      if (first === second) return a - b;
      if (first === null) return 1;
      if (second === null) return -1;
      const order = typeof first === "string" ? first.localeCompare(String(second)) : first - Number(second);
      return (isDown ? -order : order) || a - b;
    });
}

/** A click on a column: numbers begin with the largest, names with the first; again turns it round. */
export function sortedBy(sorting: Sorting, by: ColumnName): Sorting {
  return { by, isDown: sorting.by === by ? !sorting.isDown : by !== "head" && by !== "role" };
}

export class RolesTable {
  private sorting: Sorting = { by: "head", isDown: false };
  private readonly family = byId<HTMLSelectElement>("filter-role");
  private readonly words = byId<HTMLInputElement>("filter-text");

  constructor(
    private readonly page: ReportPage,
    families: HTMLOptionElement[],
  ) {
    this.family.append(...families);
    this.family.addEventListener("change", () => this.draw());
    this.words.addEventListener("input", () => this.draw());
  }

  /** Show the heads of one family. */
  filter(family: string): void {
    this.family.value = family;
    this.draw();
  }

  draw(): void {
    const { contents } = this.page;
    const heads = sortedHeads(contents, this.family.value, this.words.value, this.sorting);
    byId("table-head").replaceChildren(...this.columns.map((column) => this.title(column)));
    byId("table-body").replaceChildren(...heads.map((head) => this.row(head)));
    byId("table-note").textContent = `${heads.length} of ${contents.json.heads.length} heads`;
  }

  /** Trust has a column where it was tested. */
  private get columns() {
    return COLUMNS.filter(({ name }) => name !== "trust" || this.page.contents.json.trust);
  }

  private title({ name, label, kind }: (typeof COLUMNS)[number]): HTMLElement {
    const { by, isDown } = this.sorting;
    const isSorted = by === name;
    const button = make("button", {}, [isSorted ? `${label} ${isDown ? "↓" : "↑"}` : label], {
      click: () => {
        this.sorting = sortedBy(this.sorting, name);
        this.draw();
      },
    });
    const order = isDown ? "descending" : "ascending";
    return make("th", { class: kind, scope: "col", "aria-sort": isSorted ? order : null }, [button]);
  }

  private row(head: number): HTMLElement {
    const { contents, choice, theme } = this.page;
    const name = contents.name(head);
    const verdict = contents.verdict(head);
    const best = verdict.findings[0];
    const colour = css(familyColour(theme, verdict.family));
    const trust = contents.trust(head);
    const cells = [
      make("td", { class: "name" }, [make("button", {}, [name])]),
      make("td", {}, [dot(colour, "display:inline-block;margin-right:6px;"), verdict.role]),
      contents.json.trust && make("td", {}, [trust && trustBadge(trust)]),
      make("td", { class: "n" }, [best ? figure(best.score) : ""]),
      make("td", { class: "n" }, [best ? figure(best.baseline) : ""]),
      make("td", { class: "n wide" }, [best && isKnown(best.low) ? `${figure(best.low)} to ${figure(best.high)}` : ""]),
      make("td", { class: "wide" }, [otherRoles(verdict)]),
    ];
    return make("tr", { "data-head": name, class: name === choice.head ? "on" : "" }, cells, {
      click: () => this.page.choose({ head: name }),
    });
  }
}

/** The other roles of a head; of one without any, what comes nearest. */
function otherRoles({ findings, nearest }: Verdict): string {
  const others = findings.slice(1).map(({ role, score }) => `${role} ${figure(score)}`);
  if (findings.length || !nearest) return others.join(", ");
  return `nearest: ${nearest.role} ${figure(nearest.score)} (needs ${nearest.criterion})`;
}
