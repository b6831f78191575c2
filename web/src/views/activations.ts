/** Activations: layers down, tokens across. What each layer would predict, or how strong the residual stream is. */

import type { RunEvent } from "../contract";
import { type ActivationsOf, activationsOf, visible, type Window } from "../data/activations";
import { number } from "../data/measures";
import { positionOf, readingOf } from "../data/reading";
import { untilOf, writtenFrom } from "../data/steps";
import { fillBox, frame } from "../marks/boxes";
import { drawCells, ramp } from "../marks/cells";
import type { Raster } from "../marks/raster";
import type { Selection } from "../selection";
import { isAborted, problemOf } from "../source";
import { between, type Rgb, type Theme, themeOf } from "../theme";
import { type Label, Ruler } from "./labels";
import { pictureOf, Surface, titled } from "./surface";
import { type Host, type Mounted, siteOf, stackOf } from "./view";

const MARGIN = 14;
const TOP = 34;
const FOOT = 26;
const READABLE = { width: 46, height: 14 }; // px: cells from here on have text in them
const WIDEST = 110;
const TALLEST = 46;
const TITLES: Record<Selection["stream"], string> = {
  lens: "what each layer would predict",
  norm: "norm of the residual stream",
  attention: "norm of what attention wrote",
  cross: "norm of what cross-attention wrote",
  mlp: "norm of what the MLP wrote",
  cosine: "cosine to the last layer's stream",
};

interface Cell {
  place: number;
  position: number;
}

export function mountActivations(element: HTMLElement, host: Host): Mounted {
  return new ActivationsView(element, host);
}

class ActivationsView implements Mounted {
  private readonly stage = document.createElement("div");
  private readonly surface: Surface;
  private readonly ruler = new Ruler();
  private selection: Selection | null = null;
  private of: ActivationsOf | null = null;
  private unlisten: () => void = () => undefined;
  private scroll = 0;
  private hovered: Cell | null = null;
  private generation = 0;
  private frame = 0;
  private latest: Promise<void> = Promise.resolve();
  private dragged: { x: number; scroll: number } | null = null;

  constructor(
    private readonly element: HTMLElement,
    private readonly host: Host,
  ) {
    Object.assign(this.stage.style, { position: "absolute", inset: "0", overflow: "hidden", userSelect: "none" });
    this.stage.setAttribute("role", "group");
    this.stage.setAttribute("aria-label", "Layers by tokens; the table lists the numbers");
    element.append(this.stage);
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
    const generation = ++this.generation;
    this.latest = this.show(selection, generation)
      .catch((problem) => {
        if (!isAborted(problem) && generation === this.generation) this.host.fail(problemOf(problem));
      })
      .then(() => (generation === this.generation ? undefined : this.latest));
    return this.latest;
  }

  redraw(): void {
    this.draw();
  }

  async picture(): Promise<HTMLCanvasElement> {
    const scale = Math.max(2, window.devicePixelRatio || 1);
    const raster = this.surface.raster(scale);
    this.paint(raster, scale);
    const theme = themeOf(this.element);
    const model = { text: this.host.trace.model, colour: theme.ink };
    const { line, notes } = this.told();
    return titled(pictureOf(raster, this.labels(), scale), [model], [line, ...notes].join(" · "), theme, scale);
  }

  numbers(limit: number): { columns: string[]; rows: (string | number)[][]; total: number } {
    const known = this.of?.any;
    const streams = (["norm", "cosine", "attention", "cross", "mlp"] as const).filter((one) => known?.hasStream(one));
    const columns = [
      "place",
      "position",
      "token",
      ...streams.map(named),
      "prediction",
      "probability",
      "rank of the last prediction",
    ];
    if (!known) return { columns, rows: [], total: 0 };
    const positions = this.pinned === null ? Array.from({ length: this.nTokens }, (_, one) => one) : [this.pinned];
    const rows: (string | number)[][] = [];
    for (let place = 0; place < known.nPlaces && rows.length < limit; place++) {
      for (const position of positions) {
        if (rows.length >= limit) break;
        const here = this.of?.at(position);
        const best = here?.candidates(place, position)[0];
        rows.push([
          known.props.places[place] ?? "",
          position,
          this.texts[position] ?? "",
          ...streams.map((one) => known.value(one, place, position)),
          best?.text ?? "",
          best ? Math.exp(best.logprob) : Number.NaN,
          here ? here.rank(place, position) + 1 : Number.NaN,
        ]);
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
        return this.scrollBy(-0.9 * this.room);
      case "PageDown":
        return this.scrollBy(0.9 * this.room);
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

  destroy(): void {
    this.generation++;
    this.unlisten();
    cancelAnimationFrame(this.frame);
    this.host.tip(null);
    this.surface.destroy();
    this.stage.remove();
  }

  // Showing

  private async show(selection: Selection, generation: number): Promise<void> {
    const { source, trace } = this.host;
    const of = activationsOf(source, siteOf(trace, selection.site).stack);
    const isMoved = selection.token?.index !== this.selection?.token?.index || of !== this.of;
    if (of !== this.of) {
      this.unlisten();
      this.unlisten = of.listen((event) => this.hear(event));
      this.scroll = 0;
      this.hovered = null;
    }
    this.of = of;
    this.selection = selection;
    this.host.fail(null);
    if (isMoved) this.reveal();
    await of.need(...this.wanted());
    if (generation !== this.generation) return;
    if (isMoved) this.reveal();
    this.draw();
    this.tell();
    await of.need(...this.wanted());
    if (generation !== this.generation) return;
    this.draw();
  }

  private hear(event: RunEvent | null): void {
    if (event === null) {
      this.draw();
      return;
    }
    const told = event.of ? `, ${event.done} of ${event.of} layers` : event.ahead ? `, ${event.ahead} ahead` : "";
    this.host.say(`Reading activations${told} …`);
  }

  /** What is seen is wanted. */
  private wanted(): [number, number] {
    if (!this.of?.any) {
      const at = this.pinned ?? 0;
      return [at, at + 1];
    }
    if (this.stream !== "lens" && !this.isReadable) return [this.pinned ?? 0, (this.pinned ?? 0) + 1];
    return this.visible();
  }

  private tell(): void {
    const { line, notes } = this.told();
    this.host.say(line, notes);
  }

  private told(): { line: string; notes: string[] } {
    const known = this.of?.any;
    if (!known) return { line: "", notes: [] };
    const { props } = known;
    const notes: string[] = [];
    const wanted = this.selection?.stream ?? "lens";
    if (wanted === "lens" && props.no_lens) notes.push(`no logit lens: ${props.no_lens}`);
    else if (!known.hasStream(wanted))
      notes.push(`nothing to show of ${named(wanted)}: ${props.no_written || "no such layer"}`);
    if (this.stream === "lens") notes.push("coloured by probability; bold where it is what the last layer predicts");
    else if (this.stream !== "cosine") {
      const [low, high] = this.range();
      notes.push(`${number(low)} to ${number(high)}, log scale`);
    }
    if (["attention", "cross", "mlp"].includes(this.stream)) {
      notes.push(
        props.is_sum
          ? "a layer adds just what these write"
          : "the model normalises between, so a layer's change is not just their sum",
      );
    }
    if (!this.host.source.task && props.count < known.nTokens) {
      const last = props.first + props.count - 1;
      notes.push(`predictions, neurons and heads of tokens ${props.first} to ${last} alone are saved here`);
    }
    return {
      line: `${TITLES[this.stream]}, ${props.layers.length} layers × ${this.nTokens.toLocaleString("en")} tokens`,
      notes,
    };
  }

  // Where things are

  /** What can be drawn of what is asked for. */
  private get stream(): Selection["stream"] {
    const wanted = this.selection?.stream ?? "lens";
    return this.of?.any?.hasStream(wanted) === false ? "norm" : wanted;
  }

  private get stackName(): string {
    return siteOf(this.host.trace, this.selection?.site ?? "").stack;
  }

  private get texts(): string[] {
    return this.selection ? stackOf(this.host.trace, this.stackName).texts : [];
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

  private get left(): number {
    const names = this.of?.any?.props.places ?? ["input"];
    return MARGIN + Math.max(...names.map((one) => this.ruler.width(one, 12))) + 10;
  }

  private get room(): number {
    return Math.max(40, this.surface.width - this.left - MARGIN);
  }

  private get cell(): { width: number; height: number } {
    const rows = this.of?.any?.nPlaces ?? 1;
    const height = Math.max(3, Math.min(TALLEST, (this.surface.height - TOP - FOOT) / rows));
    const even = this.room / Math.max(1, this.nTokens);
    const least = this.stream === "lens" ? READABLE.width : 0;
    return { width: Math.max(least, Math.min(WIDEST, even)), height };
  }

  private get isReadable(): boolean {
    const { width, height } = this.cell;
    return width >= READABLE.width && height >= READABLE.height;
  }

  private get furthest(): number {
    return Math.max(0, this.nTokens * this.cell.width - this.room);
  }

  /** Where the columns begin: at a whole column, so that none is cut. */
  private get origin(): number {
    const { width } = this.cell;
    return Math.min(Math.ceil(this.furthest / width - 1e-6), Math.round(this.scroll / width)) * width;
  }

  private visible(): [number, number] {
    const { width } = this.cell;
    const first = Math.max(0, Math.round(this.origin / width));
    const count = Math.max(1, Math.floor(this.room / width + 1e-6));
    return [first, Math.max(first + 1, Math.min(this.nTokens, first + count))];
  }

  private xOf(position: number): number {
    return this.left + position * this.cell.width - this.origin;
  }

  private hit(event: MouseEvent): Cell | null {
    const box = this.stage.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top;
    const position = Math.floor((x - this.left + this.origin) / this.cell.width);
    const place = Math.floor((y - TOP) / this.cell.height);
    if (x < this.left || position < 0 || position >= this.visible()[1]) return null;
    return place >= (this.of?.any?.nPlaces ?? 0) || y < 0 ? null : { place: Math.max(-1, place), position };
  }

  // Drawing

  private draw(): void {
    if (!this.of?.any || !this.surface.width || !this.surface.height) return;
    this.scroll = Math.max(0, Math.min(this.furthest, this.scroll));
    const raster = this.surface.raster();
    this.paint(raster, this.surface.scale);
    this.surface.show(raster, this.labels());
  }

  private paint(raster: Raster, scale: number): void {
    const theme = themeOf(this.element);
    const known = this.of?.any as Window;
    raster.fill(theme.background);
    const { width, height } = this.cell;
    const [first, last] = this.visible();
    const rows = known.nPlaces;
    const bytes = new Uint8Array(rows * (last - first));
    for (let place = 0; place < rows; place++) {
      for (let position = first; position < last; position++) {
        bytes[place * (last - first) + position - first] = Math.round(255 * this.shade(place, position));
      }
    }
    const box = { x: this.xOf(first), y: TOP, width: (last - first) * width, height: rows * height };
    drawCells(raster, bytes, rows, last - first, sized(box, scale), ramp(theme));
    if (height >= 8)
      for (let place = 1; place < rows; place++)
        fillBox(
          raster,
          sized(
            { x: this.left, y: TOP + place * height - 0.5, width: Math.min(this.room, box.width), height: 1 },
            scale,
          ),
          theme.background,
        );
    if (width >= 8)
      for (let position = first + 1; position < last; position++)
        fillBox(
          raster,
          sized({ x: this.xOf(position) - 0.5, y: TOP, width: 1, height: box.height }, scale),
          theme.background,
        );
    const pinned = this.pinned;
    if (pinned !== null && pinned < this.nTokens)
      this.outline(raster, scale, { x: this.xOf(pinned), y: TOP, width, height: box.height }, theme.accent);
    if (this.hovered && this.hovered.place >= 0) {
      this.outline(
        raster,
        scale,
        { x: this.xOf(this.hovered.position), y: TOP + this.hovered.place * height, width, height },
        theme.ink,
      );
    }
    this.paintBar(raster, scale, theme);
  }

  private outline(raster: Raster, scale: number, box: Box, colour: Rgb): void {
    if (box.x + box.width < this.left || box.x > this.left + this.room) return;
    const x = Math.max(this.left, box.x);
    const inside = { ...box, x, width: Math.max(2, box.x + box.width - x) };
    frame(raster, sized(inside, scale), colour, Math.max(1, Math.round(1.5 * scale)));
  }

  /** Where in the input this is, when not all of it fits. */
  private paintBar(raster: Raster, scale: number, theme: Theme): void {
    if (!this.furthest) return;
    const whole = this.nTokens * this.cell.width;
    const y = this.surface.height - 12;
    fillBox(raster, sized({ x: this.left, y, width: this.room, height: 6 }, scale), theme.line);
    const from = (this.scroll / whole) * this.room;
    fillBox(
      raster,
      sized({ x: this.left + from, y, width: Math.max(18, (this.room / whole) * this.room), height: 6 }, scale),
      theme.tertiary,
      0.7,
    );
  }

  private shade(place: number, position: number): number {
    if (this.stream === "lens") {
      const best = this.of?.at(position)?.candidates(place, position)[0];
      return best ? Math.sqrt(Math.exp(best.logprob)) : 0;
    }
    const value = this.of?.any?.value(this.stream, place, position) ?? Number.NaN;
    if (Number.isNaN(value)) return 0;
    if (this.stream === "cosine") return Math.max(0, Math.min(1, value));
    const [low, high] = this.range();
    if (high <= low) return 0.5;
    return 0.06 + 0.94 * Math.max(0, Math.min(1, Math.log(Math.max(value, low) / low) / Math.log(high / low)));
  }

  private ranges = new Map<string, [number, number]>();

  /** The smallest and the largest number of what is drawn. */
  private range(): [number, number] {
    const { stream } = this;
    const known = this.of?.any;
    if (!known || stream === "lens") return [0, 1];
    const name = `${known.props.stack} ${stream}`;
    const found = this.ranges.get(name);
    if (found) return found;
    let low = Number.POSITIVE_INFINITY;
    let high = 0;
    for (let place = 0; place < known.nPlaces; place++) {
      for (let position = 0; position < known.nTokens; position++) {
        const value = known.value(stream, place, position);
        if (value > 0 && value < low) low = value;
        if (value > high) high = value;
      }
    }
    const range: [number, number] = [Math.min(low, high || 1), high || 1];
    this.ranges.set(name, range);
    return range;
  }

  private labels(): Label[] {
    const known = this.of?.any;
    if (!known) return [];
    const theme = themeOf(this.element);
    const { width, height } = this.cell;
    const [first, last] = this.visible();
    const labels: Label[] = [];
    const right = this.left + this.room;
    const here = this.layerInFocus();
    const every = Math.max(1, Math.ceil(13 / height));
    known.props.places.forEach((name, place) => {
      if (place % every && place !== here + 1) return;
      const y = TOP + (place + 0.5) * height;
      const isHere = place === here + 1;
      labels.push({
        text: name,
        x: this.left - 8,
        y,
        align: "right",
        width: 120,
        size: Math.min(12, height + 3),
        colour: isHere ? theme.ink : theme.secondary,
        isBold: isHere,
      });
    });
    const special = new Set(stackOf(this.host.trace, this.stackName).special);
    const written = writtenFrom(this.host.trace, this.stackName) ?? this.texts.length;
    // Getting it goes through all tokens: once is enough.
    const { pinned } = this;
    const isNumbered = width < READABLE.width;
    const step = isNumbered ? round(READABLE.width / width) : 1;
    const pinnedAt = pinned === null ? Number.NEGATIVE_INFINITY : this.xOf(pinned);
    for (let position = first; position < last; position++) {
      const isPinned = position === pinned;
      if (isNumbered && !isPinned && position % step) continue;
      const x = this.xOf(position) + (isNumbered ? 0 : width / 2);
      if (x < this.left - 2 || x > right) continue;
      // Numbers make room for the token in focus, and end with the picture.
      if (isNumbered && !isPinned && (Math.abs(x - pinnedAt) < READABLE.width || x > right - 30)) continue;
      const text = isNumbered && !isPinned ? String(position) : (this.texts[position] ?? String(position));
      const isWritten = position >= written;
      const colour = isPinned ? theme.accent : special.has(position) || isNumbered ? theme.tertiary : theme.ink;
      labels.push({
        text,
        x: isNumbered && isPinned ? Math.min(x, right - READABLE.width) : x,
        y: TOP / 2 + 2,
        align: isNumbered ? "left" : "centre",
        width: Math.max(width - 6, READABLE.width - 6),
        size: isNumbered ? 11 : 13,
        colour,
        isBold: isPinned,
        isWritten,
      });
    }
    if (!this.isReadable) return labels;
    const [, half, full] = theme.ramp;
    for (let position = first; position < last; position++) {
      const x = this.xOf(position) + width / 2;
      if (x < this.left + 4 || x > right + width / 2) continue;
      for (let place = 0; place < known.nPlaces; place++) {
        const { text, isBold } = this.words(place, position);
        if (!text) continue;
        const shade = this.shade(place, position);
        const fill = shade < 0.5 ? between(theme.ramp[0], half, shade * 2) : between(half, full, shade * 2 - 1);
        labels.push({
          text,
          x,
          y: TOP + (place + 0.5) * height,
          align: "centre",
          width: width - 8,
          size: Math.min(12, height - 2),
          colour: contrast(fill),
          isBold,
        });
      }
    }
    return labels;
  }

  private words(place: number, position: number): { text: string; isBold: boolean } {
    if (this.stream !== "lens") {
      const value = this.of?.any?.value(this.stream, place, position) ?? Number.NaN;
      return { text: Number.isNaN(value) ? "" : number(value), isBold: false };
    }
    const here = this.of?.at(position);
    const best = here?.candidates(place, position)[0];
    return best
      ? { text: visible(best.text), isBold: here?.rank(place, position) === 0 }
      : { text: this.host.source.task ? "…" : "", isBold: false };
  }

  /** The row of the layer in focus, −1 where it is of another stack. */
  private layerInFocus(): number {
    const site = siteOf(this.host.trace, this.selection?.site ?? "");
    return site.layer;
  }

  // Acting

  private point(event: PointerEvent): void {
    if (this.dragged) {
      const whole = this.nTokens * this.cell.width;
      this.scroll = this.dragged.scroll + ((event.clientX - this.dragged.x) * whole) / this.room;
      this.soon();
      return;
    }
    const cell = this.hit(event);
    if (cell?.place === this.hovered?.place && cell?.position === this.hovered?.position) return;
    this.hovered = cell;
    this.stage.style.cursor = cell ? "pointer" : "default";
    this.draw();
    if (cell) this.host.tip({ x: event.clientX, y: event.clientY }, this.tipOf(cell));
    else this.host.tip(null);
  }

  private leave(): void {
    if (!this.hovered) return;
    this.hovered = null;
    this.host.tip(null);
    this.draw();
  }

  private press(event: PointerEvent): void {
    const y = event.clientY - this.stage.getBoundingClientRect().top;
    if (!this.furthest || y < this.surface.height - FOOT) return;
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
    if (!this.furthest || event.ctrlKey) return;
    event.preventDefault();
    this.scrollBy(Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : event.deltaY);
  }

  private tipOf({ place, position }: Cell): string[] {
    const known = this.of?.any;
    if (!known) return [];
    const token = `${visible(this.texts[position] ?? "")}, token ${position}`;
    if (place < 0) return [token];
    const name = known.props.places[place] ?? "";
    const lines = [`${token}, ${place ? `after ${name}` : "before the first layer"}`];
    for (const stream of ["norm", "cosine", "attention", "cross", "mlp"] as const) {
      const value = known.value(stream, place, position);
      if (known.hasStream(stream) && !Number.isNaN(value)) lines.push(`${named(stream)}  ${number(value)}`);
    }
    const here = this.of?.at(position);
    for (const one of here?.candidates(place, position) ?? []) {
      lines.push(`${visible(one.text)}  ${(100 * Math.exp(one.logprob)).toFixed(1)} %`);
    }
    const rank = here?.rank(place, position) ?? Number.NaN;
    if (!Number.isNaN(rank)) lines.push(`the last layer's answer is number ${rank + 1} here`);
    return lines;
  }

  private siteOfLayer(layer: number): string | null {
    const { layers } = this.host.trace;
    return (
      layers.find((one) => one.stack === this.stackName && one.kind === "self" && one.layer === layer)?.site ?? null
    );
  }

  /** Put a token into focus, tokens being read one by one. */
  private pick(position: number, site: string | null = null): void {
    const { selection } = this;
    if (!selection) return;
    const stack = stackOf(this.host.trace, this.stackName);
    const isPlain = readingOf(stack, stack.texts.length, selection).isPlain;
    const plain: Partial<Selection> = isPlain ? {} : { by: "tokens", hide: [], off: [] };
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
    const { width } = this.cell;
    const at = pinned * width;
    if (at < this.scroll || at + width > this.scroll + this.room) this.scroll = Math.max(0, at - this.room / 2);
  }

  private scrollBy(distance: number): boolean {
    if (!this.furthest) return false;
    this.scroll = Math.max(0, Math.min(this.furthest, this.scroll + distance));
    this.soon();
    return true;
  }

  private soon(): void {
    this.surface.move();
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
      const generation = this.generation;
      this.of?.need(...this.wanted()).then(
        () => generation === this.generation && this.tell(),
        (problem) => {
          if (!isAborted(problem) && generation === this.generation) this.host.fail(problemOf(problem));
        },
      );
    });
  }
}

interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

function sized({ x, y, width, height }: Box, scale: number): Box {
  return { x: x * scale, y: y * scale, width: width * scale, height: height * scale };
}

/** The next of 1, 2, 5, 10, 20, … */
function round(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  return ([1, 2, 5].find((one) => one * power >= least) ?? 10) * power;
}

function named(stream: string): string {
  const names: Record<string, string> = {
    cosine: "cosine to last",
    attention: "written by attention",
    cross: "written by cross-attention",
    mlp: "written by the MLP",
  };
  return names[stream] ?? stream;
}

/** Ink or paper, whichever is read better on a colour. */
function contrast([red, green, blue]: Rgb): Rgb {
  return 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? [28, 29, 31] : [255, 255, 255];
}
