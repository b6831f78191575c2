/** The atlas: the queries and keys of a whole corpus as points, every head a small cloud, and one camera over them all. */

import type { AtlasLinesProps, AtlasSelection } from "../contract";
import type { HeadMap } from "../data/atlasPoints";
import { AtlasStore, isNotInAtlas } from "../data/atlasStore";
import { isAborted, problemOf } from "../source";
import type { Part } from "../wire";
import { type Acting, AtlasActs } from "./atlasActs";
import { type DistancePlot, distancePlot, pairTable } from "./atlasDistances";
import { overlayOf } from "./atlasFocus";
import { Glide } from "./atlasGlide";
import type { AtlasHost, AtlasMounted } from "./atlasHost";
import { exampleWith } from "./atlasKeys";
import { LegendBox, legendLine } from "./atlasLegend";
import { EMPTY, type Overlay } from "./atlasOverlay";
import { AtlasPlane } from "./atlasPlane";
import { AtlasPointer } from "./atlasPointer";
import { AtlasScene } from "./atlasScene";
import { SentencePanel } from "./atlasSentence";
import { AtlasStage, type Frame } from "./atlasStage";
import { Thumbnails } from "./atlasThumbnails";
import { titledAtlas } from "./atlasTitle";
import { ToolBox } from "./atlasTools";
import { headTable, matrixWords, pointTable, type Scores, singleWords } from "./atlasWords";
import { Updates } from "./updates";

const LOW = 240; // px: a lower picture has no room for buttons; fingers and keys zoom
const WIDE = 760; // px from which the example is beside the map, not below

export function mountAtlas(element: HTMLElement, host: AtlasHost): AtlasMounted {
  return new AtlasView(element, host);
}

class AtlasView implements AtlasMounted, Acting {
  readonly stage: AtlasStage;
  readonly plane: AtlasPlane;
  readonly thumbnails: Thumbnails;
  scene: AtlasScene | null = null;
  scores: Scores = null;
  plot: DistancePlot | null = null;
  private readonly store: AtlasStore;
  private readonly acts: AtlasActs;
  private readonly legend = new LegendBox();
  private readonly tools: ToolBox;
  private readonly panel: SentencePanel;
  private readonly pointer: AtlasPointer;
  private readonly updates: Updates;
  private readonly glide: Glide;
  private strongest: { place: string; part: Part<AtlasLinesProps> } | null = null;
  private notes: string[] = [];
  private frame = 0;
  /** The next frame differs from the last in the camera's place alone. */
  private isPan = false;

  constructor(
    private readonly element: HTMLElement,
    readonly host: AtlasHost,
  ) {
    this.store = new AtlasStore(host.source, host.atlas);
    this.thumbnails = new Thumbnails(host.source);
    this.plane = new AtlasPlane(host.atlas.places, () => this.draw());
    this.glide = new Glide((map) => {
      if (this.scene) this.scene.gliding = map;
      this.draw();
    });
    if (getComputedStyle(element).position === "static") element.style.position = "relative";
    this.stage = new AtlasStage(element, () => this.draw());
    this.acts = new AtlasActs(this);
    this.tools = new ToolBox({
      grip: (grip) => this.acts.hold(grip),
      zoom: (factor) => this.acts.zoomAt(factor, { x: this.stage.size.width / 2, y: this.stage.size.height / 2 }),
      fit: () => this.fit(),
    });
    this.stage.frame.append(this.legend.element, this.tools.element);
    this.panel = new SentencePanel(host, this.store, (spot) => this.acts.point(spot));
    this.panel.closed = () => {
      this.acts.opensExamples = false;
    };
    this.pointer = new AtlasPointer(this.stage.picture, this.acts);
    this.updates = new Updates((problem) => host.fail(problem));
  }

  update(selection: AtlasSelection): Promise<void> {
    return this.updates.begin((signal) => this.show(selection, signal));
  }

  redraw(): void {
    if (!this.scene) return;
    this.arrange(this.scene);
    this.draw();
    this.tell();
    this.panel.redraw();
  }

  async picture(): Promise<HTMLCanvasElement> {
    const scale = Math.max(2, window.devicePixelRatio || 1);
    const { scene } = this;
    if (!scene) return document.createElement("canvas");
    const { theme } = this.stage;
    const canvas = this.stage.canvas(this.frameOf(scene), this.overlay(), scale);
    const key = this.plot ? null : scene.legend(theme);
    return titledAtlas(canvas, this.host.atlas, this.words(scene), key, theme, scale);
  }

  numbers(limit: number): { columns: string[]; rows: (string | number)[][]; total: number } {
    const { scene } = this;
    if (!scene?.whole) return headTable(this.host.atlas, this.scores, limit);
    return this.plot ? pairTable(scene, this.plot, limit) : pointTable(scene, scene.whole, limit);
  }

  key(event: KeyboardEvent): boolean {
    return this.acts.key(event);
  }

  destroy(): void {
    this.updates.end();
    this.plane.motion.stop();
    this.glide.stop();
    cancelAnimationFrame(this.frame);
    this.host.tip(null);
    this.pointer.destroy();
    this.panel.destroy();
    this.stage.destroy();
  }

  // Loading

  private async show(selection: AtlasSelection, signal: AbortSignal): Promise<void> {
    const before = this.scene?.selection ?? null;
    const scene = this.scene ?? new AtlasScene(this.store, selection);
    const isOther = before !== null && before.place !== selection.place;
    const mapBefore = scene.whole;
    this.host.tip(null);
    this.glide.stop();
    // What is there of the head is enough to set off.
    const ahead = isOther && scene.maps.has(selection.place) ? this.fly(scene, selection.place) : null;
    await Promise.all([scene.load(selection, signal), this.loadMore(selection, signal)]);
    await ahead;
    signal.throwIfAborted();
    this.scene = scene;
    scene.light(this.host.hits, this.acts.picked);
    this.host.fail(null);
    this.arrange(scene);
    if (isOther) await this.arrive(scene, before.place);
    else if (before && mapBefore && scene.whole && before.coordinates !== selection.coordinates && !this.plot)
      await this.glide.run(mapBefore, scene.whole);
    signal.throwIfAborted();
    this.draw();
    this.tell();
    await this.showExample(selection, signal);
    void this.complete(scene, signal);
  }

  private async arrive(scene: AtlasScene, from: string): Promise<void> {
    const { place } = scene.selection;
    this.acts.hovered = -1;
    this.acts.hoveredCell = null;
    this.acts.cursor = this.plane.cellOf(place || from);
    await this.fly(scene, place);
  }

  /** Lines and distances, where they are wanted and where this atlas has them. */
  private async loadMore(selection: AtlasSelection, signal: AbortSignal): Promise<void> {
    const { place, coordinates } = selection;
    this.notes = [];
    const wantsPlot = selection.plot === "distances" && place;
    const plot = wantsPlot ? distancePlot(await this.store.distances(place, coordinates, signal)) : null;
    if (!selection.lines || !place) this.strongest = null;
    else if (this.strongest?.place !== place) {
      await this.optional("lines", async () => {
        this.strongest = { place, part: await this.store.strongestKeys(place, signal) };
      });
    }
    signal.throwIfAborted();
    this.plot = plot;
  }

  /** What an atlas without vectors does not have is said, and the rest is drawn. */
  private async optional(name: string, act: () => Promise<void>): Promise<void> {
    try {
      await act();
    } catch (thrown) {
      if (!isNotInAtlas(thrown)) throw thrown;
      this.notes.push(`${name}: not in this atlas`);
    }
  }

  private async showExample(selection: AtlasSelection, signal: AbortSignal): Promise<void> {
    const example = exampleWith(this.store, selection.place, selection.token);
    if (!selection.sentence || !selection.place || example < 0) return;
    await this.panel.show(selection, example, signal);
    signal.throwIfAborted();
    this.tell();
  }

  /** What may come later: numbers of heads, the heads around the one that is open, pictures of patches. */
  private async complete(scene: AtlasScene, signal: AbortSignal): Promise<void> {
    const { store } = this;
    const { selection } = scene;
    try {
      if (store.atlas.has_scores && !this.scores) {
        this.scores = await store.scores(signal);
        this.tell();
      }
      if (selection.place) await scene.loadAround(selection, signal);
      if (store.atlas.images && selection.place && selection.pictures) {
        const examples = Object.values(store.tokens).flatMap((tokens) => [...new Set(tokens.whole("example"))]);
        await this.thumbnails.load(examples, () => this.soon(), signal);
      }
    } catch (thrown) {
      if (!isAborted(thrown) && !signal.aborted) this.host.fail(problemOf(thrown));
    }
  }

  // Drawing

  /** Give the map and the example their rooms. */
  private arrange(scene: AtlasScene): void {
    const { selection } = scene;
    const { clientWidth: width, clientHeight: height } = this.element;
    const isOpen = selection.sentence && selection.place !== "" && selection.token !== null;
    const { frame } = this.stage;
    const { element } = this.panel;
    if (isOpen && !element.isConnected) this.element.append(element);
    if (!isOpen) element.remove();
    const isBeside = width >= WIDE;
    const taken = !isOpen
      ? 0
      : isBeside
        ? Math.min(620, Math.round(width * 0.44))
        : Math.round(height * (height < 700 ? 0.62 : 0.55));
    frame.style.width = `${isBeside ? width - taken : width}px`;
    frame.style.height = `${isBeside ? height : height - taken}px`;
    const edge = "1px solid var(--line)";
    const beside = { left: `${width - taken}px`, top: "0", width: `${taken}px`, height: "100%" };
    const below = { left: "0", top: `${height - taken}px`, width: "100%", height: `${taken}px` };
    Object.assign(element.style, isBeside ? beside : below, { borderLeft: isBeside ? edge : "0", borderTop: edge });
    this.showLegend(scene);
    this.plane.settle(this.stage.size, scene, this.legend.room);
  }

  private fly(scene: AtlasScene, address: string): Promise<void> {
    return this.plane.fly(this.stage.size, scene, address);
  }

  fit(): void {
    if (this.scene) void this.fly(this.scene, this.scene.selection.place);
  }

  private frameOf(scene: AtlasScene): Frame {
    const { plane } = this;
    const { place, token, pictures } = scene.selection;
    return {
      scene,
      layout: plane.layout,
      camera: plane.camera,
      turn: this.acts.turned,
      single: plane.cellOf(place),
      arrived: plane.motion.isFlying ? Math.min(0.999, plane.motion.progress) : 1,
      plot: this.plot,
      thumbnails: pictures && this.store.atlas.images && place ? this.thumbnails : null,
      focus: token && scene.whole ? scene.whole.set.pointOf(token.role, token.row) : -1,
    };
  }

  private draw(isPan = false): void {
    const { scene, stage } = this;
    if (!scene) return;
    if (this.plane.motion.isFlying || this.glide.isGliding) stage.surface.move();
    stage.draw(this.frameOf(scene), this.overlay(), isPan);
    if (!stage.surface.isMoving) this.showLegend(scene);
    this.held();
  }

  private showLegend(scene: AtlasScene): void {
    this.legend.show(this.plot ? null : scene.legend(this.stage.theme), this.stage.theme);
  }

  held(): void {
    const hasRoom = this.stage.size.height >= LOW;
    this.tools.show(this.acts.grip, this.acts.isSingle, !this.plot && hasRoom);
  }

  soon(isPan = false): void {
    this.stage.surface.move();
    this.isPan = isPan && (this.isPan || !this.frame);
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.draw(this.isPan);
    });
  }

  drawOver(): void {
    this.stage.drawOver(this.overlay());
  }

  relight(): void {
    this.scene?.light(this.host.hits, this.acts.picked);
    this.draw();
    this.tell();
  }

  private overlay(): Overlay {
    const { scene, plane } = this;
    if (!scene || this.plot || plane.motion.isFlying || this.glide.isGliding) return EMPTY;
    const { cursor, hoveredCell, hovered, path, turned } = this.acts;
    const { theme, size, painter } = this.stage;
    const { place } = scene.selection;
    return overlayOf({
      scene,
      layout: plane.layout,
      camera: plane.camera,
      size,
      single: plane.cellOf(place),
      cursor,
      hoveredCell,
      hovered,
      path,
      strongest: this.strongest?.place === place ? this.strongest.part : null,
      theme,
      placesOf: (map: HeadMap) => painter.placesOf(map, turned),
    });
  }

  private words(scene: AtlasScene): { line: string; notes: string[] } {
    const { atlas } = this.host;
    const { place } = scene.selection;
    if (this.plot) return { line: `${place}: distance against logit`, notes: this.notes };
    const words = place ? singleWords(atlas, scene, this.scores) : matrixWords(atlas, scene, scene.maps.size);
    return { ...words, notes: [...words.notes, ...this.notes] };
  }

  private tell(): void {
    const { scene } = this;
    if (!scene) return;
    const { line, notes } = this.words(scene);
    this.host.say(line, notes, null);
    const key = this.plot ? null : scene.legend(this.stage.theme);
    const colours = key && legendLine(key) ? [`Colours: ${legendLine(key)}`] : [];
    this.stage.picture.setAttribute("aria-label", [line, ...colours].join(". "));
  }
}
