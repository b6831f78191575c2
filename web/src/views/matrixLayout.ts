/** Where the panels of a matrix are, how large their cells, and which rectangle of the whole they show. */

import type { Region } from "../data/pooled";
import type { Box } from "../marks/cells";

const MARGIN = 16;
const GAP = 18;
export const TITLE = 22;
const READABLE = 13; // px: cells from here on have their tokens beside them
const MOST = 44;
const TICKS = 26; // px, for numbers where tokens have no room
const LEAST = 4; // cells a side that are shown at least

export interface PanelRoom {
  width: number;
  height: number;
  /** How many panels, each of so many rows and columns. */
  count: number;
  nRows: number;
  nColumns: number;
  /** What the tokens' names take, left of each panel and over it. */
  names: { left: number; top: number };
}

export interface PanelLayout {
  /** Whether cells are large enough for names beside them. */
  isReadable: boolean;
  room: { left: number; top: number };
  /** Of a cell. */
  side: number;
  boxes: Box[];
}

/** As many panels abreast as let their cells be the largest; readable ones if that is possible. */
export function layPanels({ width, height, count, nRows, nColumns, names }: PanelRoom): PanelLayout {
  const title = count > 1 ? TITLE : 0;
  const bare = { left: TICKS + 6, top: TICKS };
  let best = { abreast: 1, side: 0, isReadable: false };
  for (const isReadable of [true, false]) {
    const room = isReadable ? names : bare;
    for (let abreast = 1; abreast <= count; abreast++) {
      const down = Math.ceil(count / abreast);
      const wide = (width - 2 * MARGIN - (abreast - 1) * GAP) / abreast - room.left;
      const tall = (height - 2 * MARGIN - (down - 1) * GAP) / down - room.top - title;
      const side = Math.min(MOST, wide / nColumns, tall / nRows);
      if (isReadable && side < READABLE) continue;
      if (side > best.side + (best.isReadable ? 1e9 : 0)) best = { abreast, side, isReadable };
    }
    if (best.side) break;
  }
  const { abreast, isReadable } = best;
  const room = isReadable ? names : bare;
  // A long and thin rectangle fills its panel all the same: dots need not be square when they are no cells.
  const side = isReadable ? Math.floor(best.side) : Math.max(best.side, 0.01);
  const panel = { width: nColumns * side, height: nRows * side };
  const pitch = { x: panel.width + room.left + GAP, y: panel.height + room.top + title + GAP };
  const lines = Math.ceil(count / abreast);
  const left = Math.max(MARGIN, (width - Math.min(count, abreast) * pitch.x + GAP - room.left * 0.5) / 2) + room.left;
  const top = Math.max(MARGIN, (height - lines * pitch.y + GAP) / 2.6) + room.top + title;
  const boxes = Array.from({ length: count }, (_, index) => ({
    x: Math.round(left + (index % abreast) * pitch.x),
    y: Math.round(top + Math.floor(index / abreast) * pitch.y),
    ...panel,
  }));
  return { isReadable, room, side, boxes };
}

/** The cell of a panel at a point, where one is. */
export function cellAt(
  box: Box,
  cell: { width: number; height: number },
  { rows, columns }: Region,
  x: number,
  y: number,
): { query: number; key: number } | null {
  const row = Math.floor((y - box.y) / cell.height);
  const column = Math.floor((x - box.x) / cell.width);
  if (row < 0 || column < 0 || row >= rows[1] - rows[0] || column >= columns[1] - columns[0]) return null;
  return { query: rows[0] + row, key: columns[0] + column };
}

/** A rectangle inside the whole, of a few cells at least; null for one that is everything. */
export function fitted(region: Region, whole: Region): Region | null {
  const within = ([first, last]: [number, number], [, count]: [number, number]): [number, number] => {
    const size = Math.max(Math.min(LEAST, count), Math.min(count, Math.round(last - first)));
    const from = Math.max(0, Math.min(count - size, Math.round(first)));
    return [from, from + size];
  };
  const rows = within(region.rows, whole.rows);
  const columns = within(region.columns, whole.columns);
  const isAll = rows[1] - rows[0] === whole.rows[1] && columns[1] - columns[0] === whole.columns[1];
  return isAll ? null : { rows, columns };
}

/** A rectangle made larger or smaller, with a cell staying where it is in it. */
export function scaledAround(region: Region, { query, key }: { query: number; key: number }, factor: number): Region {
  const around = ([first, last]: [number, number], at: number): [number, number] => {
    const size = Math.max(LEAST, (last - first) * factor);
    const share = (at + 0.5 - first) / (last - first);
    return [at + 0.5 - share * size, at + 0.5 + (1 - share) * size];
  };
  return { rows: around(region.rows, query), columns: around(region.columns, key) };
}

export function moved({ rows, columns }: Region, down: number, across: number): Region {
  return { rows: [rows[0] + down, rows[1] + down], columns: [columns[0] + across, columns[1] + across] };
}

/** The rectangle between two cells. */
export function spanOf(from: { query: number; key: number }, to: { query: number; key: number }): Region {
  const order = (a: number, b: number): [number, number] => [Math.min(a, b), Math.max(a, b) + 1];
  return { rows: order(from.query, to.query), columns: order(from.key, to.key) };
}
