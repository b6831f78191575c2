/** The model view: every head of every layer as a small picture, on one screen. */

import type { MapsProps, MethodProps, SiteProps } from "../contract";
import { editedLayerNotes, editedNotes, headNames, isEditedLayer, prunedNotes } from "../data/edited";
import { along, Measures, number, spoken, titleOf } from "../data/measures";
import { mediumOf } from "../data/media";
import { diverging } from "../data/relevance";
import { headName } from "../data/trace";
import { badgeLines, badgeOf, type Verdict, verdictNotes, verdictText } from "../data/trust";
import { fillBox, frame, scaled } from "../marks/boxes";
import { type Box, drawCells, ramp, stretchedRamp } from "../marks/cells";
import type { Raster } from "../marks/raster";
import type { Selection } from "../selection";
import { isAborted } from "../source";
import { between, css, type Rgb, type Theme, themeOf } from "../theme";
import type { Part } from "../wire";
import { blocksOf, type Grid, gridOf, headAt, neighbour, type Place, rankedOf, scrollTo } from "./grid";
import { Icons } from "./icons";
import { type Label, Ruler } from "./labels";
import { type Legend, lineLegend, rootLegend, signedLegend } from "./legend";
import { editedTag, labelsOf, layerBar } from "./modelLabels";
import { exactPairs, isPooled, type Pair, plainly, pooledPairs, toldPair } from "./pairs";
import { paintPruned } from "./pruned";
import { pictureOf, Surface, titled } from "./surface";
import { drawMapLines, drawSignedLines, furthest } from "./thumbnails";
import { badgeBox, badgeLabel, paintBadge, verdictsOf } from "./trustBadges";
import { Updates } from "./updates";
import { type Host, type Mounted, onScreen } from "./view";

const SIZES = [24, 48, 96];
const LEAST = 13; // of a signed byte: a difference of 0.01 has the full colour only where there is none larger

export function mountModel(element: HTMLElement, host: Host): Mounted {
  return new ModelView(element, host);
}

class ModelView implements Mounted {
  private readonly scroller = document.createElement("div");
  private readonly page = document.createElement("div");
  private readonly focusBox = outline();
  private readonly hoverBox = outline();
  private readonly surface: Surface;
  private readonly ruler = new Ruler();
  private selection: Selection | null = null;
  private maps: Part<MapsProps> | null = null;
  private grid: Grid | null = null;
  private measures: Measures;
  private readonly updates: Updates;
  private tipStop = new AbortController();
  private hovered: Place | null = null;
  private pointer = { x: 0, y: 0 };
  private pairs: Pair[] = [];
  private icons: Icons | null = null;

  constructor(
    private readonly element: HTMLElement,
    private readonly host: Host,
  ) {
    this.measures = new Measures(host.scores);
    Object.assign(this.scroller.style, { position: "absolute", inset: "0", overflow: "auto" });
    Object.assign(this.page.style, { position: "relative", minWidth: "100%", minHeight: "100%", cursor: "default" });
    if (getComputedStyle(element).position === "static") element.style.position = "relative";
    this.page.setAttribute("role", "img");
    this.page.setAttribute("aria-label", "Pictures of all heads; the table lists them with their scores");
    this.scroller.append(this.page);
    element.append(this.scroller);
    this.updates = new Updates((problem) => host.fail(problem));
    this.surface = new Surface(this.page, () => this.draw());
    this.page.append(this.hoverBox, this.focusBox);
    this.page.addEventListener("pointermove", (event) => this.point(event));
    this.page.addEventListener("pointerleave", () => this.leave());
    this.page.addEventListener("click", (event) => {
      const place = this.placeAt(event);
      if (place) this.open(place);
    });
    this.scroller.addEventListener("scroll", () => this.leave());
  }

  update(selection: Selection): Promise<void> {
    this.selection = selection;
    return this.updates.begin((signal) => this.show(signal));
  }

  redraw(): void {
    if (!this.selection || !this.maps) return;
    this.draw();
    this.tell();
    // Larger pictures of heads need finer maps; what is there is shown until they come.
    if (this.sizeWanted() !== this.maps.props.size) void this.update(this.selection);
  }

  async picture(): Promise<HTMLCanvasElement> {
    const scale = Math.max(2, window.devicePixelRatio || 1);
    const raster = this.surface.raster(scale);
    this.paint(raster, scale);
    const theme = themeOf(this.element);
    const focus = this.focused();
    if (focus && this.grid) frame(raster, around(focus, this.grid.size, 3, scale), theme.selection, 2 * scale);
    const picture = pictureOf(raster, this.labels(theme), scale);
    const { line, notes } = this.told();
    const model = { text: this.host.trace.model, colour: theme.ink };
    const legend = this.thumbnailLegend(theme);
    return titled(picture, this.host.trace, [model], [line, ...notes].join(" · "), theme, scale, legend);
  }

  numbers(limit: number): ReturnType<Mounted["numbers"]> {
    const places = this.grid?.places ?? [];
    const names = this.measures.methods.map((method) => method.name);
    const verdicts = verdictsOf(this.host.trust);
    const verdict = (name: string) => {
      const known = verdicts.get(name);
      return verdicts.size ? [known ? verdictText(known) : ""] : [];
    };
    const rows = places.slice(0, limit).map(({ site, head }) => {
      const name = headName(site.site, head);
      return [name, site.site, head, ...verdict(name), ...names.map((method) => this.measures.of(name, method))];
    });
    const first = ["head", "layer", "index", ...(verdicts.size ? ["quick set"] : [])];
    return { columns: [...first, ...names], titles: [...first, ...names.map(titleOf)], rows, total: places.length };
  }

  key(event: KeyboardEvent): boolean {
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    const focus = this.focused();
    if (event.key === "Enter" && focus) {
      this.open(focus);
      return true;
    }
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!step || !this.grid) return false;
    const next = focus ? neighbour(this.grid.places, focus, step as [number, number]) : this.grid.places[0];
    if (next) {
      this.host.select({ site: next.site.site, head: next.head, heads: [next.head] }, "replace");
      this.reveal(next);
    }
    return true;
  }

  destroy(): void {
    this.updates.end();
    this.leave();
    this.surface.destroy();
    this.scroller.remove();
  }

  private sizeWanted(): number {
    const pixels = this.layout().size * this.surface.scale;
    return SIZES.find((size) => size >= pixels) ?? 96;
  }

  private async show(signal: AbortSignal): Promise<void> {
    await this.load(signal);
    if (signal.aborted) return;
    this.host.fail(null);
    this.draw();
    this.tell();
  }

  private async load(signal: AbortSignal): Promise<void> {
    this.measures = new Measures(this.host.scores);
    const wanted = this.sizeWanted();
    // A saved page holds one size of maps: whichever it is will do.
    const sizes = this.host.source.isLive
      ? [wanted]
      : [wanted, ...[...SIZES].reverse().filter((size) => size !== wanted)];
    let problem: unknown;
    for (const size of sizes) {
      try {
        const maps = await this.host.source.part<MapsProps>(`maps?size=${size}`, signal);
        if (!signal.aborted) this.maps = maps;
        return;
      } catch (thrown) {
        if (isAborted(thrown)) throw thrown;
        problem ??= thrown;
      }
    }
    throw problem;
  }

  /** Heads in the order they are shown in, without those the filter leaves out. */
  private ranked(method: string): { site: SiteProps; head: number }[] {
    const heads = this.host.trace.layers.flatMap((site) =>
      Array.from({ length: site.n_heads }, (_, head) => ({ site, head, name: headName(site.site, head) })),
    );
    const value = (name: string) => {
      const value = this.measures.of(name, method);
      return Number.isNaN(value) ? Number.NEGATIVE_INFINITY : value;
    };
    return heads.filter(({ name }) => this.passes(name)).sort((a, b) => value(b.name) - value(a.name) || 0);
  }

  private isEdited(name: string): boolean {
    return this.host.trace.edited_heads.includes(name);
  }

  private passes(name: string): boolean {
    const selection = this.selection as Selection;
    const method = selection.colour || selection.sort;
    return selection.least <= 0 || !method || this.measures.share(name, method) >= selection.least;
  }

  private layout(): Grid {
    const { sort, colour } = this.selection as Selection;
    const width = this.scroller.clientWidth;
    const height = this.scroller.clientHeight - (colour ? 26 : 0);
    const grid =
      sort && this.measures.methods.some((method) => method.name === sort)
        ? rankedOf(this.ranked(sort), width, height, blocksOf(this.host.trace.layers).length > 1 ? 72 : 40)
        : gridOf(this.host.trace.layers, width, height, this.measures.methods.length > 0, this.host.trace.other_layers);
    if (colour) {
      for (const place of grid.places) place.y += 26;
      for (const mark of grid.marks) mark.y += 26;
      grid.height += 26;
    }
    return grid;
  }

  private draw(): void {
    if (!this.selection || !this.maps) return;
    this.measures = new Measures(this.host.scores);
    this.grid = this.layout();
    this.page.style.width = `${this.grid.width}px`;
    this.page.style.height = `${this.grid.height}px`;
    const { scale } = this.surface;
    const raster = this.surface.raster();
    this.paint(raster, scale);
    const theme = themeOf(this.element);
    this.surface.show(raster, this.labels(theme));
    this.showFocus(theme);
  }

  private paint(raster: Raster, scale: number): void {
    const theme = themeOf(this.element);
    const { thumbnails, colour } = this.selection as Selection;
    const grid = this.grid as Grid;
    const isSigned = this.host.trace.difference !== null;
    const most = isSigned ? Math.max(LEAST, furthest(this.maps?.arrays ?? {})) : 0;
    const colours = isSigned ? stretchedRamp(theme, most) : ramp(theme);
    raster.fill(theme.background);
    for (const place of grid.places) {
      const map = (this.maps as Part<MapsProps>).arrays[place.site.site];
      const name = headName(place.site.site, place.head);
      const box = around(place, grid.size, 0, scale);
      const share = colour ? this.measures.share(name, colour) : Number.NaN;
      const rim = grid.size >= 36 ? 3 : grid.size >= 20 ? 2 : 1;
      if (colour && this.passes(name)) {
        const tone = Number.isNaN(share) ? theme.line : this.toneOf(theme, this.measures.of(name, colour));
        frame(raster, around(place, grid.size, rim, scale), tone, rim * scale);
      } else frame(raster, around(place, grid.size, 1, scale), theme.line, Math.max(1, Math.round(scale)));
      if (!map) continue;
      if (!this.passes(name)) {
        fillBox(raster, box, theme.background);
        continue;
      }
      const [, rows, columns] = map.shape as [number, number, number];
      const offset = place.head * rows * columns;
      const none = isSigned ? 128 : 0;
      if (thumbnails === "heat") drawCells(raster, map.values as Uint8Array, rows, columns, box, colours, offset, none);
      else {
        fillBox(raster, box, theme.panel);
        if (isSigned) drawSignedLines(raster, map, offset, box, theme, scale, most);
        else drawMapLines(raster, map, offset, box, theme, scale);
      }
      if (this.host.trace.pruned_heads.includes(name)) paintPruned(raster, box, theme, scale);
      if (this.isEdited(name)) {
        frame(raster, around(place, grid.size, 2, scale), theme.warn, 2 * scale);
        fillBox(raster, scaled(editedTag(place, grid.size), scale), theme.warn);
      }
    }
    for (const { box, verdict } of this.badges()) paintBadge(raster, box, verdict, theme, scale);
    this.paintEditedLayers(raster, theme, scale);
    if (colour) this.paintLegend(raster, theme, scale);
  }

  /** A bar beside the row of a layer whose MLP or residual stream was edited; heads in another order have no rows. */
  private paintEditedLayers(raster: Raster, theme: Theme, scale: number): void {
    const grid = this.grid as Grid;
    if (!grid.marks.length) return;
    for (const place of grid.places) {
      if (place.head || !isEditedLayer(this.host.trace, place.site)) continue;
      fillBox(raster, scaled(layerBar(place, grid.size), scale), theme.warn);
    }
  }

  private paintLegend(raster: Raster, theme: Theme, scale: number): void {
    const { x, width } = this.legend();
    const { low, high } = this.coloured() ?? { low: 0, high: 1 };
    for (let i = 0; i < width; i++) {
      const tone = this.toneOf(theme, low + ((high - low) * i) / (width - 1));
      fillBox(raster, { x: (x + i) * scale, y: 14 * scale, width: scale, height: 6 * scale }, tone);
    }
  }

  private coloured(): MethodProps | undefined {
    return this.measures.methods.find((method) => method.name === this.selection?.colour);
  }

  /** The colour of a value of the measure that heads are coloured by; one that has both signs has two colours. */
  private toneOf(theme: Theme, value: number): Rgb {
    const method = this.coloured();
    if (!method) return theme.line;
    if (method.low < 0) return diverging(theme, value, method.low, method.high);
    return between(theme.line, theme.good, along(method, value));
  }

  private legend(): { x: number; width: number } {
    const left = Math.min(...(this.grid as Grid).places.map((place) => place.x));
    return { x: left + this.ruler.width(titleOf(this.selection?.colour ?? ""), 11) + 44, width: 96 };
  }

  /** Where the badges of tested heads are, those that the filter leaves in. */
  private badges(): { box: Box; verdict: Verdict }[] {
    const { places, size } = this.grid as Grid;
    const verdicts = verdictsOf(this.host.trust);
    return places.flatMap((place) => {
      const name = headName(place.site.site, place.head);
      const verdict = verdicts.get(name);
      const box = verdict && this.passes(name) ? badgeBox(place, size, verdict) : null;
      return verdict && box ? [{ box, verdict }] : [];
    });
  }

  private labels(theme: Theme): Label[] {
    const badges = this.badges().map(({ box, verdict }) => badgeLabel(box, verdict, theme));
    const labels = labelsOf({
      grid: this.grid as Grid,
      measures: this.measures,
      selection: this.selection as Selection,
      isDifference: this.host.trace.difference !== null,
      legend: this.selection?.colour ? this.legend() : null,
      ruler: this.ruler,
      theme,
      passes: (name) => this.passes(name),
      isEdited: (name) => this.isEdited(name),
      isEditedLayer: (site) => isEditedLayer(this.host.trace, site),
    });
    return [...labels, ...badges];
  }

  private tell(): void {
    const { line, notes } = this.told();
    this.host.say(line, notes, this.thumbnailLegend(themeOf(this.element)));
  }

  /** What the colours of the heads' pictures mean. */
  private thumbnailLegend(theme: Theme): Legend | null {
    if (!this.maps || !this.selection) return null;
    const isLines = this.selection.thumbnails === "lines";
    if (this.host.trace.difference) {
      const full = (Math.max(LEAST, furthest(this.maps.arrays)) / 127) ** 2;
      const scale = isLines ? "linear" : "square-root";
      return signedLegend(theme, "difference of attention weight, A − B", full, scale);
    }
    if (isLines)
      return lineLegend(theme, "opacity of lines: attention weight", 1, between(theme.panel, theme.ramp[2], 0.6));
    return rootLegend(theme, "attention weight");
  }

  /** What is drawn, in words. */
  private told(): { line: string; notes: string[] } {
    const { trace } = this.host;
    const total = trace.layers.reduce((sum, site) => sum + site.n_heads, 0);
    const count = this.grid?.places.filter((place) => this.passes(headName(place.site.site, place.head))).length ?? 0;
    const tokens = trace.stacks.map(
      (stack) => `${stack.texts.length.toLocaleString("en")}${trace.stacks.length > 1 ? ` ${stack.name}` : ""}`,
    );
    const cells = Object.values(this.maps?.props.cells ?? {}).reduce((most, [a, b]) => Math.max(most, a, b), 1);
    const noun = trace.difference ? "differences" : "weights";
    const notes = cells > 1 ? [`each dot is the strongest of up to ${cells} × ${cells} ${noun}`] : [];
    const { difference } = trace;
    if (difference) {
      const most = furthest(this.maps?.arrays ?? {});
      const full = ((Math.max(LEAST, most) / 127) ** 2).toPrecision(2);
      notes.push(
        most
          ? `full colour: a difference of ${Number(full)}, square-root scale`
          : "both runs attend alike in every head; what heads write may still differ",
      );
      if (this.maps?.props.note) notes.push(this.maps.props.note);
    } else if (this.selection?.thumbnails === "lines") notes.push("lines from a weight of 0.04 on");
    const names = headNames(trace.layers);
    notes.push(...prunedNotes(trace, names, "hatched"), ...editedNotes(trace, names));
    notes.push(...verdictNotes(this.host.trust, names));
    const heads = count < total ? `${count} of ${total} heads` : `${total} heads`;
    return { line: `${heads}, ${tokens.join(" + ")} tokens`, notes };
  }

  private focused(): Place | null {
    const { site, head } = this.selection as Selection;
    return this.grid?.places.find((place) => place.site.site === site && place.head === head) ?? null;
  }

  private showFocus(theme: Theme): void {
    place(this.focusBox, this.focused(), this.grid as Grid, 3, css(theme.selection), 2);
    place(this.hoverBox, this.hovered, this.grid as Grid, 2, css(theme.tertiary), 1);
  }

  private reveal(target: Place): void {
    const { scroller } = this;
    const { scrollLeft, scrollTop, clientWidth, clientHeight } = scroller;
    const view = { x: scrollLeft, y: scrollTop, width: clientWidth, height: clientHeight };
    const { x, y } = scrollTo(target, this.grid as Grid, view);
    if (y !== scrollTop) scroller.scrollTop = y;
    if (x !== scrollLeft) scroller.scrollLeft = x;
  }

  private open({ site, head }: Place): void {
    this.leave();
    this.host.select({ scale: "head", site: site.site, head, heads: [head] });
  }

  private placeAt(event: MouseEvent): Place | null {
    const { left, top } = this.page.getBoundingClientRect();
    const place = this.grid && headAt(this.grid, event.clientX - left, event.clientY - top);
    return place && this.passes(headName(place.site.site, place.head)) ? place : null;
  }

  private point(event: PointerEvent): void {
    const place = this.placeAt(event);
    this.page.style.cursor = place ? "pointer" : "default";
    if (!place) {
      this.leave();
      return;
    }
    const at = { x: event.clientX, y: event.clientY };
    if (place !== this.hovered) {
      this.hovered = place;
      this.tipStop.abort();
      this.tipStop = new AbortController();
      this.showFocus(themeOf(this.element));
      this.pairs = this.maps ? pooledPairs(this.host.trace, this.maps, place) : [];
      this.icons = null;
      void this.illustrate(place, this.tipStop.signal);
      void this.sharpen(place, this.tipStop.signal);
    }
    this.pointer = at;
    this.showTip(place);
  }

  private showTip(target: Place): void {
    const pairs = this.pairs.map((pair) => toldPair(pair, this.icons, this.surface.scale));
    const { size } = this.grid as Grid;
    const around = onScreen(this.page, { x: target.x, y: target.y, width: size, height: size });
    this.host.tip(this.pointer, [...this.describe(target), ...pairs], around);
  }

  private leave(): void {
    if (!this.hovered) return;
    this.hovered = null;
    this.tipStop.abort();
    if (this.grid) this.showFocus(themeOf(this.element));
    this.host.tip(null);
  }

  /** The pairs behind the dots, when the pointer stays. */
  private async sharpen(target: Place, signal: AbortSignal): Promise<void> {
    const { source, trace } = this.host;
    if (!source.isLive || !this.maps || !isPooled(this.maps, target)) return;
    await new Promise((resolve) => setTimeout(resolve, 150));
    if (signal.aborted || !this.maps) return;
    const pairs = await exactPairs(source, trace, this.maps, target, signal).catch(() => null);
    // Where they cannot be had, the stretches that are shown stay: they are true, only less exact.
    if (!pairs || signal.aborted) return;
    this.pairs = pairs;
    this.showTip(target);
  }

  /** The patches that the pairs are about, beside their names. */
  private async illustrate(target: Place, signal: AbortSignal): Promise<void> {
    const { trace } = this.host;
    if (mediumOf(trace, target.site) !== "image") return;
    // Without the picture, as in a page that was saved without it, the names stand alone.
    const icons = await Icons.of(this.host, plainly(trace, target.site), signal).catch(() => null);
    if (!icons || signal.aborted) return;
    this.icons = icons;
    this.showTip(target);
  }

  private describe({ site, head }: Place): string[] {
    const name = headName(site.site, head);
    const { sort, colour } = this.selection as Selection;
    const values = this.measures.striking(name, [sort, colour], 4);
    const { trust } = this.host;
    const badge = badgeOf(trust, name);
    return [
      [name, this.isEdited(name) ? "edited" : "", this.host.trace.pruned_heads.includes(name) ? "pruned" : ""]
        .filter(Boolean)
        .join(", "),
      ...editedLayerNotes(
        this.host.trace.edited_layers.filter(({ stack, layer }) => stack === site.stack && layer === site.layer),
      ),
      ...(badge && trust ? badgeLines(badge, trust) : []),
      ...values.map((value) => `${spoken(value.name)} ${number(value.value)}`),
    ];
  }
}

function around({ x, y }: { x: number; y: number }, size: number, rim: number, scale: number) {
  const side = Math.round((size + 2 * rim) * scale);
  return { x: Math.round((x - rim) * scale), y: Math.round((y - rim) * scale), width: side, height: side };
}

function outline(): HTMLDivElement {
  const box = document.createElement("div");
  Object.assign(box.style, {
    position: "absolute",
    left: "0",
    top: "0",
    pointerEvents: "none",
    boxSizing: "border-box",
  });
  box.hidden = true;
  return box;
}

function place(box: HTMLDivElement, at: Place | null, grid: Grid, rim: number, colour: string, width: number): void {
  box.hidden = !at;
  if (!at) return;
  const side = `${grid.size + 2 * rim}px`;
  Object.assign(box.style, { width: side, height: side, border: `${width}px solid ${colour}` });
  box.style.transform = `translate(${at.x - rim}px, ${at.y - rim}px)`;
}
