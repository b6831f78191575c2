/** Activations: layers down, tokens across. What each layer would predict, or how strong the residual stream is; of one
 *  run, or of one minus another. */

import type { RunEvent } from "../contract";
import { differencesOf, type SignedWindow } from "../data/activationDifferences";
import { type ActivationsOf, activationsOf, type Window } from "../data/activations";
import { editedNotes, headNames, isEditedLayer } from "../data/edited";
import { positionOf, type Reading, readingOf } from "../data/reading";
import { untilOf, writtenFrom } from "../data/steps";
import { siteOf, stackOf } from "../data/trace";
import type { Raster } from "../marks/raster";
import type { Selection, Side } from "../selection";
import { isAborted, problemOf } from "../source";
import { themeOf } from "../theme";
import { type Cells, PlainCells } from "./activationsCells";
import { SignedCells } from "./activationsDifference";
import { type Cell, Layout } from "./activationsLayout";
import { type Content, cellName, labels, paint } from "./activationsPicture";
import { Ruler } from "./labels";
import { pictureOf, Surface, titled } from "./surface";
import { Updates } from "./updates";
import { type Host, type Mounted, onScreen } from "./view";

type Of = ActivationsOf<Window> | ActivationsOf<SignedWindow>;

export function mountActivations(element: HTMLElement, host: Host): Mounted {
  return new ActivationsView(element, host);
}

class ActivationsView implements Mounted {
  private readonly stage = document.createElement("div");
  private readonly surface: Surface;
  private readonly ruler = new Ruler();
  private selection: Selection | null = null;
  private of: Of | null = null;
  private cells: Cells | null = null;
  private unlisten: () => void = () => undefined;
  private scroll = 0;
  private hovered: Cell | null = null;
  private readonly updates: Updates;
  private frame = 0;
  private dragged: { x: number; scroll: number } | null = null;

  constructor(
    private readonly element: HTMLElement,
    private readonly host: Host,
  ) {
    Object.assign(this.stage.style, { position: "absolute", inset: "0", overflow: "hidden", userSelect: "none" });
    this.stage.setAttribute("role", "group");
    this.stage.setAttribute("aria-label", "Layers by tokens; the table lists the numbers");
    element.append(this.stage);
    this.updates = new Updates((problem) => host.fail(problem));
    this.surface = new Surface(this.stage, () => this.draw());
    this.stage.addEventListener("pointermove", (event) => this.point(event));
    this.stage.addEventListener("pointerleave", () => this.leave());
    this.stage.addEventListener("pointerdown", (event) => this.press(event));
    this.stage.addEventListener("pointerup", () => {
      this.dragged = null;
    });
    this.stage.addEventListener("click", (event) => this.click(event));
    this.stage.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
  }

  update(selection: Selection): Promise<void> {
    return this.updates.begin((signal) => this.show(selection, signal));
  }

  redraw(): void {
    this.draw();
    if (this.of?.any) this.tell();
  }

  async picture(): Promise<HTMLCanvasElement> {
    const scale = Math.max(2, window.devicePixelRatio || 1);
    const raster = this.surface.raster(scale);
    const theme = themeOf(this.element);
    const content = this.content();
    const words = [{ text: this.host.trace.model, colour: theme.ink }];
    const { line, notes } = this.told();
    if (content) this.paint(raster, scale, content);
    const texts = content ? labels(theme, this.ruler, content) : [];
    const legend = this.cells?.legend(theme) ?? null;
    const picture = pictureOf(raster, texts, scale);
    return titled(picture, this.host.trace, words, [line, ...notes].join(" · "), theme, scale, legend);
  }

  numbers(limit: number): { columns: string[]; rows: (string | number)[][]; total: number } {
    const [known, cells] = [this.of?.any, this.cells];
    if (!known || !cells) return { columns: [], rows: [], total: 0 };
    const columns = ["place", "position", "token", ...cells.columns()];
    const positions =
      this.pinned === null ? Array.from({ length: this.nTokens }, (_, position) => position) : [this.pinned];
    const rows: (string | number)[][] = [];
    for (let place = 0; place < known.nPlaces && rows.length < limit; place++) {
      for (const position of positions) {
        if (rows.length >= limit) break;
        const name = [known.props.places[place] ?? "", position, this.texts[position] ?? ""];
        rows.push([...name, ...cells.row(place, position)]);
      }
    }
    return { columns, rows, total: known.nPlaces * positions.length };
  }

  key(event: KeyboardEvent): boolean {
    if (!this.of?.any || !this.selection || event.ctrlKey || event.metaKey || event.altKey) return false;
    switch (event.key) {
      case "ArrowLeft":
        return this.go(-1);
      case "ArrowRight":
        return this.go(1);
      case "ArrowUp":
        return this.turn(-1);
      case "ArrowDown":
        return this.turn(1);
      case "PageUp":
        return this.scrollBy(-0.9 * this.layout.room);
      case "PageDown":
        return this.scrollBy(0.9 * this.layout.room);
      case "Home":
        return this.scrollBy(Number.NEGATIVE_INFINITY);
      case "End":
        return this.scrollBy(Number.POSITIVE_INFINITY);
      case "Escape":
        if (!this.selection.token) return false;
        this.host.select({ token: null });
        return true;
      default:
        return false;
    }
  }

  /** Show a token as if the pointer were on it. */
  highlight(token: { side: Side; index: number } | null): void {
    const position = token ? this.reading?.members[token.index]?.[0] : undefined;
    this.hovered = position === undefined ? null : { place: -1, position };
    this.draw();
  }

  destroy(): void {
    this.updates.end();
    this.unlisten();
    cancelAnimationFrame(this.frame);
    this.host.tip(null);
    this.surface.destroy();
    this.stage.remove();
  }

  // Showing

  private async show(selection: Selection, signal: AbortSignal): Promise<void> {
    const { source, trace } = this.host;
    const { stack } = siteOf(trace, selection.site);
    const of = trace.difference ? differencesOf(source, stack) : activationsOf(source, stack);
    const isMoved = selection.token?.index !== this.selection?.token?.index || of !== this.of;
    if (of !== this.of) {
      this.unlisten();
      this.unlisten = of.listen((event) => this.hear(event));
      this.scroll = 0;
      this.hovered = null;
    }
    this.of = of;
    this.selection = selection;
    this.fill();
    this.host.fail(null);
    if (isMoved) this.reveal();
    await of.need(...this.wanted());
    if (signal.aborted) return;
    this.fill();
    if (isMoved) this.reveal();
    this.draw();
    this.tell();
    await of.need(...this.wanted());
    if (signal.aborted) return;
    this.draw();
    this.tell();
  }

  /** What stands in the cells, as far as it is known. */
  private fill(): void {
    const { of, selection } = this;
    if (!of || !selection) return;
    this.cells = this.host.trace.difference
      ? new SignedCells(of as ActivationsOf<SignedWindow>, selection)
      : new PlainCells(of as ActivationsOf<Window>, selection);
  }

  private hear(event: RunEvent | null): void {
    if (event === null) {
      this.draw();
      return;
    }
    const progress = event.of ? `, ${event.done} of ${event.of} layers` : event.ahead ? `, ${event.ahead} ahead` : "";
    this.host.say(`Reading activations${this.host.trace.difference ? " of both runs" : ""}${progress} …`);
  }

  /** What is seen is wanted. */
  private wanted(): [number, number] {
    const at = this.pinned ?? 0;
    if (!this.of?.any || !this.cells) return [at, at + 1];
    const { layout } = this;
    if (this.cells.stream !== "lens" && !layout.isReadable) return [at, at + 1];
    return [...layout.visible];
  }

  private tell(): void {
    const { line, notes } = this.told();
    this.host.say(line, notes, this.cells?.legend(themeOf(this.element)) ?? null);
  }

  private told(): { line: string; notes: string[] } {
    const known = this.of?.any;
    if (!known || !this.cells) return { line: "", notes: [] };
    const { title, notes } = this.cells.told();
    const { first, count } = known.props;
    if (!this.host.source.task && count < known.nTokens)
      notes.push(`predictions, neurons and heads of tokens ${first} to ${first + count - 1} alone are saved here`);
    const { trace } = this.host;
    notes.push(...editedNotes(trace, headNames(trace.layers)));
    const size = `${known.props.layers.length} layers × ${this.nTokens.toLocaleString("en")} tokens`;
    return { line: `${title}, ${size}`, notes };
  }

  // Where things are

  private get stackName(): string {
    return siteOf(this.host.trace, this.selection?.site ?? "").stack;
  }

  private get texts(): string[] {
    return this.selection ? stackOf(this.host.trace, this.stackName).texts : [];
  }

  private get reading(): Reading | null {
    if (!this.selection) return null;
    const stack = stackOf(this.host.trace, this.stackName);
    return readingOf(stack, stack.texts.length, this.selection);
  }

  /** Tokens that are there: all, or those that a step had read. */
  private get nTokens(): number {
    const all = this.of?.any?.nTokens ?? this.texts.length;
    const until = untilOf(this.host.trace, this.selection?.step ?? null, this.stackName);
    return until === null ? all : Math.min(all, until + 1);
  }

  /** The position of the token in focus. */
  private get pinned(): number | null {
    return this.selection && positionOf(stackOf(this.host.trace, this.stackName), this.selection);
  }

  private get layout(): Layout {
    const places = this.of?.any?.props.places ?? ["input"];
    const shape = {
      width: this.surface.width,
      height: this.surface.height,
      nPlaces: places.length,
      nTokens: this.nTokens,
      names: Math.max(...places.map((name) => this.ruler.width(name, 12))),
      hasWords: (this.cells?.stream ?? "lens") === "lens",
    };
    return new Layout(shape, this.scroll);
  }

  private hit(event: MouseEvent): Cell | null {
    const box = this.stage.getBoundingClientRect();
    return this.layout.hit(event.clientX - box.left, event.clientY - box.top);
  }

  // Drawing

  private content(): Content | null {
    const [known, cells] = [this.of?.any, this.cells];
    if (!known || !cells) return null;
    const { trace } = this.host;
    return {
      cells,
      layout: this.layout,
      places: known.props.places,
      texts: this.texts,
      special: new Set(stackOf(trace, this.stackName).special),
      replaced: new Set(stackOf(trace, this.stackName).replaced),
      written: writtenFrom(trace, this.stackName) ?? this.texts.length,
      pinned: this.pinned,
      hovered: this.hovered,
      here: this.layerInFocus() + 1,
      edited: new Set(this.editedPlaces()),
    };
  }

  private draw(): void {
    if (!this.surface.width || !this.surface.height) return;
    this.scroll = this.layout.clamped(this.scroll);
    const content = this.content();
    if (!content) return;
    const raster = this.surface.raster();
    this.paint(raster, this.surface.scale, content);
    this.surface.show(raster, labels(themeOf(this.element), this.ruler, content));
  }

  private paint(raster: Raster, scale: number, content: Content): void {
    paint(raster, scale, themeOf(this.element), content);
  }

  private editedPlaces(): number[] {
    const layers = this.of?.any?.props.layers ?? [];
    const { trace } = this.host;
    const ofHeads = new Set(trace.edited_heads.map((head) => head.replace(/H\d+$/, "")));
    const isEdited = (layer: number) =>
      isEditedLayer(trace, { stack: this.stackName, layer }) ||
      trace.layers.some((site) => site.stack === this.stackName && site.layer === layer && ofHeads.has(site.site));
    return layers.flatMap((_, layer) => (isEdited(layer) ? [layer + 1] : []));
  }

  /** The layer in focus, by its number. */
  private layerInFocus(): number {
    return siteOf(this.host.trace, this.selection?.site ?? "").layer;
  }

  // Acting

  private point(event: PointerEvent): void {
    if (this.dragged) {
      const { cell, room } = this.layout;
      this.scroll = this.dragged.scroll + ((event.clientX - this.dragged.x) * this.nTokens * cell.width) / room;
      this.soon();
      return;
    }
    const cell = this.hit(event);
    if (cell?.place === this.hovered?.place && cell?.position === this.hovered?.position) return;
    this.hovered = cell;
    this.stage.style.cursor = cell ? "pointer" : "default";
    this.draw();
    this.tellOthers();
    if (cell) {
      const { layout } = this;
      const place = { x: layout.xOf(cell.position), y: layout.yOf(cell.place), ...layout.cell };
      const around = cell.place < 0 ? null : onScreen(this.stage, place);
      this.host.tip({ x: event.clientX, y: event.clientY }, this.tipOf(cell), around);
    } else this.host.tip(null);
  }

  private leave(): void {
    if (!this.hovered) return;
    this.hovered = null;
    this.host.tip(null);
    this.tellOthers();
    this.draw();
  }

  /** The token under the pointer, for whoever shows it elsewhere. */
  private tellOthers(): void {
    const index = this.hovered ? (this.reading?.groupOf[this.hovered.position] ?? -1) : -1;
    this.host.hover?.(index < 0 ? null : { side: "query", index });
  }

  private press(event: PointerEvent): void {
    const y = event.clientY - this.stage.getBoundingClientRect().top;
    if (!this.layout.isInBar(y)) return;
    this.dragged = { x: event.clientX, scroll: this.scroll };
    this.stage.setPointerCapture(event.pointerId);
  }

  private click(event: MouseEvent): void {
    const cell = this.hit(event);
    if (!cell) return;
    const site = cell.place > 0 ? this.siteOfLayer(cell.place - 1) : null;
    this.pick(cell.position, site);
  }

  private wheel(event: WheelEvent): void {
    if (!this.layout.furthest || event.ctrlKey) return;
    event.preventDefault();
    this.scrollBy(Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : event.deltaY);
  }

  private tipOf(cell: Cell): string[] {
    const known = this.of?.any;
    if (!known || !this.cells) return [];
    const name = cellName(cell, this.texts, known.props.places);
    return cell.place < 0 ? [name] : [name, ...this.cells.tip(cell.place, cell.position)];
  }

  private siteOfLayer(layer: number): string | null {
    const { layers } = this.host.trace;
    return (
      layers.find(
        (candidate) => candidate.stack === this.stackName && candidate.kind === "self" && candidate.layer === layer,
      )?.site ?? null
    );
  }

  /** Put a token into focus, tokens being read one by one. */
  private pick(position: number, site: string | null = null): void {
    const plain: Partial<Selection> = this.reading?.isPlain ? {} : { by: "tokens", hide: [], off: [] };
    this.host.select({ ...plain, ...(site ? { site } : {}), token: { side: "query", index: position } });
  }

  private go(by: 1 | -1): boolean {
    const from = this.pinned;
    const next = from === null ? (by > 0 ? 0 : this.nTokens - 1) : from + by;
    if (next >= 0 && next < this.nTokens) this.pick(next);
    return true;
  }

  private turn(by: 1 | -1): boolean {
    const site = this.siteOfLayer(this.layerInFocus() + by);
    if (site) this.host.select({ site, token: this.selection?.token ?? null }, "replace");
    return true;
  }

  private reveal(): void {
    const { pinned } = this;
    if (pinned === null || !this.surface.width) return;
    this.scroll = this.layout.revealing(pinned) ?? this.scroll;
  }

  private scrollBy(distance: number): boolean {
    const { layout } = this;
    if (!layout.furthest) return false;
    this.scroll = layout.clamped(this.scroll + distance);
    this.soon();
    return true;
  }

  private soon(): void {
    this.surface.move();
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
      const { signal } = this.updates;
      this.of?.need(...this.wanted()).then(
        () => signal.aborted || this.tell(),
        (problem) => {
          if (!isAborted(problem) && !signal.aborted) this.host.fail(problemOf(problem));
        },
      );
    });
  }
}
