/** Measures of the heads on screen: of the run, over a corpus, and what was looked for. */

import type { EvidenceProps, ScoresProps } from "../contract";
import { joined, Measures, strongestHead } from "../data/measures";
import { RELEVANCE, type Relevance } from "../data/relevance";
import { type Report, reportOf } from "../data/report";
import type { Selection } from "../selection";
import type { Part } from "../wire";
import { type Finder, measureOf } from "./find/finder.svelte";
import type { PageLinks } from "./pageLinks.svelte";
import type { OpenRun, Runs, Selecting } from "./slices";

/** What measures use of the page around them. */
type Page = Selecting & Runs & { readonly finder: Finder; readonly links: PageLinks };

export class RunMeasures {
  /** Measures of this input. */
  own = $state.raw<Part<ScoresProps> | null>(null);
  /** Where the answer that was chosen came from. */
  relevance = $state.raw<Relevance | null>(null);
  /** What a report over a corpus says of this model's heads. */
  report = $state.raw<Report | null>(null);
  /** Measures from elsewhere, the latest first: what was looked for, what a use case found, relevance, a report. */
  extra = $state.raw<Record<string, Part<ScoresProps>>>({});
  /** All of them, to look up, sort and colour by. */
  scores = $derived(joined([...Object.values(this.extra), this.own]));
  /** The run whose measures were asked for. */
  #of: OpenRun | null = null;
  /** The measure whose strongest head is put into focus once it is known: the page was opened without a link. */
  #opening = "";

  constructor(private readonly page: Page) {}

  /** A measure of the heads on screen beside those of the trace: it can be sorted and coloured by. */
  add(part: Part<ScoresProps>) {
    const name = part.props.methods[0]?.name ?? "";
    const { [name]: _, ...others } = this.extra;
    this.extra = { [name]: part, ...others };
  }

  /** Focus the head that this measure ranks first, once it is known; "" for none. */
  openAt(measure: string) {
    this.#opening = measure;
  }

  /** What was measured belongs to the run before. */
  forget() {
    this.own = null;
    this.report = null;
    this.extra = {};
    this.#of = null;
  }

  /** Measures come after the first picture: nobody waits for them, and they take the server some work. */
  async learn(openRun: OpenRun) {
    if (this.#of === openRun && this.own) return;
    this.#of = openRun;
    const { page } = this;
    try {
      const source = page.shown?.source ?? openRun.source;
      const [scores, report] = await Promise.all([openRun.source.part<ScoresProps>("scores"), reportOf(source)]);
      if (page.pictured !== openRun) return;
      this.report = report;
      if (report) this.extra = { ...this.extra, report: report.scores };
      this.own = scores;
      if (source.has?.("evidence")) this.add(measureOf(await source.part<EvidenceProps>("evidence")));
      await page.finder.restore(page.selection.find);
      if (page.pictured !== openRun) return;
      if (!page.links.isMissing("find")) this.dropUnknown();
      if (this.#opening) this.focusStrongest(this.#opening, "replace");
      this.#opening = "";
    } catch {
      // A file saved without measures, or a trace that allows none: the page then offers nothing that needs them.
    }
  }

  /** Put the head that a measure ranks first into focus. */
  focusStrongest(measure: string, history: "keep" | "replace" = "keep", change: Partial<Selection> = {}) {
    const { page } = this;
    const head = page.shown && strongestHead(page.shown.trace, new Measures(this.scores), measure);
    if (head) page.select({ ...change, ...head }, history);
  }

  /** Sort and colour only by measures that are there. */
  dropUnknown() {
    const known = new Set(this.scores?.props.methods.map((method) => method.name));
    const { sort, colour, relevance } = this.page.selection;
    if (relevance) known.add(RELEVANCE); // it may still come
    this.page.select({ sort: known.has(sort) ? sort : "", colour: known.has(colour) ? colour : "" }, "replace");
  }
}
