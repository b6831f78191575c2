/** The picture of the activations view: cells, what is in focus, and the words over them. */

import { visible } from "../data/activations";
import { fillBox, frame } from "../marks/boxes";
import { type Box, drawCells, ramp, signedRamp } from "../marks/cells";
import type { Raster } from "../marks/raster";
import { between, type Rgb, type Theme } from "../theme";
import type { Cells } from "./activationsCells";
import { type Cell, type Layout, READABLE, TOP } from "./activationsLayout";
import type { Label, Ruler } from "./labels";
import { roundStep } from "./ticks";

export interface Content {
  cells: Cells;
  layout: Layout;
  places: string[];
  /** All tokens of the stack, and those of them that are special. */
  texts: string[];
  special: ReadonlySet<number>;
  /** Those that an edit put there. */
  replaced: ReadonlySet<number>;
  /** From which position on the model wrote them itself. */
  written: number;
  pinned: number | null;
  hovered: Cell | null;
  /** The place of the layer in focus. */
  here: number;
  /** The places whose MLP or residual stream an edit changed. */
  edited: ReadonlySet<number>;
}

export function paint(raster: Raster, scale: number, theme: Theme, content: Content): void {
  const { cells, layout, places, pinned, hovered } = content;
  raster.fill(theme.background);
  const { width, height } = layout.cell;
  const [first, last] = layout.visible;
  const rows = places.length;
  const none = cells.isSigned ? 128 : 0;
  const bytes = new Uint8Array(rows * (last - first));
  for (let place = 0; place < rows; place++) {
    for (let position = first; position < last; position++) {
      const shade = cells.shade(place, position);
      bytes[place * (last - first) + position - first] = none + Math.round((cells.isSigned ? 127 : 255) * shade);
    }
  }
  const box = { x: layout.xOf(first), y: TOP, width: (last - first) * width, height: rows * height };
  const colours = cells.isSigned ? signedRamp(theme) : ramp(theme);
  drawCells(raster, bytes, rows, last - first, sized(box, scale), colours, 0, none);
  const gap = (line: Box) => fillBox(raster, sized(line, scale), theme.background);
  if (height >= 8)
    for (let place = 1; place < rows; place++)
      gap({ x: layout.left, y: layout.yOf(place) - 0.5, width: Math.min(layout.room, box.width), height: 1 });
  if (width >= 8)
    for (let position = first + 1; position < last; position++)
      gap({ x: layout.xOf(position) - 0.5, y: TOP, width: 1, height: box.height });
  if (pinned !== null && pinned < layout.shape.nTokens)
    outline(raster, scale, layout, { x: layout.xOf(pinned), y: TOP, width, height: box.height }, theme.selection);
  if (hovered && hovered.place >= 0) {
    const at = { x: layout.xOf(hovered.position), y: layout.yOf(hovered.place), width, height };
    outline(raster, scale, layout, at, theme.ink);
  }
  if (hovered?.place === -1)
    outline(raster, scale, layout, { x: layout.xOf(hovered.position), y: TOP, width, height: box.height }, theme.ink);
  paintBar(raster, scale, theme, layout);
}

export function labels(theme: Theme, ruler: Ruler, content: Content): Label[] {
  const texts = [...placeLabels(theme, content), ...tokenLabels(theme, content)];
  return content.layout.isReadable ? [...texts, ...cellLabels(theme, ruler, content)] : texts;
}

function outline(raster: Raster, scale: number, layout: Layout, box: Box, colour: Rgb): void {
  if (box.x + box.width < layout.left || box.x > layout.left + layout.room) return;
  const x = Math.max(layout.left, box.x);
  const inside = { ...box, x, width: Math.max(2, box.x + box.width - x) };
  frame(raster, sized(inside, scale), colour, Math.max(1, Math.round(1.5 * scale)));
}

/** Where in the input this is, when not all of it fits. */
function paintBar(raster: Raster, scale: number, theme: Theme, layout: Layout): void {
  if (!layout.furthest) return;
  const { left, room } = layout;
  const whole = layout.shape.nTokens * layout.cell.width;
  const y = layout.shape.height - 12;
  fillBox(raster, sized({ x: left, y, width: room, height: 6 }, scale), theme.line);
  const from = (layout.clamped(layout.scroll) / whole) * room;
  const bar = { x: left + from, y, width: Math.max(18, (room / whole) * room), height: 6 };
  fillBox(raster, sized(bar, scale), theme.tertiary, 0.7);
}

function placeLabels(theme: Theme, { layout, places, here, edited }: Content): Label[] {
  const { height } = layout.cell;
  const every = Math.max(1, Math.ceil(13 / height));
  return places.flatMap((text, place) => {
    const isHere = place === here;
    const isEdited = edited.has(place);
    if (place % every && !isHere && !isEdited) return [];
    return {
      text,
      x: layout.left - 8,
      y: layout.yOf(place + 0.5),
      align: "right" as const,
      width: 120,
      size: Math.min(12, height + 3),
      colour: isEdited ? theme.warn : isHere ? theme.ink : theme.secondary,
      isBold: isHere || isEdited,
      isEdited,
    };
  });
}

function tokenLabels(theme: Theme, { layout, texts, special, replaced, written, pinned }: Content): Label[] {
  const { width } = layout.cell;
  const right = layout.left + layout.room;
  const isNumbered = width < READABLE.width;
  const step = isNumbered ? roundStep(READABLE.width / width) : 1;
  const pinnedAt = pinned === null ? Number.NEGATIVE_INFINITY : layout.xOf(pinned);
  const labels: Label[] = [];
  for (let position = layout.visible[0]; position < layout.visible[1]; position++) {
    const isPinned = position === pinned;
    if (isNumbered && !isPinned && position % step) continue;
    const x = layout.xOf(position) + (isNumbered ? 0 : width / 2);
    if (x < layout.left - 2 || x > right) continue;
    // Numbers make room for the token in focus, and end with the picture.
    if (isNumbered && !isPinned && (Math.abs(x - pinnedAt) < READABLE.width || x > right - 30)) continue;
    const isQuiet = special.has(position) || isNumbered;
    labels.push({
      text: isNumbered && !isPinned ? String(position) : (texts[position] ?? String(position)),
      x: isNumbered && isPinned ? Math.min(x, right - READABLE.width) : x,
      y: TOP / 2 + 2,
      align: isNumbered ? "left" : "centre",
      width: Math.max(width - 6, READABLE.width - 6),
      size: isNumbered ? 11 : 13,
      colour: isPinned ? theme.selection : replaced.has(position) ? theme.warn : isQuiet ? theme.tertiary : theme.ink,
      isBold: isPinned,
      isEdited: replaced.has(position) && !isNumbered,
      isWritten: position >= written,
    });
  }
  return labels;
}

function cellLabels(theme: Theme, ruler: Ruler, { layout, cells, places }: Content): Label[] {
  const { width, height } = layout.cell;
  const size = Math.min(12, height - 2);
  const labels: Label[] = [];
  for (let position = layout.visible[0]; position < layout.visible[1]; position++) {
    const x = layout.xOf(position) + width / 2;
    if (x < layout.left + 4 || x > layout.left + layout.room + width / 2) continue;
    for (let place = 0; place < places.length; place++) {
      const { text, whole, isBold = false, isQuiet } = cells.words(place, position);
      if (!text) continue;
      labels.push({
        text: whole && ruler.width(whole, size) <= width - 8 ? whole : text,
        x,
        y: layout.yOf(place + 0.5),
        align: "centre",
        width: width - 8,
        size,
        colour: isQuiet ? theme.tertiary : contrast(fill(theme, cells, cells.shade(place, position))),
        isBold,
      });
    }
  }
  return labels;
}

/** The colour of a shade. */
function fill(theme: Theme, { isSigned }: Cells, shade: number): Rgb {
  const [none, half, full] = theme.ramp;
  if (isSigned) return between(none, shade < 0 ? theme.negative : theme.positive, Math.abs(shade));
  return shade < 0.5 ? between(none, half, shade * 2) : between(half, full, shade * 2 - 1);
}

/** Ink or paper, whichever is read better on a colour. */
function contrast([red, green, blue]: Rgb): Rgb {
  return 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? [28, 29, 31] : [255, 255, 255];
}

function sized({ x, y, width, height }: Box, scale: number): Box {
  return { x: x * scale, y: y * scale, width: width * scale, height: height * scale };
}

/** A token and where it stands, in words. */
export function cellName({ place, position }: Cell, texts: string[], places: string[]): string {
  const token = `${visible(texts[position] ?? "")}, token ${position}`;
  if (place < 0) return token;
  return `${token}, ${place ? `after ${places[place] ?? ""}` : "before the first layer"}`;
}
