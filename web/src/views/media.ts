/** The head view over a picture or along a sound: loads what it needs, follows the pointer and the keys. What is drawn,
 *  the two forms know (`picture.ts`, `time.ts`). */

import { askAhead, type Loaded, loadLayer } from "../data/load";
import { loadPicture, loadRollout, loadSound, opposite, type Picture, type Sound } from "../data/media";
import { hasBoxes, numbersOf, positionsIn, type Region } from "../data/patches";
import type { Plane } from "../data/plane";
import { type Exact, exactRow, isInexact } from "../data/rows";
import { siteOf, stackOf } from "../data/trace";
import type { Box } from "../marks/cells";
import type { Raster } from "../marks/raster";
import type { Selection } from "../selection";
import { themeOf } from "../theme";
import { same, type Token } from "./columns";
import { type Label, Ruler } from "./labels";
import { Later } from "./later";

import type { Legend } from "./legend";
import { nextHead, nextLayer, nextToken } from "./navigation";
import { PictureForm } from "./picture";
import { RegionBar } from "./regionBar";
import { Scene } from "./scene";
import { pictureOf, Surface, titled } from "./surface";
import { strongestFirst } from "./table";
import { TimeForm } from "./time";
import { Updates } from "./updates";
import { type Host, type Mounted, onScreen } from "./view";

const PAUSE = 80; // ms the pointer rests before exact numbers are asked for
const SLACK = 5; // px that a click may move
const VALUES = { pattern: "weight", contribution: "contribution", scores: "score" };

/** One head, the mean of some, or the rollout. */
export interface Panel {
  /** −1 where it is no single head. */
  head: number;
  name: string;
  plane: Plane;
}

/** All that a form draws from. */
export interface Sight {
  scene: Scene;
  selection: Selection;
  panels: Panel[];
  picture: Picture | null;
  sound: Sound | null;
  focus: Token | null;
  /** Where the pointer is, while another token is pinned. */
  beside: Token | null;
  /** What a token gives to (or gets from) those opposite, in one panel. */
  values(panel: Panel, token: Token): Float32Array;
  host: Host;
}

/** Something under the pointer: a token on the side that is looked from (or to), or a head's name. */
export type Spot = { token: Token } | { head: number } | null;

export interface Form {
  lay(sight: Sight, ruler: Ruler, width: number, height: number, element: HTMLElement): void;
  paint(raster: Raster, scale: number): void;
  labels(): Label[];
  hit(x: number, y: number): Spot;
  tip(token: Token, at: { x: number; y: number }): string[];
  /** What is drawn, in words, and what there is to know about it. */
  told(): { line: string; notes: string[] };
  /** What is at a point, where tips must not cover it; null where the point alone counts. */
  boxAt(at: { x: number; y: number }): Box | null;
  /** What the colours mean. */
  legend(): Legend | null;
  wheel?(x: number, y: number, delta: number): boolean;
  /** A part of the picture that is marked by dragging, where that can be. */
  region?: Region | null;
  mark?(from: Point, to: Point): boolean;
}

type Point = { x: number; y: number };

export function mountMedia(element: HTMLElement, host: Host, kind: "image" | "time"): Mounted {
  return new MediaView(element, host, kind === "image" ? new PictureForm() : new TimeForm());
}

class MediaView implements Mounted {
  private readonly surface: Surface;
  private readonly ruler = new Ruler();
  private readonly stage = document.createElement("div");
  private readonly listeners = new AbortController();
  private readonly updates: Updates;
  private readonly later = new Later();
  private frame = 0;
  private loaded: { name: string; value: Loaded } | null = null;
  private wanted: Selection | null = null;
  private scene: Scene | null = null;
  private panels: Panel[] = [];
  private pictureSeen: Picture | null = null;
  private soundSeen: Sound | null = null;
  private hovered: Token | null = null;
  private exact: { token: Token; of: Exact } | null = null;
  /** Where dragging began, until the pointer is released; a click that ends it chooses nothing. */
  private drag: { from: Point; isMarking: boolean } | null = null;
  private readonly bar: RegionBar;

  constructor(
    private readonly element: HTMLElement,
    private readonly host: Host,
    private readonly form: Form,
  ) {
    Object.assign(this.stage.style, { position: "absolute", inset: "0", overflow: "hidden", userSelect: "none" });
    this.stage.setAttribute("role", "group");
    this.stage.setAttribute(
      "aria-label",
      form instanceof PictureForm ? "Attention over the picture" : "Attention over time",
    );
    element.append(this.stage);
    this.updates = new Updates((problem) => host.fail(problem));
    this.surface = new Surface(this.stage, () => this.draw());
    this.bar = new RegionBar(this.stage, () => this.clearRegion());
    this.listen();
  }

  update(selection: Selection): Promise<void> {
    this.wanted = selection;
    return this.updates.begin((signal) => this.show(selection, signal));
  }

  redraw(): void {
    this.draw();
    if (this.scene) this.tell();
  }

  async picture(): Promise<HTMLCanvasElement> {
    const scale = Math.max(2, window.devicePixelRatio || 1);
    const raster = this.surface.raster(scale);
    this.lay();
    this.form.paint(raster, scale);
    const drawn = pictureOf(raster, this.form.labels(), scale);
    const theme = themeOf(this.element);
    const { line, notes } = this.form.told();
    const words = [{ text: this.host.trace.model, colour: theme.ink, isBold: true }];
    return titled(drawn, this.host.trace, words, [line, ...notes].join(" · "), theme, scale, this.form.legend());
  }

  get kept(): number | null {
    const layer = this.loaded?.value.layer;
    return layer && !layer.isWhole ? layer.kept : null;
  }

  numbers(limit: number): { columns: string[]; rows: (string | number)[][]; total: number } {
    const value = VALUES[this.scene?.selection.what ?? "pattern"];
    const columns = ["head", "query position", "query token", "key position", "key token", value];
    if (!this.scene) return { columns, rows: [], total: 0 };
    const { queries, keys } = this.scene.layer;
    const token = this.focus;
    const all = this.panels.flatMap((panel) => {
      const values = token ? this.values(panel, token) : panel.plane.received();
      return strongestFirst(panel.name, values, token, queries.texts, keys.texts);
    });
    return { columns, rows: all.slice(0, limit), total: all.length };
  }

  key(event: KeyboardEvent): boolean {
    const { scene, wanted } = this;
    if (!scene || !wanted || event.ctrlKey || event.metaKey || event.altKey) return false;
    const { layers } = this.host.trace;
    switch (event.key) {
      case "ArrowUp":
        return this.moved(nextToken(this.facing(scene), -1, this.patchesToSkip(scene)));
      case "ArrowDown":
        return this.moved(nextToken(this.facing(scene), 1, this.patchesToSkip(scene)));
      case "ArrowLeft":
        return this.moved(nextHead(layers, wanted, -1));
      case "ArrowRight":
        return this.moved(nextHead(layers, wanted, 1));
      case "[":
        return this.moved(nextLayer(layers, wanted, -1));
      case "]":
        return this.moved(nextLayer(layers, wanted, 1));
      case "Escape":
        if (this.form.region) {
          this.clearRegion();
          return true;
        }
        if (!this.pinned) return false;
        this.host.select({ token: null });
        return true;
      default:
        return false;
    }
  }

  destroy(): void {
    this.updates.end();
    this.later.cancel();
    this.listeners.abort();
    cancelAnimationFrame(this.frame);
    this.host.tip(null);
    this.bar.destroy();
    this.surface.destroy();
    this.stage.remove();
  }

  // Showing

  private async show(selection: Selection, signal: AbortSignal): Promise<void> {
    const { source, trace } = this.host;
    const site = siteOf(trace, selection.site);
    const before = this.scene && this.scene.selection.site !== selection.site ? this.scene.selection.site : null;
    const { what, by, hide, off, step } = selection;
    const name = JSON.stringify([site.site, what, by, hide, off, step]);
    const [value] = await Promise.all([
      this.loaded?.name === name ? this.loaded.value : loadLayer(source, trace, site, selection, signal),
      this.loadLooks(site.key_stack, signal),
    ]);
    const scene = new Scene(value, selection, this.host.relevance, null, trace);
    const panels: Panel[] = selection.rollout
      ? [{ head: -1, name: `rollout to ${site.site}`, plane: await loadRollout(source, site.site, signal) }]
      : scene.drawnHeads;
    signal.throwIfAborted();
    const isOther = this.loaded?.name !== name;
    this.loaded = { name, value };
    this.scene = scene;
    this.panels = panels;
    // The same layer is drawn again when measures have come: the pointer is still where it was.
    if (isOther) this.hovered = this.exact = null;
    if (this.form.region && !hasBoxes(stackOf(trace, site.key_stack), site)) this.form.region = null;
    this.host.fail(null);
    this.draw();
    this.tell();
    if (this.pinned) await this.makeExact(this.pinned, signal);
    void askAhead(source, trace, selection, before, signal);
  }

  private async loadLooks(stack: string, signal: AbortSignal): Promise<void> {
    const { source } = this.host;
    if (this.form instanceof PictureForm) this.pictureSeen ??= await loadPicture(source, stack, signal);
    else this.soundSeen ??= await loadSound(source, stack, signal);
  }

  private get pinned(): Token | null {
    const { scene } = this;
    const token = scene?.selection.token ?? null;
    if (!scene || !token) return null;
    const { texts } = token.side === "query" ? scene.layer.queries : scene.layer.keys;
    return token.index < texts.length ? token : null;
  }

  private get focus(): Token | null {
    return this.pinned ?? this.hovered;
  }

  private values(panel: Panel, token: Token): Float32Array {
    const { exact } = this;
    if (!exact || !same(exact.token, token) || panel.plane !== this.planeOf(panel)) {
      return opposite(panel.plane, token.side, token.index);
    }
    const heads = panel.head < 0 ? (this.scene as Scene).selection.heads : [panel.head];
    const sum = new Float32Array(exact.of(heads[0] as number).length);
    for (const head of heads) {
      exact.of(head).forEach((weight, index) => {
        sum[index] = (sum[index] as number) + weight / heads.length;
      });
    }
    return sum;
  }

  /** The plane of the layer itself, which exact numbers are of; none for a rollout. */
  private planeOf(panel: Panel): Plane | null {
    return (this.scene as Scene).selection.rollout ? null : panel.plane;
  }

  private lay(): void {
    const { scene, surface } = this;
    if (!scene) return;
    const { pinned, hovered } = this;
    const sight: Sight = {
      scene,
      selection: scene.selection,
      panels: this.panels,
      picture: this.pictureSeen,
      sound: this.soundSeen,
      focus: pinned ?? hovered,
      beside: pinned && hovered && !same(pinned, hovered) ? hovered : null,
      values: (panel, token) => this.values(panel, token),
      host: this.host,
    };
    this.form.lay(sight, this.ruler, surface.width, surface.height, this.element);
  }

  private draw(): void {
    if (!this.scene || !this.surface.width || !this.surface.height) return;
    this.lay();
    const raster = this.surface.raster();
    this.form.paint(raster, this.surface.scale);
    this.surface.show(raster, this.form.labels());
  }

  private soon(): void {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
      this.tell();
    });
  }

  /** What the words get from a marked region, and what can be done with it. */
  private showBar(): void {
    const { scene, form, focus } = this;
    if (!scene || !form.region) {
      this.bar.hide();
      return;
    }
    const { site, keys } = scene.layer;
    const stack = stackOf(this.host.trace, site.key_stack);
    const positions = positionsIn(stack, form.region);
    const isWord = focus?.side === "query" && scene.selection.what === "pattern";
    const shares = this.panels.map((panel) => {
      const values = isWord ? this.values(panel, focus) : panel.plane.received();
      return positions.reduce((sum, position) => sum + (values[keys.groupOf[position] ?? -1] || 0), 0);
    });
    this.bar.show({
      region: form.region,
      count: positions.length,
      share: shares.reduce((sum, share) => sum + share, 0) / Math.max(1, shares.length),
      query: isWord ? (scene.layer.queries.members[focus.index]?.[0] ?? null) : null,
      word: isWord ? (scene.layer.queries.texts[focus.index] as string) : "",
      site: site.site,
      heads: this.panels.map(({ name, head }) => (head < 0 ? site.site : name)),
      edit: this.host.edit && !site.no_token_edits ? this.host.edit.bind(this.host) : null,
    });
  }

  private clearRegion(): void {
    this.form.region = null;
    this.draw();
    this.showBar();
  }

  private tell(): void {
    this.showBar();
    const { line, notes } = this.form.told();
    const scene = this.scene as Scene;
    const left = scene.selection.rollout ? [] : scene.notes().filter((note) => !note.startsWith("the first token"));
    if (scene.unchanged && !scene.selection.rollout) left.unshift(scene.unchanged);
    this.host.say(line, [...notes, ...left], this.form.legend());
  }

  // Exact numbers

  private wantExact(token: Token | null): void {
    this.later.cancel();
    if (token) this.later.after(PAUSE, (signal) => this.makeExact(token, signal));
  }

  private async makeExact(token: Token, signal: AbortSignal): Promise<void> {
    const { scene } = this;
    if (!scene || scene.selection.rollout || !isInexact(scene.loaded, this.host.source)) return;
    const reading = token.side === "query" ? scene.layer.queries : scene.layer.keys;
    if (reading.isOff[token.index] || (this.exact && same(this.exact.token, token))) return;
    const of = await exactRow(this.host.source, scene.loaded, token.side, token.index, signal);
    if (signal.aborted || scene !== this.scene) return;
    this.exact = { token, of };
    this.draw();
    this.tell();
  }

  // Acting

  private moved(change: Partial<Selection> | null): boolean {
    if (change) this.host.select(change, "replace");
    return true;
  }

  /** Of a picture within a text the words are walked through, unless a patch is chosen. */
  private patchesToSkip(scene: Scene): ((index: number) => boolean) | undefined {
    const side = scene.selection.direction === "from" ? "query" : "key";
    const reading = side === "query" ? scene.layer.queries : scene.layer.keys;
    const stack = stackOf(this.host.trace, reading.stack);
    if (stack.kind !== "text" || stack.boxes.length !== reading.groupOf.length) return undefined;
    const numbers = numbersOf(stack);
    const isPatch = (index: number) => (numbers[reading.members[index]?.[0] ?? -1] ?? -1) >= 0;
    const { pinned } = this;
    return pinned?.side === side && isPatch(pinned.index) ? undefined : isPatch;
  }

  /** Tokens are walked through on the side that is looked from, or to. */
  private facing(scene: Scene): Scene {
    const side = scene.selection.direction === "from" ? "query" : "key";
    if (scene.selection.token?.side === side) return scene;
    const token = { side, index: -1 } as const;
    return Object.assign(Object.create(Object.getPrototypeOf(scene)), scene, {
      selection: { ...scene.selection, token },
    });
  }

  private listen(): void {
    const { signal } = this.listeners;
    const at = (event: MouseEvent) => {
      const { left, top } = this.stage.getBoundingClientRect();
      return { x: event.clientX - left, y: event.clientY - top };
    };
    this.stage.addEventListener(
      "pointerdown",
      (event) => {
        // A finger scrolls, and what lies over the picture has its own buttons.
        const isOnStage = !this.bar.holds(event.target);
        if (event.button === 0 && event.pointerType !== "touch" && isOnStage) {
          this.drag = { from: at(event), isMarking: false };
        }
      },
      { signal },
    );
    window.addEventListener("pointerup", () => this.drop(), { signal });
    this.stage.addEventListener(
      "pointermove",
      (event) => {
        if (this.bar.holds(event.target)) this.leave();
        else if (!this.dragged(at(event))) this.hover(at(event), event);
      },
      { signal },
    );
    this.stage.addEventListener("pointerleave", () => this.leave(), { signal });
    this.stage.addEventListener("click", (event) => this.bar.holds(event.target) || this.click(at(event)), { signal });
    this.stage.addEventListener(
      "wheel",
      (event) => {
        const { x, y } = at(event);
        if (!this.scene || !this.form.wheel?.(x, y, event.deltaY)) return;
        event.preventDefault();
        this.host.tip(null);
        this.soon();
      },
      { signal, passive: false },
    );
  }

  /** Whether the pointer, held down, marks a part of the picture. */
  private dragged(to: Point): boolean {
    const { drag, form } = this;
    if (!drag || !this.scene || !form.mark) return false;
    if (!drag.isMarking && Math.hypot(to.x - drag.from.x, to.y - drag.from.y) < SLACK) return false;
    if (!form.mark(drag.from, to)) return drag.isMarking;
    drag.isMarking = true;
    this.hovered = null;
    this.stage.style.cursor = "crosshair";
    this.host.tip(null);
    this.soon();
    return true;
  }

  /** The click that follows a drag is its end. */
  private drop(): void {
    if (!this.drag?.isMarking) this.drag = null;
    else window.setTimeout(() => (this.drag = null));
  }

  private hover(at: { x: number; y: number }, event: PointerEvent): void {
    if (!this.scene) return;
    const spot = this.form.hit(at.x, at.y);
    this.stage.style.cursor = spot ? "pointer" : "default";
    const token = spot && "token" in spot ? spot.token : null;
    if (!same(token, this.hovered)) {
      this.hovered = token;
      this.soon();
      if (!this.pinned) this.wantExact(token);
    }
    const lines = token ? this.form.tip(token, at) : [];
    const box = this.form.boxAt(at);
    const around = box && onScreen(this.stage, box);
    this.host.tip(lines.length ? { x: event.clientX, y: event.clientY } : null, lines, around);
  }

  private leave(): void {
    this.host.tip(null);
    if (!this.hovered) return;
    this.hovered = null;
    this.wantExact(null);
    this.soon();
  }

  private click(at: { x: number; y: number }): void {
    const { scene } = this;
    if (!scene || this.drag?.isMarking) return;
    const spot = this.form.hit(at.x, at.y);
    if (spot && "head" in spot) {
      this.host.select({ head: spot.head, heads: scene.selection.heads });
    } else if (spot) {
      this.host.select({ token: same(this.pinned, spot.token) ? null : spot.token });
    } else if (this.pinned) {
      this.host.select({ token: null });
    }
  }
}
