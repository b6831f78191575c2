/** Which texts have room beside their points: in order of importance, none over another. */

import type { HeadMap } from "../data/atlasPoints";
import type { Box } from "../marks/cells";
import type { Theme } from "../theme";
import type { Camera, Size } from "./atlasCamera";
import { type AtlasLayout, SIDE as HEAD_SIDE } from "./atlasLayout";
import type { AtlasScene } from "./atlasScene";
import type { Label, Ruler } from "./labels";

export interface Candidate {
  point: number;
  text: string;
  /** On the screen. */
  x: number;
  y: number;
  width: number;
}

export interface PlacedLabel extends Candidate {
  align: "left" | "right";
}

const HEIGHT = 16;
const AWAY = 7; // px from the point
const CELL = 4;

/** A grid of what is taken: whether a box is free costs as many looks as it has cells. */
class Taken {
  private readonly columns: number;
  private readonly rows: number;
  private readonly cells: Uint8Array;

  constructor(private readonly area: Box) {
    this.columns = Math.ceil(area.width / CELL);
    this.rows = Math.ceil(area.height / CELL);
    this.cells = new Uint8Array(this.columns * this.rows);
  }

  /** Take a box, if it is free and wholly inside. */
  take(box: Box): boolean {
    const left = Math.floor((box.x - this.area.x) / CELL);
    const top = Math.floor((box.y - this.area.y) / CELL);
    const right = Math.floor((box.x + box.width - this.area.x) / CELL);
    const bottom = Math.floor((box.y + box.height - this.area.y) / CELL);
    if (left < 0 || top < 0 || right >= this.columns || bottom >= this.rows) return false;
    for (let row = top; row <= bottom; row++)
      for (let column = left; column <= right; column++) if (this.cells[row * this.columns + column]) return false;
    for (let row = top; row <= bottom; row++)
      this.cells.fill(1, row * this.columns + left, row * this.columns + right + 1);
    return true;
  }
}

/** The labels that fit, at the right of their points or else at the left; the first candidates have the choice.
 *  `blocked` are boxes that stay free: legends, other texts. */
export function placeLabels(
  candidates: Iterable<Candidate>,
  area: Box,
  most: number,
  blocked: Box[] = [],
): PlacedLabel[] {
  const taken = new Taken(area);
  for (const box of blocked) takeWhatIsInside(taken, box, area);
  const placed: PlacedLabel[] = [];
  for (const candidate of candidates) {
    if (placed.length >= most) break;
    const { x, y, width } = candidate;
    const top = y - HEIGHT / 2;
    if (taken.take({ x: x + AWAY - 3, y: top, width: width + 3, height: HEIGHT - 1 }))
      placed.push({ ...candidate, align: "left", x: x + AWAY });
    else if (taken.take({ x: x - AWAY - width, y: top, width: width + 3, height: HEIGHT - 1 }))
      placed.push({ ...candidate, align: "right", x: x - AWAY });
  }
  return placed;
}

function takeWhatIsInside(taken: Taken, box: Box, area: Box): void {
  for (let y = Math.max(box.y, area.y); y < box.y + box.height; y += CELL)
    for (let x = Math.max(box.x, area.x); x < box.x + box.width; x += CELL) taken.take({ x, y, width: 0, height: 0 });
}

const SIDE_ROOM = 30; // px at the left for names of layers, and at the top for those of heads
const TOP_ROOM = 18;

/** The names of layers and heads along the edges, where they stay; in a cell itself once it is large. */
export function headingLabels(
  layout: AtlasLayout,
  camera: Camera,
  screen: Size,
  theme: Theme,
  ruler: Ruler,
  drawn: Set<string>,
): Label[] {
  const labels: Label[] = [];
  const small = { size: 11, colour: theme.secondary } as const;
  const gap = (HEAD_SIDE + 10) * camera.zoom;
  for (const { text, kind, x, y } of layout.headings) {
    const at = { x: (x - camera.x) * camera.zoom, y: (y - camera.y) * camera.zoom };
    const width = ruler.width(text, 11);
    if (kind === "row" && gap >= 13 && at.y > TOP_ROOM && at.y < screen.height)
      labels.push({ ...small, text, x: Math.max(width + 6, at.x - 7), y: at.y, align: "right", width: 60 });
    if (kind === "column" && gap >= width + 6 && at.x > SIDE_ROOM && at.x < screen.width)
      labels.push({ ...small, text, x: at.x, y: Math.max(10, at.y - 9), align: "centre", width: 60 });
    if (kind === "title" && gap >= 13)
      labels.push({
        ...small,
        text,
        x: Math.max(6, at.x),
        y: Math.max(10, at.y - 8),
        align: "left",
        width: 300,
        isBold: true,
      });
  }
  const side = HEAD_SIDE * camera.zoom;
  for (const { place, x, y } of layout.cells) {
    const at = { x: (x - camera.x) * camera.zoom, y: (y - camera.y) * camera.zoom };
    if (at.x + side < 0 || at.y + side < 0 || at.x > screen.width || at.y > screen.height) continue;
    const isNamed = side >= 260 || place.head === null;
    if (isNamed)
      labels.push({ ...small, text: place.address, x: at.x + 6, y: at.y + 10, align: "left", width: side - 10 });
    if (!drawn.has(place.address) && side >= 60)
      labels.push({
        ...small,
        text: "no map yet",
        x: at.x + side / 2,
        y: at.y + side / 2,
        align: "centre",
        width: side,
      });
  }
  return labels;
}

const MOST_LOOKED_AT = 1200;
const AREA = 5200; // px² for each label

/** Texts of tokens beside their points: first that in focus, then those that are lit, then others at random. */
export function tokenLabels(
  scene: AtlasScene,
  map: HeadMap,
  at: (point: number) => { x: number; y: number },
  screen: Size,
  theme: Theme,
  ruler: Ruler,
  focus: number,
): { point: number; label: Label }[] {
  const { set } = map;
  const { tokens } = scene.store;
  const area = { x: 0, y: 0, width: screen.width, height: screen.height };
  const candidates: Candidate[] = [];
  const add = (point: number) => {
    const { x, y } = at(point);
    if (x < 0 || y < 0 || x > screen.width || y > screen.height) return;
    const table = tokens[set.stack(point)];
    if (!table || table.has("patch_row")) return;
    const text = table.text(set.row[point] as number);
    if (text.trim()) candidates.push({ point, text, x, y, width: Math.min(140, ruler.width(text, 11)) });
  };
  if (focus >= 0) add(focus);
  const lit = scene.litIn(set);
  for (const point of lit ?? []) if (candidates.length < MOST_LOOKED_AT) add(point);
  const side = scene.sideOf(set);
  const count = side?.length ?? set.count;
  if (!lit) for (let i = 0; i < count && candidates.length < MOST_LOOKED_AT; i++) add(side ? (side[i] as number) : i);
  const most = Math.max(6, Math.round((screen.width * screen.height) / AREA));
  const blocked = [{ x: screen.width - 330, y: 0, width: 330, height: 46 }];
  return placeLabels(candidates, area, most, blocked).map(({ point, text, x, y, align, width }) => ({
    point,
    label: { text, x, y, align, width: width + 2, size: 11, colour: theme.ink, isBold: point === focus },
  }));
}
