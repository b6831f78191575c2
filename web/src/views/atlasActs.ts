/** What the user does to the picture of the atlas, by pointer or by key: it moves, something is lit, the selection changes. */

import type { AtlasSelection, AtlasSpot } from "../contract";
import type { Turn } from "../marks/orbit";
import { PointIndex } from "../marks/pointIndex";
import { FULL } from "../marks/points";
import { seenBox, under } from "./atlasCamera";
import { type DistancePlot, pairLines, plotBox } from "./atlasDistances";
import type { AtlasHost, PickedPoints } from "./atlasHost";
import { arrowOf, moved, nextSpot } from "./atlasKeys";
import { type Cell, cellAt } from "./atlasLayout";
import type { Spot } from "./atlasOverlay";
import type { AtlasPlane } from "./atlasPlane";
import type { Handled } from "./atlasPointer";
import type { AtlasScene } from "./atlasScene";
import type { AtlasStage } from "./atlasStage";
import type { Thumbnails } from "./atlasThumbnails";
import type { Grip } from "./atlasTools";
import { headTip, pointLines, type Scores } from "./atlasWords";
import { onScreen, type TipLine } from "./view";

const REACH = 10; // px about the pointer
const STEP = 60; // px that a key moves
const ICON = 36;

/** What the acts change. */
export interface Acting {
  readonly host: AtlasHost;
  readonly stage: AtlasStage;
  readonly plane: AtlasPlane;
  readonly thumbnails: Thumbnails;
  readonly scene: AtlasScene | null;
  readonly scores: Scores;
  readonly plot: DistancePlot | null;
  /** Draw in the next frame, coarsely until it is still. `isPan`: nothing but the camera's place has changed. */
  soon(isPan?: boolean): void;
  drawOver(): void;
  /** What is lit has changed. */
  relight(): void;
  fit(): void;
  held(): void;
}

export class AtlasActs implements Handled {
  grip: Grip = "move";
  turned: Turn = { around: 0.5, up: 0.35 };
  cursor: Cell | null = null;
  hoveredCell: Cell | null = null;
  hovered = -1;
  path: Spot[] = [];
  picked: PickedPoints[] = [];
  /** A click on a point opens its example, until the user closes one. */
  opensExamples = true;
  private index: { of: Uint32Array; turn: Turn; index: PointIndex } | null = null;

  constructor(private readonly view: Acting) {}

  get isSingle(): boolean {
    return !!this.view.scene?.selection.place;
  }

  get isSolid(): boolean {
    return this.view.scene?.selection.dims === 3 && !this.view.plot;
  }

  pan(across: number, down: number): void {
    if (this.view.plot) return;
    this.view.plane.pan(this.view.stage.size, across, down);
    this.view.soon(true);
  }

  turn(across: number, down: number): void {
    const { around, up } = this.turned;
    const limit = Math.PI / 2;
    this.turned = { around: around + across * 0.008, up: Math.min(limit, Math.max(-limit, up + down * 0.008)) };
    this.view.soon();
  }

  zoomAt(factor: number, at: Spot): void {
    const { scene, plane, stage, host } = this.view;
    if (!scene || this.view.plot) return;
    const address = plane.zoomAt(stage.size, scene, factor, at);
    this.hover(null, null);
    this.view.soon();
    if (address !== null) host.select({ place: address });
  }

  hover(at: Spot | null, event: PointerEvent | null): void {
    const { scene, plane, stage, host, plot } = this.view;
    const lines = at && scene && !plane.motion.isFlying ? this.linesAt(scene, at) : [];
    const tip = event && lines.length ? { x: event.clientX, y: event.clientY } : null;
    const cell = !this.isSingle && this.hoveredCell;
    host.tip(tip, lines, cell ? onScreen(stage.picture, seenBox(plane.camera, cell)) : null);
    const isGrip = this.isSingle && this.grip !== "move" && !plot;
    stage.picture.style.cursor = lines.length ? "pointer" : isGrip ? "crosshair" : "default";
  }

  /** What is said of what lies under a point of the screen; it is marked. */
  private linesAt(scene: AtlasScene, at: Spot): TipLine[] {
    const { plane, plot, stage, scores } = this.view;
    if (plot) return pairLines(scene, plot, plotBox(stage.size), at);
    if (!this.isSingle) {
      const { x, y } = under(plane.camera, at);
      const cell = cellAt(plane.layout, x, y);
      if (cell !== this.hoveredCell) {
        this.hoveredCell = cell;
        this.view.drawOver();
      }
      return cell ? headTip(scene, scores, cell.place.address) : [];
    }
    this.mark(this.pointAt(at));
    if (this.hovered < 0 || !scene.whole) return [];
    const lines: TipLine[] = pointLines(scene, scene.whole, this.hovered);
    const { set } = scene.whole;
    const tokens = scene.store.tokens[set.stack(this.hovered)];
    const icon = tokens && this.view.thumbnails.image(tokens, set.row[this.hovered] as number, ICON);
    return icon ? [[icon], ...lines] : lines;
  }

  click(at: Spot): void {
    const { scene, plane, host, plot } = this.view;
    if (!scene || plot || plane.motion.isFlying) return;
    if (!this.isSingle) {
      const { x, y } = under(plane.camera, at);
      const cell = cellAt(plane.layout, x, y);
      if (cell && scene.maps.has(cell.place.address)) host.select({ place: cell.place.address });
      return;
    }
    const point = this.pointAt(at);
    if (point >= 0 && scene.whole) this.choose(spotOf(scene, point));
    else if (this.picked.length) this.pick([]);
    else if (scene.selection.token) host.select({ token: null, sentence: false });
  }

  doubleClick(at: Spot): void {
    const { scene, plane } = this.view;
    if (!scene || !this.isSingle || plane.motion.isFlying) return;
    const point = this.pointAt(at);
    if (point < 0) this.view.fit();
    else {
      this.opensExamples = true;
      this.choose(spotOf(scene, point));
    }
  }

  draw(path: Spot[]): void {
    this.path = path;
    this.view.drawOver();
  }

  /** Select the points within a path; with Control, beside those that are selected. */
  select(path: Spot[], isMore: boolean): void {
    const { scene, plane } = this.view;
    const cell = scene && plane.cellOf(scene.selection.place);
    if (!scene?.whole || !cell) return;
    const square = seenBox(plane.camera, cell);
    const corners = path.flatMap(({ x, y }) => [
      ((x - square.x) / square.width) * FULL,
      ((y - square.y) / square.height) * FULL,
    ]);
    const { set } = scene.whole;
    const isShown = this.shownIn(scene);
    const points = this.indexOf(scene)?.inLasso(corners).filter(isShown) ?? [];
    const before = isMore ? (this.picked.length ? (scene.litIn(set) ?? []) : []) : [];
    const all = [...new Set([...before, ...points])];
    this.pick(
      set.clouds
        .map(({ role, stack }, index) => {
          const rows = all.filter((point) => set.cloud[point] === index).map((point) => set.row[point] as number);
          return { role, stack, rows: Int32Array.from(rows).sort() };
        })
        .filter(({ rows }) => rows.length),
    );
  }

  /** A point that is marked elsewhere, as in the example beside. */
  point(spot: AtlasSpot | null): void {
    const { scene } = this.view;
    this.mark(spot && scene?.whole ? scene.whole.set.pointOf(spot.role, spot.row) : -1);
  }

  key(event: KeyboardEvent): boolean {
    const { stage, scene } = this.view;
    if (!scene || event.ctrlKey || event.metaKey || event.altKey) return false;
    const arrow = arrowOf(event.key);
    if (arrow) return this.arrowed(scene, arrow, event.shiftKey);
    const middle = { x: stage.size.width / 2, y: stage.size.height / 2 };
    switch (event.key) {
      case "Enter":
        return this.entered(scene);
      case "Escape":
        return this.escaped(scene);
      case "+":
      case "=":
        this.zoomAt(1.5, middle);
        return true;
      case "-":
        this.zoomAt(1 / 1.5, middle);
        return true;
      case "0":
        this.view.fit();
        return true;
      case "[":
      case "]":
        return this.stepped(scene, event.key === "]" ? 1 : -1);
      case "m":
      case "l":
      case "b":
        this.hold(({ m: "move", l: "lasso", b: "box" } as const)[event.key]);
        return true;
      default:
        return false;
    }
  }

  hold(grip: Grip): void {
    this.grip = grip;
    this.view.held();
  }

  private arrowed(scene: AtlasScene, arrow: [number, number], isShift: boolean): boolean {
    const { plane, host } = this.view;
    if (isShift && this.isSingle) {
      if (this.isSolid) this.turn(arrow[0] * 25, arrow[1] * 25);
      else this.pan(-arrow[0] * STEP, -arrow[1] * STEP);
      return true;
    }
    const from = this.isSingle ? plane.cellOf(scene.selection.place) : this.cursor;
    const next = moved(plane.layout, from, arrow);
    if (!next) return true;
    this.cursor = next;
    if (this.isSingle) {
      if (next !== from) host.select({ place: next.place.address }, "replace");
    } else {
      host.say(headTip(scene, this.view.scores, next.place.address).join(", "));
      this.view.drawOver();
    }
    return true;
  }

  private entered(scene: AtlasScene): boolean {
    const { host } = this.view;
    if (!this.isSingle) {
      const address = this.cursor?.place.address;
      if (address && scene.maps.has(address)) host.select({ place: address });
      return address !== undefined;
    }
    if (!scene.selection.token) return false;
    host.select({ sentence: !scene.selection.sentence });
    return true;
  }

  private escaped(scene: AtlasScene): boolean {
    const { host } = this.view;
    const { selection } = scene;
    if (this.path.length) this.draw([]);
    else if (selection.sentence && selection.token && this.isSingle) host.select({ sentence: false });
    else if (this.picked.length) this.pick([]);
    else if (selection.token && this.isSingle) host.select({ token: null });
    else if (this.isSingle) host.select({ place: "" });
    else return false;
    return true;
  }

  /** The token before or after, in the same example. */
  private stepped({ store, selection }: AtlasScene, step: 1 | -1): boolean {
    const token = this.isSingle ? nextSpot(store, selection, step) : null;
    if (token) this.view.host.select({ token }, "replace");
    return token !== null;
  }

  private choose(spot: AtlasSpot): void {
    const { host, scene } = this.view;
    const hasExample = host.atlas.space === "query_key" && (host.atlas.has_vectors || host.open !== undefined);
    const change: Partial<AtlasSelection> = { token: spot };
    if (hasExample && this.opensExamples) change.sentence = true;
    const { token } = scene?.selection ?? { token: null };
    const isSame = token?.role === spot.role && token.row === spot.row && scene?.selection.sentence;
    if (!isSame) host.select(change);
  }

  private pick(picked: PickedPoints[]): void {
    this.picked = picked;
    this.view.relight();
    this.view.host.picked(picked);
  }

  private mark(point: number): void {
    if (point === this.hovered) return;
    this.hovered = point;
    this.view.drawOver();
  }

  private pointAt(at: Spot): number {
    const { scene, plane } = this.view;
    const cell = scene && plane.cellOf(scene.selection.place);
    if (!scene?.whole || !cell) return -1;
    const { x, y } = under(plane.camera, at);
    const radius = (REACH / plane.camera.zoom / cell.width) * FULL;
    const index = this.indexOf(scene);
    const place = [((x - cell.x) / cell.width) * FULL, ((y - cell.y) / cell.height) * FULL] as const;
    return index ? index.nearest(...place, radius, this.shownIn(scene)) : -1;
  }

  /** Whether a point is of a role that is shown. */
  private shownIn(scene: AtlasScene): (point: number) => boolean {
    const { set } = scene.whole as NonNullable<AtlasScene["whole"]>;
    const { side } = scene.selection;
    const isShown = set.clouds.map(({ role }) => side === "both" || role === side || !["query", "key"].includes(role));
    return (point) => isShown[set.cloud[point] as number] as boolean;
  }

  /** An index of the points where they are seen now. */
  private indexOf(scene: AtlasScene): PointIndex | null {
    if (!scene.whole) return null;
    const places = this.view.stage.painter.placesOf(scene.whole, this.turned);
    if (this.index?.of !== places || (scene.whole.solid && this.index.turn !== this.turned))
      this.index = { of: places, turn: this.turned, index: new PointIndex(places) };
    return this.index.index;
  }
}

function spotOf({ whole }: AtlasScene, point: number): AtlasSpot {
  const { set } = whole as NonNullable<AtlasScene["whole"]>;
  return { role: set.role(point) as AtlasSpot["role"], row: set.row[point] as number };
}
