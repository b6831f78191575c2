/** Looking for heads: what is asked, where it stands, and what was found last. */

import type { FoundProps, MethodProps, RunEvent, RunRequest, ScoresProps } from "../../contract";
import { readingOf } from "../../data/reading";
import { siteOf, stackOf } from "../../data/trace";
import { sameRequest } from "../../request";
import { isAborted, isNotComputed, problemOf, type SourceError } from "../../source";
import { Painting } from "../../views/painting";
import { floats, type Grid, type Part } from "../../wire";
import type { Measured, Running, Runs, Selecting, Tasks, Viewing } from "../slices";
import { type By, EMPTY_QUERY, type FindQuery, lacking, optionsOf, parseQuery, queryText } from "./findQuery";

/** One head of the result. */
export interface FoundHead {
  head: string;
  value: number;
  /** NaN where there is none. */
  baseline: number;
  low: number;
  high: number;
}

export class Finder {
  isOpen = $state(false);
  query = $state<FindQuery>(structuredClone(EMPTY_QUERY));
  progress = $state.raw<RunEvent | null>(null);
  problem = $state.raw<SourceError | null>(null);
  wasStopped = $state(false);
  found = $state.raw<Part<FoundProps> | null>(null);
  painting = $state.raw<Painting | null>(null);
  /** How many cells are painted; changes with every stroke. */
  nPainted = $state(0);
  #stop: AbortController | null = null;

  constructor(private readonly bench: Selecting & Runs & Running & Measured & Tasks & Viewing) {}

  /** What is still missing, in words. */
  get lacks(): string {
    if (this.query.by === "painted") return this.nPainted ? "" : lacking({ ...this.query, cells: [] });
    return lacking(this.query);
  }

  toggle() {
    this.isOpen = !this.isOpen;
    if (!this.isOpen) this.stopPainting();
    else if (this.query.by === "painted") this.paint();
  }

  choose(by: By) {
    this.query.by = by;
    this.problem = null;
    if (by === "painted") this.paint();
    else this.stopPainting();
  }

  /** A token was clicked: left is what looks, right what is looked at. */
  take(side: "query" | "key", index: number) {
    const { shown: run, selection } = this.bench;
    if (!run) return;
    const site = siteOf(run.trace, selection.site);
    const [stack, length] = side === "query" ? [site.stack, site.n_queries] : [site.key_stack, site.n_keys];
    const reading = readingOf(stackOf(run.trace, stack), length, selection);
    const at = reading.members[index];
    if (!at) return;
    this.query[side === "query" ? "from" : "to"] = { text: (reading.texts[index] ?? "").trim(), at };
    this.query.site = site.site;
  }

  /** A word that is typed. Patches go by their place in the picture, which the model has no word for. */
  typed(side: "from" | "to", text: string) {
    this.query[side] = { text, at: null };
    const { shown: run, selection } = this.bench;
    const patch = text.trim().replace(/^(\d+)\s*[·.,]\s*(\d+)$/, "$1·$2");
    if (!run?.trace.stacks.some((stack) => stack.looks === "image") || !patch) return;
    const site = siteOf(run.trace, selection.site);
    const [stack, length] = side === "from" ? [site.stack, site.n_queries] : [site.key_stack, site.n_keys];
    const index = readingOf(stackOf(run.trace, stack), length, selection).texts.indexOf(patch);
    if (index >= 0) this.take(side === "from" ? "query" : "key", index);
  }

  /** Paint on the matrix of the layer in view. Another size of matrix begins anew. */
  paint() {
    const { shown: run, selection } = this.bench;
    if (!run) return;
    if (selection.scale !== "head" || selection.form !== "matrix") this.bench.select({ scale: "head", form: "matrix" });
    const { queries, keys } = this.#readings();
    if (this.painting?.queries === queries.texts.length && this.painting.keys === keys.texts.length) return;
    this.nPainted = 0;
    const painting: Painting = new Painting(queries.texts.length, keys.texts.length, () => {
      this.nPainted = painting.count;
    });
    this.painting = painting;
  }

  stopPainting() {
    this.painting = null;
    this.nPainted = 0;
    this.bench.view?.redraw();
  }

  /** The pattern that the inputs cannot show, where the last search ended with that. */
  get absent(): string {
    return this.problem?.error === "AbsentPatternError" ? this.query.pattern : "";
  }

  /** Run an input that has the pattern, and look for it there. */
  async findIn(request: RunRequest) {
    this.query.over = "run";
    await this.bench.run(request);
    if (sameRequest(this.bench.shown?.request ?? null, request)) await this.find();
  }

  find(): Promise<void> {
    this.bench.allow("find");
    return this.#find();
  }

  async #find(): Promise<void> {
    const { shown: run } = this.bench;
    if (!run?.source.task || this.lacks) return;
    if (this.query.by === "painted" && this.painting) {
      const { queries, keys } = this.#readings();
      this.query.cells = this.painting.stretches(queries, keys);
      this.query.site = this.bench.selection.site;
    }
    const query = $state.snapshot(this.query) as FindQuery;
    this.#stop?.abort();
    const stop = new AbortController();
    this.#stop = stop;
    this.problem = null;
    this.wasStopped = false;
    this.progress = { state: "queued" } as RunEvent;
    try {
      const hear = (event: RunEvent) => {
        if (this.#stop === stop) this.progress = event;
      };
      const part = await run.source.task<FoundProps>("find", optionsOf(query), hear, stop.signal);
      if (this.#stop !== stop || this.bench.shown !== run) return;
      this.found = part;
      this.bench.measures.add(measureOf(part));
      this.bench.select({ find: queryText(query), colour: part.props.method.name, least: 0 });
    } catch (thrown) {
      if (this.#stop !== stop) return;
      if (isAborted(thrown)) this.wasStopped = true;
      else if (!isNotComputed(thrown)) this.problem = problemOf(thrown);
    } finally {
      if (this.#stop === stop) this.progress = null;
    }
  }

  cancel() {
    this.#stop?.abort();
  }

  /** Look again for what a link asked for; a saved page holds what was found. */
  async restore(text: string) {
    const query = parseQuery(text);
    const source = this.bench.shown?.source;
    if (!source || !query || this.found) return;
    if (!source.task && !source.has?.("found")) return;
    this.query = query;
    this.isOpen = true;
    if (query.by === "painted") this.nPainted = query.cells.reduce((sum, [, first, last]) => sum + last - first, 0);
    if (source.task) return this.#find();
    this.found = await source.part<FoundProps>("found");
    this.bench.measures.add(measureOf(this.found));
  }

  /** Another run is on screen: what was found belongs to the one before. */
  forget() {
    this.#stop?.abort();
    this.#stop = null;
    this.progress = null;
    this.problem = null;
    this.wasStopped = false;
    this.found = null;
    this.painting = null;
    this.nPainted = 0;
    this.query = { ...this.query, cells: [], site: "", position: null };
    for (const side of ["from", "to"] as const) this.query[side] = { ...this.query[side], at: null };
  }

  #readings() {
    const { shown: run, selection } = this.bench;
    if (!run) throw new Error("nothing is shown");
    const site = siteOf(run.trace, selection.site);
    return {
      queries: readingOf(stackOf(run.trace, site.stack), site.n_queries, selection),
      keys: readingOf(stackOf(run.trace, site.key_stack), site.n_keys, selection),
    };
  }
}

/** The heads that were found, the best first; those of which nothing is known are left out. `byWeight` ranks by the value
 *  itself: a head that always looks one token back does so in the example, and not more than anyway. */
export function ranked(part: Part<FoundProps>, byWeight = false): FoundHead[] {
  const column = (name: string) => floats(part.arrays[name] as Grid);
  const [values, baselines, low, high] = ["values", "baselines", "low", "high"].map(column) as [
    Float32Array,
    Float32Array,
    Float32Array,
    Float32Array,
  ];
  const above = (head: FoundHead) => head.value - (byWeight || Number.isNaN(head.baseline) ? 0 : head.baseline);
  const key = part.props.order === "size" ? (head: FoundHead) => Math.abs(head.value) : above;
  return part.props.heads
    .map((head, index) => ({
      head,
      value: values[index] as number,
      baseline: baselines[index] as number,
      low: low[index] as number,
      high: high[index] as number,
    }))
    .filter((head) => !Number.isNaN(head.value))
    .sort((a, b) => key(b) - key(a));
}

/** What was found, here or by a use case, as one more measure of heads. */
export function measureOf(part: Part<{ heads: string[]; method: MethodProps }>): Part<ScoresProps> {
  const { heads, method } = part.props;
  const values = part.arrays.measure as Grid;
  return { kind: "scores", props: { heads, methods: [method] }, arrays: { [method.name]: values } };
}
