/** The head view: one layer's heads between tokens, as lines or as a matrix. */

import { askAhead, type Loaded, loadLayer } from "../data/load";
import { Measures } from "../data/measures";
import { patchNote } from "../data/reading";
import { exactRow, isInexact } from "../data/rows";
import { headName, siteOf } from "../data/trace";
import { loadTrees } from "../data/trees";
import { Raster } from "../marks/raster";
import type { Selection } from "../selection";
import { themeOf } from "../theme";
import { same, type Token } from "./columns";
import { legendOf } from "./headLegend";
import { linesLine, matrixLine, pooledNote } from "./headWords";
import { Icons } from "./icons";
import { type Label, Ruler } from "./labels";
import { Later } from "./later";
import { LinesForm } from "./lines";
import { MatrixForm } from "./matrix";
import { nextCell, nextHead, nextLayer, nextToken, switched } from "./navigation";
import { type Handled, Pointer } from "./pointer";
import { Scene } from "./scene";
import { Search } from "./search";
import { pictureOf, Surface, titled } from "./surface";
import { tableOf } from "./table";
import { Updates } from "./updates";
import type { Host, Mounted } from "./view";

const FADE = 0.86; // of other lines, while one token is in focus
const VALUES = { pattern: "weight", contribution: "contribution", scores: "score" };
const DIFFERENCE = "difference";
const PAUSE = 80; // ms the pointer rests before exact numbers are asked for

export function mountHead(element: HTMLElement, host: Host): Mounted {
  return new HeadView(element, host);
}

class HeadView implements Mounted, Handled {
  private readonly surface: Surface;
  readonly lines: LinesForm;
  readonly matrix: MatrixForm;
  readonly ruler = new Ruler();
  private readonly stage = document.createElement("div");
  selection: Selection | null = null;
  /** The selection asked for last, which may not be drawn yet: keys pressed fast build on it. */
  private wanted: Selection | null = null;
  private loaded: { name: string; value: Loaded } | null = null;
  scene: Scene | null = null;
  private base: Raster | null = null;
  private faded: Raster | null = null;
  private front: Raster | null = null;
  private scale = 1;
  private readonly updates: Updates;
  private readonly later = new Later();
  private frame = 0;
  private readonly search = new Search();
  private readonly pointer: Pointer;

  constructor(
    private readonly element: HTMLElement,
    readonly host: Host,
  ) {
    Object.assign(this.stage.style, {
      position: "absolute",
      inset: "0",
      overflow: "hidden",
      userSelect: "none",
      touchAction: "none",
    });
    if (getComputedStyle(element).position === "static") element.style.position = "relative";
    this.stage.setAttribute("role", "group");
    this.stage.setAttribute("aria-label", "Attention between tokens");
    element.append(this.stage);
    this.updates = new Updates((problem) => host.fail(problem));
    this.surface = new Surface(this.stage, () => this.draw());
    this.lines = new LinesForm(this.ruler);
    this.matrix = new MatrixForm(this.ruler);
    this.pointer = new Pointer(this.stage, this);
  }

  update(selection: Selection): Promise<void> {
    this.wanted = selection;
    return this.updates.begin((signal) => this.show(selection, signal));
  }

  redraw(): void {
    if (!this.scene) return;
    this.draw();
    this.tell();
  }

  async picture(): Promise<HTMLCanvasElement> {
    const scale = Math.max(2, window.devicePixelRatio || 1);
    const base = this.surface.raster(scale);
    this.form.paint(base, scale);
    const raster = this.focused(base, scale);
    const picture = pictureOf(raster, this.labels(), scale);
    const { scene } = this;
    if (!scene) return picture;
    const theme = themeOf(this.element);
    const heads = scene.drawnHeads.map((head) => ({
      text: head.name,
      colour: scene.colourOf(head, theme).colour,
      isBold: true,
    }));
    const model = { text: this.host.trace.model, colour: theme.ink };
    const drawn = scene.isDifference ? this.signs() : VALUES[scene.selection.what];
    const notes = this.notes(scene, !this.isLines && this.matrix.isComplete);
    return titled(
      picture,
      this.host.trace,
      [model, ...heads],
      [drawn, ...notes].join(" · "),
      theme,
      scale,
      legendOf(scene, theme),
    );
  }

  highlight(token: Token | null): void {
    if (!this.isLines || same(this.lines.hovered, token)) return;
    this.lines.hovered = this.stillThere(token);
    if (this.lines.hovered) this.lines.reveal(this.lines.hovered);
    this.draw();
  }

  get kept(): number | null {
    const layer = this.loaded?.value.layer;
    return layer && !layer.isWhole ? layer.kept : null;
  }

  numbers(limit: number): ReturnType<Mounted["numbers"]> {
    const { scene } = this;
    const value = this.host.trace.difference ? DIFFERENCE : VALUES[this.selection?.what ?? "pattern"];
    const columns = ["head", "query position", "query token", "key position", "key token", value];
    if (!scene) return { columns, rows: [], total: 0 };
    return { columns, ...(this.isLines ? tableOf(scene, this.lines, limit) : this.matrix.table(limit)) };
  }

  key(event: KeyboardEvent): boolean {
    const { scene, wanted: selection } = this;
    if (!scene || !selection || event.ctrlKey || event.metaKey || event.altKey) return false;
    const { trace } = this.host;
    if (this.paintedBy(event.key)) return true;
    switch (event.key) {
      case "ArrowUp":
        return this.moved(nextToken(scene, -1));
      case "ArrowDown":
        return this.moved(nextToken(scene, 1));
      case "ArrowLeft":
        return this.moved(nextHead(trace.layers, selection, -1));
      case "ArrowRight":
        return this.moved(nextHead(trace.layers, selection, 1));
      case "[":
        return this.moved(nextLayer(trace.layers, selection, -1));
      case "]":
        return this.moved(nextLayer(trace.layers, selection, 1));
      case "x": {
        const token = this.isLines ? this.lines.focus : selection.token;
        if (token) this.switchToken(token, selection);
        return token !== null;
      }
      case "Escape":
        return this.clear();
      case "PageUp":
        return this.scrollBy(-this.page);
      case "PageDown":
        return this.scrollBy(this.page);
      case "Home":
        return this.scrollBy(Number.NEGATIVE_INFINITY);
      case "End":
        return this.scrollBy(Number.POSITIVE_INFINITY);
      default:
        return false;
    }
  }

  find(text: string, direction: 1 | -1): { index: number; total: number } {
    const { scene, search } = this;
    if (!scene) return { index: -1, total: 0 };
    const [first] = this.lines.columns?.visible("query", this.lines.scroll) ?? [0];
    if (text !== search.text) search.begin(scene, text, first);
    else search.step(direction);
    this.mark();
    const place = search.current?.[0];
    if (place && this.isLines) this.lines.reveal(place);
    this.draw();
    return { index: search.index, total: search.places.length };
  }

  destroy(): void {
    this.updates.end();
    this.later.cancel();
    this.pointer.destroy();
    cancelAnimationFrame(this.frame);
    this.host.tip(null);
    this.surface.destroy();
    this.stage.remove();
  }

  // Showing

  get isLines(): boolean {
    return this.selection?.form !== "matrix";
  }

  private get form(): LinesForm | MatrixForm {
    return this.isLines ? this.lines : this.matrix;
  }

  private async show(selection: Selection, signal: AbortSignal): Promise<void> {
    const { source, trace } = this.host;
    const site = siteOf(trace, selection.site);
    const before = this.selection && this.selection.site !== selection.site ? this.selection.site : null;
    const name = JSON.stringify([
      site.site,
      selection.what,
      selection.by,
      selection.hide,
      selection.off,
      selection.step,
    ]);
    if (this.loaded?.name !== name) {
      const value = await loadLayer(source, trace, site, selection, signal);
      signal.throwIfAborted();
      this.loaded = { name, value };
    }
    const trees = await loadTrees(source, headName(site.site, selection.head), selection, signal);
    signal.throwIfAborted();
    const isOther = this.scene?.layer.queries.texts.length !== this.loaded.value.layer.queries.texts.length;
    const scene = new Scene(this.loaded.value, selection, this.host.relevance, trees, trace);
    const icons = await Icons.of(this.host, scene.layer, signal);
    signal.throwIfAborted();
    this.selection = selection;
    this.scene = scene;
    this.lines.icons = this.matrix.icons = icons;
    this.host.fail(null);
    if (isOther) this.lines.scroll = 0;
    this.search.again(this.scene);
    this.mark();
    this.lines.exact = null;
    this.lines.hovered = this.stillThere(this.lines.hovered);
    this.matrix.hovered = null;
    if (selection.token && this.isLines) this.revealPin(selection.token);
    this.draw();
    this.tell();
    await this.complete(signal);
    void askAhead(source, trace, selection, before, signal);
  }

  /** What comes after the first draw: exact numbers of the pinned token, the matrix of a long input. */
  private async complete(signal: AbortSignal): Promise<void> {
    const { scene } = this;
    if (!scene) return;
    const { source } = this.host;
    if (this.isLines) {
      const token = this.lines.pinned;
      if (token && isInexact(scene.loaded, source)) await this.makeExact(token, signal);
    } else if (this.matrix.needsWindows(source)) {
      await this.matrix.loadWindows(source, signal);
      if (signal.aborted) return;
      this.draw();
      this.tell();
    }
  }

  private draw(): void {
    const { scene } = this;
    if (!scene || !this.surface.width || !this.surface.height) return;
    this.form.lay(scene, themeOf(this.element), this.surface.width, this.surface.height);
    this.base = this.surface.raster();
    this.scale = this.surface.scale;
    this.faded = this.front = null;
    this.lines.isMoving = this.surface.isMoving;
    this.form.paint(this.base, this.scale);
    this.drawFocus();
  }

  /** The token in focus changed: the lines that are there only fade, the token's own are drawn over them. */
  drawFocus(): void {
    if (!this.base) return;
    this.surface.show(this.focused(this.base, this.scale, true), this.labels());
  }

  private focused(base: Raster, scale: number, keep = false): Raster {
    const theme = themeOf(this.element);
    if (!this.isLines) {
      const { matrix } = this;
      matrix.painting = this.host.painting ?? null;
      if (!matrix.hovered && !matrix.chosen && !this.selection?.token && !matrix.painting?.count) return base;
      const raster = (keep ? this.front : null) ?? like(base);
      if (keep) this.front = raster;
      matrix.paintFocus(raster.copyFrom(base), scale);
      return raster;
    }
    if (!this.lines.focus) return base;
    const faded = (keep ? this.faded : null) ?? like(base).fadedFrom(base, theme.background, FADE);
    const raster = (keep ? this.front : null) ?? like(base);
    if (keep) [this.faded, this.front] = [faded, raster];
    this.lines.paintFocus(raster.copyFrom(faded), scale);
    return raster;
  }

  private labels(): Label[] {
    return this.form.labels();
  }

  /** What the colours of a difference mean, for a picture that is saved. */
  private signs(): string {
    const { a = "", b = "" } = this.host.trace.difference ?? {};
    return `blue: more in ${a}; orange: more in ${b}`;
  }

  private tell(): void {
    const scene = this.scene as Scene;
    const { form } = scene.selection;
    const legend = legendOf(scene, themeOf(this.element));
    if (scene.unchanged) this.host.say(scene.unchanged, this.notes(scene));
    else if (form === "matrix") {
      const { region } = this.matrix;
      const pooled = this.matrix.pooledBy(this.surface.scale);
      const notes = [...this.notes(scene, this.matrix.isComplete), ...pooledNote(scene, pooled)];
      this.host.say(matrixLine(scene, region), notes, legend);
    } else {
      const { pinned } = this.lines;
      const ends = pinned ? this.lines.endsOf(pinned) : [];
      this.host.say(linesLine(scene, pinned, ends), this.notes(scene), legend);
    }
  }

  /** The first token's share is the one that the head's card shows, where it applies to what is drawn. */
  private notes(scene: Scene, isComplete = false): string[] {
    const { site } = scene.layer;
    const measures = new Measures(this.host.scores);
    const values = scene.selection.heads.map((head) => measures.of(headName(site.site, head), "first_token"));
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    const isPlain = scene.layer.queries.isPlain && scene.layer.keys.isPlain;
    const notes = scene.notes(isComplete, isPlain && !Number.isNaN(mean) ? mean : null);
    return [...notes, ...patchNote([scene.layer.queries, scene.layer.keys])];
  }

  private stillThere(token: Token | null): Token | null {
    if (!token || !this.scene) return null;
    const reading = token.side === "query" ? this.scene.layer.queries : this.scene.layer.keys;
    return token.index < reading.texts.length ? token : null;
  }

  private revealPin(token: Token): void {
    const { scene, surface } = this;
    if (!scene) return;
    this.lines.lay(scene, themeOf(this.element), surface.width, surface.height);
    if (this.lines.pinned) this.lines.reveal(token);
  }

  // Exact numbers

  wantExact(token: Token | null): void {
    this.later.cancel();
    if (!token || !this.scene || !isInexact(this.scene.loaded, this.host.source)) return;
    if (this.lines.exact && same(this.lines.exact.token, token)) return;
    this.later.after(PAUSE, (signal) => this.makeExact(token, signal));
  }

  private async makeExact(token: Token, signal: AbortSignal): Promise<void> {
    const { scene } = this;
    if (!scene) return;
    const reading = token.side === "query" ? scene.layer.queries : scene.layer.keys;
    if (reading.isOff[token.index]) return;
    const of = await exactRow(this.host.source, scene.loaded, token.side, token.index, signal);
    if (signal.aborted || scene !== this.scene) return;
    this.lines.exact = { token, of };
    if (same(this.lines.focus, token)) this.drawFocus();
    if (this.isLines && same(this.lines.pinned, token)) this.tell();
  }

  // Acting

  /** Switch a token off or on, from a given state: two clicks start from before the first. */
  switchToken(token: Token, { off, token: pinned }: Pick<Selection, "off" | "token">): void {
    const next = switched(this.scene as Scene, token, off);
    if (next) this.host.select({ off: next, token: pinned });
  }

  /** While cells are painted, arrows move over them and `p` paints: not everybody has a pointer. */
  private paintedBy(key: string): boolean {
    const { painting } = this.host;
    const { matrix } = this;
    if (this.isLines || !painting) return false;
    const next = nextCell(matrix.hovered, key, matrix.seen());
    if (!next && !(key === "p" && matrix.hovered)) return false;
    if (next) matrix.hovered = next;
    else if (matrix.hovered) {
      painting.begin(matrix.hovered.query, matrix.hovered.key, matrix.brush);
      painting.end();
    }
    this.drawFocus();
    return true;
  }

  private moved(change: Partial<Selection> | null): boolean {
    if (change?.token) this.lines.hovered = null;
    if (change) this.host.select(change, "replace");
    return true;
  }

  private clear(): boolean {
    if (this.search.text) {
      this.find("", 1);
      return true;
    }
    if (this.selection?.token) {
      this.host.select({ token: null });
      return true;
    }
    if (!this.isLines && this.matrix.isZoomed) {
      this.zoomed(() => this.matrix.zoom(null));
      return true;
    }
    return false;
  }

  get page(): number {
    return (this.lines.columns?.room ?? 0) * 0.9;
  }

  scrollBy(distance: number): boolean {
    const { columns } = this.lines;
    if (!this.isLines || !columns?.isLong) return false;
    const scroll = Math.max(0, Math.min(columns.furthest, this.lines.scroll + distance));
    if (scroll !== this.lines.scroll) {
      this.lines.scroll = scroll;
      this.soon();
    }
    return true;
  }

  /** Draw coarsely in the next frame, sharply when nothing moves any more. */
  soon(): void {
    this.surface.move();
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
      if (!this.isLines) this.tell();
    });
  }

  private mark(): void {
    const { tokens, current } = this.search.marked(this.scene as Scene);
    this.lines.find(tokens);
    this.lines.match = current;
    this.matrix.matches = tokens;
  }

  /** Change what the matrix shows; the sharp picture of a long input follows when it is still. */
  zoomed(act: () => void): void {
    act();
    this.matrix.hovered = null;
    this.matrix.chosen = null;
    this.soon();
    this.later.after(PAUSE * 2, async (signal) => {
      if (!this.scene || !this.matrix.needsWindows(this.host.source)) return;
      await this.matrix.loadWindows(this.host.source, signal);
      if (signal.aborted) return;
      this.draw();
      this.tell();
    });
  }
}

function like({ width, height }: Raster): Raster {
  return new Raster(width, height);
}
