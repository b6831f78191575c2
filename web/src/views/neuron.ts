/** The neuron view: one head, neuron by neuron, from query and keys to the head's output. Mounted like every view. */

import type { SiteProps } from "../contract";
import { editedNotes, weightsOf } from "../data/edited";
import { occurrences } from "../data/find";
import { loadTerms, orderOf, product, strongestKeys, type Terms, Vectors, variation } from "../data/neuron";
import { type Reading, readingOf } from "../data/reading";
import { headName, siteOf, stackOf } from "../data/trace";
import { Raster } from "../marks/raster";
import type { Selection } from "../selection";
import { isAborted, problemOf, SourceError } from "../source";
import { themeOf } from "../theme";
import { Ruler } from "./labels";
import { neuronLegend } from "./legend";
import { nextHead, nextLayer } from "./navigation";
import { toggled } from "./neuronLayout";
import { NeuronPicture } from "./neuronPicture";
import { NeuronRows } from "./neuronRows";
import { tableOf } from "./neuronTable";
import { type Content, partOf } from "./neuronTip";
import { wordsOf } from "./neuronWords";
import { pictureOf, Surface, titled } from "./surface";
import { Updates } from "./updates";
import type { Host, Mount, Mounted } from "./view";

const ALL = { by: "tokens", hide: [], off: [] } satisfies Pick<Selection, "by" | "hide" | "off">;
/** So many rows are seen before and after a key that is gone to. */
const AROUND = 4;
export const mountNeuron: Mount = (element, host) => new NeuronView(element, host);

class NeuronView implements Mounted {
  private readonly scroller = document.createElement("div");
  private readonly stage = document.createElement("div");
  private readonly spacer = document.createElement("div");
  private readonly surface: Surface;
  private readonly picture_: NeuronPicture;
  private readonly listeners = new AbortController();
  private vectors: Vectors | null = null;
  private content: Content | null = null;
  private selection: Selection | null = null;
  private base: Raster | null = null;
  private front: Raster | null = null;
  private readonly updates: Updates;
  private frame = 0;
  /** The query's row, kept in view when the page changes its size, until the user scrolls. */
  private held: number | null = null;
  /** The key that was gone to, marked while the query stays. */
  private goal: number | null = null;
  private search = { text: "", places: [] as number[][], index: -1 };

  constructor(
    private readonly element: HTMLElement,
    private readonly host: Host,
  ) {
    // What is drawn follows the scroll position: the browser must not move it to keep something in place.
    const scrolls = { position: "absolute", inset: "0", overflow: "hidden auto", overflowAnchor: "none" };
    Object.assign(this.scroller.style, scrolls);
    Object.assign(this.stage.style, { position: "sticky", top: "0", height: "100%", userSelect: "none" });
    this.stage.setAttribute("role", "group");
    this.stage.setAttribute("aria-label", "Neurons of one head");
    this.scroller.append(this.stage, this.spacer);
    element.append(this.scroller);
    this.picture_ = new NeuronPicture(new Ruler());
    this.updates = new Updates((problem) => host.fail(problem));
    this.surface = new Surface(this.stage, () => this.draw());
    this.listen();
  }

  update(selection: Selection): Promise<void> {
    return this.updates.begin((signal) => this.show(selection, signal));
  }

  redraw(): void {
    if (!this.content) return;
    if (this.held !== null) this.scrollTo(this.held);
    this.draw();
    this.tell();
    void this.fill();
  }

  async picture(): Promise<HTMLCanvasElement> {
    const scale = Math.max(2, window.devicePixelRatio || 1);
    const raster = this.surface.raster(scale);
    this.picture_.paint(raster, scale);
    const picture = pictureOf(raster, this.picture_.labels(), scale);
    const theme = themeOf(this.element);
    const { line, notes } = this.words();
    const name = { text: this.vectors?.head ?? "", colour: theme.accent, isBold: true };
    return titled(
      picture,
      this.host.trace,
      [{ text: this.host.trace.model, colour: theme.ink }, name],
      [line, ...notes].join(" · "),
      theme,
      scale,
      neuronLegend(theme, this.host.trace.difference !== null),
    );
  }

  numbers(limit: number): ReturnType<Mounted["numbers"]> {
    return this.content ? tableOf(this.content, limit) : { columns: [], rows: [], total: 0 };
  }

  key(event: KeyboardEvent): boolean {
    const { selection, content } = this;
    if (!selection || event.ctrlKey || event.metaKey || event.altKey) return false;
    const { layers } = this.host.trace;
    const go = (change: Partial<Selection> | null) => {
      if (change) this.host.select(change, "replace");
      return true;
    };
    switch (event.key) {
      case "ArrowUp":
        return this.step(-1);
      case "ArrowDown":
        return this.step(1);
      case "ArrowLeft":
        return go(nextHead(layers, selection, -1));
      case "ArrowRight":
        return go(nextHead(layers, selection, 1));
      case "[":
        return go(nextLayer(layers, selection, -1));
      case "]":
        return go(nextLayer(layers, selection, 1));
      case "a":
        this.host.select({ every: selection.every ? null : "query" });
        return true;
      case "e":
        return this.silence();
      case "PageUp":
      case "PageDown":
        this.scroller.scrollTop += (event.key === "PageUp" ? -0.8 : 0.8) * this.surface.height;
        return true;
      case "Home":
      case "End":
        this.scroller.scrollTop = event.key === "Home" ? 0 : this.scroller.scrollHeight;
        return true;
      case "Escape":
        if (this.search.text && content) {
          this.find("", 1);
          return true;
        }
        return false;
      default:
        return false;
    }
  }

  find(text: string, direction: 1 | -1): { index: number; total: number } {
    const { content, search } = this;
    if (!content) return { index: -1, total: 0 };
    if (text !== search.text) {
      const places = occurrences(content.tokens, text);
      this.search = { text, places, index: places.length ? 0 : -1 };
    } else if (search.places.length) {
      search.index = (search.index + direction + search.places.length) % search.places.length;
    }
    this.mark();
    const place = this.search.places[this.search.index]?.[0];
    if (place !== undefined) this.scrollTo(place);
    this.draw();
    void this.fill();
    return { index: this.search.index, total: this.search.places.length };
  }

  strongestKeys(count: number): { key: number; weight: number }[] {
    return this.content?.terms ? strongestKeys(this.content.terms, count) : [];
  }

  goTo(key: number): void {
    const { content } = this;
    if (!content) return;
    // With some rows around it.
    for (const row of [key + AROUND, key - AROUND]) {
      this.scrollTo(Math.max(0, Math.min(content.tokens.texts.length - 1, row)));
    }
    this.held = this.goal = key;
    this.mark();
    this.draw();
    void this.fill();
  }

  destroy(): void {
    this.updates.end();
    this.listeners.abort();
    cancelAnimationFrame(this.frame);
    this.host.tip(null);
    this.surface.destroy();
    this.scroller.remove();
  }

  // Showing

  private async show(selection: Selection, signal: AbortSignal): Promise<void> {
    const { source, trace } = this.host;
    const site = siteOf(trace, selection.site);
    const head = headName(site.site, selection.head);
    this.selection = selection;
    if (site.no_neurons) {
      throw new SourceError(`There are no neurons of ${head} to show: ${site.no_neurons}.`, "", "NotRecordedError");
    }
    if (this.vectors?.head !== head) this.vectors = new Vectors(source, head, site);
    const { vectors } = this;
    const isKeys = !selection.every || selection.every === "key" || selection.every === "value";
    const tokens = this.reading(site, isKeys);
    const count = tokens.texts.length;
    const isOther = !this.content || this.content.tokens.texts.length !== count;
    if (isOther) this.scroller.scrollTop = this.picture_.scroll = 0;
    if (isOther || selection.every) this.held = null;
    const query = queryOf(selection, site);
    if (this.content?.vectors !== vectors || this.content.terms?.index !== query) this.goal = null;
    if (site.kind === "self" && selection.token && query !== this.content?.query.row && !selection.every) {
      this.held = query;
      this.picture_.scroll = Math.max(0, this.rows(count, false).reveal(query, this.picture_.scroll));
    }
    const [terms] = await Promise.all([
      selection.every ? null : loadTerms(source, site, head, query, signal),
      this.load(vectors, selection, count, signal),
    ]);
    signal.throwIfAborted();
    this.content = {
      vectors,
      tokens,
      terms,
      order: this.order(vectors, selection, terms),
      fold: selection.fold,
      every: selection.every,
      query: {
        text: this.reading(site, false).texts[query] ?? "",
        row: site.kind === "self" && (isKeys || selection.every) ? query : null,
      },
      edited: this.edited(site, tokens, query),
      against: selection.against,
    };
    this.picture_.hovered = null;
    this.host.fail(null);
    if (this.search.text) this.search.places = occurrences(tokens, this.search.text);
    this.mark();
    // The page may have changed its size while vectors were on their way.
    if (this.held !== null) this.scrollTo(this.held);
    this.draw();
    void this.fill();
    this.tell();
  }

  private tell(): void {
    const { line, notes } = this.words();
    this.host.say(line, notes, neuronLegend(themeOf(this.element), this.host.trace.difference !== null));
  }

  private async load(vectors: Vectors, selection: Selection, count: number, signal: AbortSignal): Promise<void> {
    const [first, last] = this.rows(count, selection.every !== null).visible(this.picture_.scroll);
    if (selection.every) return vectors.load(selection.every, first, last, signal);
    const { against } = selection;
    await Promise.all([
      vectors.load("key", first, last, signal),
      vectors.load("value", first, last, signal),
      against === null ? undefined : vectors.load("key", against, against + 1, signal),
    ]);
  }

  /** Load what has come into view, and draw it. */
  private async fill(): Promise<void> {
    const { content, selection, vectors } = this;
    if (!content || !selection || !vectors) return;
    const count = content.tokens.texts.length;
    const [first, last] = this.rows(count, selection.every !== null).visible(this.picture_.scroll);
    const needed = selection.every ? [selection.every] : (["key", "value"] as const);
    if (needed.every((of) => vectors.has(of, first, last))) return;
    try {
      await this.load(vectors, selection, count, this.updates.signal);
      if (content === this.content) this.draw();
    } catch (problem) {
      if (!isAborted(problem)) this.host.fail(problemOf(problem));
    }
  }

  private draw(): void {
    const { content, surface } = this;
    if (!content || !surface.width || !surface.height) return;
    const { tall } = this.rows(content.tokens.texts.length, content.every !== null);
    const beyond = Math.max(0, tall - surface.height);
    this.spacer.style.height = `${beyond}px`;
    this.picture_.scroll = Math.min(this.picture_.scroll, beyond);
    if (Math.abs(this.scroller.scrollTop - this.picture_.scroll) > 1) this.scroller.scrollTop = this.picture_.scroll;
    this.picture_.lay(content, themeOf(this.element), surface.width, surface.height);
    this.base = surface.raster();
    this.front = null;
    this.picture_.paint(this.base, surface.scale);
    this.drawFocus();
  }

  private drawFocus(): void {
    if (!this.base) return;
    let raster = this.base;
    if (this.picture_.hovered) {
      this.front ??= new Raster(this.base.width, this.base.height);
      raster = this.front.copyFrom(this.base);
      this.picture_.paintFocus(raster, this.surface.scale);
    }
    this.surface.show(raster, this.picture_.labels());
  }

  private order(vectors: Vectors, selection: Selection, terms: Terms | null): Int32Array {
    if (terms) {
      return orderOf(selection, terms, selection.against === null ? null : product(terms, vectors, selection.against));
    }
    const about = vectors.about(selection.every ?? "query");
    if (!about) return new Int32Array();
    const places = Int32Array.from(about.mean.keys());
    if (selection.order !== "spread") return places;
    const varies = variation(about.mean, about.spread);
    return places.sort((a, b) => (varies[a] as number) - (varies[b] as number) || a - b);
  }

  private words(): { line: string; notes: string[] } {
    const { content, selection } = this;
    if (!content || !selection) return { line: "", notes: [] };
    const { trace } = this.host;
    const { line, notes } = wordsOf(content, selection.order, trace.difference !== null, this.picture_.forced);
    return { line, notes: [...editedNotes(trace, [content.vectors.head], [content.tokens]), ...notes] };
  }

  /** Rows that edits changed: replaced tokens, and keys whose weight in the row of this query was set. */
  private edited(site: SiteProps, tokens: Reading, query: number): Set<number> {
    const { trace } = this.host;
    const rows = new Set(tokens.isReplaced.flatMap((isReplaced, row) => (isReplaced ? [row] : [])));
    const name = headName(site.site, this.selection?.head ?? 0);
    for (const weight of weightsOf(trace, name, this.reading(site, false), this.reading(site, true))) {
      if (weight.query === query && weight.key >= 0) rows.add(weight.key);
    }
    return rows;
  }

  private reading(site: SiteProps, isKeys: boolean): Reading {
    const stack = stackOf(this.host.trace, isKeys ? site.key_stack : site.stack);
    return readingOf(stack, isKeys ? site.n_keys : site.n_queries, ALL);
  }

  // Acting

  private step(by: 1 | -1): boolean {
    const { selection } = this;
    if (!selection) return false;
    const site = siteOf(this.host.trace, selection.site);
    const index = queryOf(selection, site) + by;
    if (index >= 0 && index < site.n_queries) this.host.select({ token: { side: "query", index } }, "replace");
    return true;
  }

  /** Set the neuron under the pointer to nothing, for all tokens, and run again. */
  private silence(): boolean {
    const { hovered } = this.picture_;
    const head = this.vectors?.head;
    if (!hovered || hovered.neuron < 0 || !head || !this.host.edit) return false;
    this.host.edit(`set_neuron('${head}', '${partOf(hovered, this.content?.every ?? null)}', ${hovered.neuron}, 0.0)`);
    return true;
  }

  private mark(): void {
    const { places, index } = this.search;
    this.picture_.found = new Set(this.goal === null ? places.flat() : [...places.flat(), this.goal]);
    this.picture_.current = places[index]?.[0] ?? this.goal ?? -1;
  }

  private rows(count: number, isEvery: boolean): NeuronRows {
    return new NeuronRows(count, this.surface.height, isEvery);
  }

  private scrollTo(row: number): void {
    const count = this.content?.tokens.texts.length ?? 0;
    this.picture_.scroll = this.rows(count, this.content?.every !== null).reveal(row, this.picture_.scroll);
  }

  private listen(): void {
    const { signal } = this.listeners;
    this.scroller.addEventListener("scroll", () => this.scrolled(), { signal, passive: true });
    this.stage.addEventListener("pointermove", (event) => this.hover(event), { signal });
    this.stage.addEventListener("pointerleave", () => this.leave(), { signal });
    this.stage.addEventListener("click", (event) => this.click(event), { signal });
  }

  private scrolled(): void {
    if (Math.abs(this.scroller.scrollTop - this.picture_.scroll) < 1) return;
    this.held = null;
    this.picture_.scroll = this.scroller.scrollTop;
    this.picture_.hovered = null;
    this.host.tip(null);
    this.surface.move();
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
      void this.fill();
    });
  }

  private at(event: MouseEvent): { x: number; y: number } {
    const { left, top } = this.stage.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  }

  private hover(event: PointerEvent): void {
    if (!this.content || !this.base) return;
    const { x, y } = this.at(event);
    const spot = this.picture_.hit(x, y);
    const before = this.picture_.hovered;
    this.stage.style.cursor = spot || this.picture_.title(x, y) ? "pointer" : "default";
    this.picture_.hovered = spot;
    if (spot?.row !== before?.row || spot?.column !== before?.column || spot?.place !== before?.place) this.drawFocus();
    const lines = this.picture_.tip();
    this.host.tip(lines.length ? { x: event.clientX, y: event.clientY } : null, lines);
  }

  private leave(): void {
    this.host.tip(null);
    if (!this.picture_.hovered) return;
    this.picture_.hovered = null;
    this.drawFocus();
  }

  /** On a title: fold it. On a token: look from there. On a key's cells: order neurons by that key. */
  private click(event: MouseEvent): void {
    const { content, selection } = this;
    if (!content || !selection) return;
    const { x, y } = this.at(event);
    const title = this.picture_.title(x, y);
    if (title && content.terms) {
      this.host.select({ fold: toggled(title, selection.fold, this.picture_.forced) });
      return;
    }
    const spot = this.picture_.hit(x, y);
    if (!spot || typeof spot.row !== "number") return;
    const site = siteOf(this.host.trace, selection.site);
    if (spot.column === "token" || spot.column === "every") {
      const isQuery = site.kind === "self" || selection.every === "query" || selection.every === "mixed";
      if (isQuery)
        this.host.select({
          token: { side: "query", index: spot.row },
          every: null,
          order: selection.every ? "index" : selection.order,
        });
      return;
    }
    if (spot.column !== "key" && spot.column !== "product") return;
    const isSame = selection.against === spot.row;
    this.host.select(isSame ? { order: "index", against: null } : { order: "token", against: spot.row });
  }
}

/** The query that is looked from: the chosen token, or the last. */
export function queryOf({ token }: Selection, site: SiteProps): number {
  if (token && (token.side === "query" || site.kind === "self")) return Math.min(token.index, site.n_queries - 1);
  return site.n_queries - 1;
}
