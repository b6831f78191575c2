/** Where the heads of an atlas lie on its plane: layers × heads, block by block, each a square of 100. */

import type { AtlasPlaceProps } from "../contract";
import type { Box } from "../marks/cells";
import type { Size } from "./atlasCamera";

export const SIDE = 100;
const GAP = 10;
const BLOCK = 34; // between blocks
const TITLE = 52; // over the names of the heads

export interface Cell extends Box {
  place: AtlasPlaceProps;
  row: number;
  column: number;
  block: number;
}

export interface Heading {
  text: string;
  kind: "row" | "column" | "title";
  /** The middle of its row or column. */
  x: number;
  y: number;
}

export interface AtlasLayout extends Size {
  cells: Cell[];
  headings: Heading[];
}

/** All places, with blocks (encoder, decoder, cross-attention) beside each other where that fills the screen better. */
export function layoutOf(places: AtlasPlaceProps[], screen: Size): AtlasLayout {
  const blocks = blocksOf(places);
  if (blocks.length === 1 && places.every(({ head }) => head === null)) return depths(places, screen);
  const shapes = [true, false].map((isAcross) => arranged(blocks, isAcross));
  const zoom = ({ width, height }: Size) => Math.min(screen.width / width, screen.height / height);
  return shapes.reduce((best, shape) => (zoom(shape) > zoom(best) ? shape : best));
}

function blocksOf(places: AtlasPlaceProps[]): [string, AtlasPlaceProps[]][] {
  const blocks = new Map<string, AtlasPlaceProps[]>();
  for (const place of places) {
    const name = place.site.replace(/\.?L\d+$/, "");
    blocks.set(name, [...(blocks.get(name) ?? []), place]);
  }
  return [...blocks];
}

function arranged(blocks: [string, AtlasPlaceProps[]][], isAcross: boolean): AtlasLayout {
  const layout: AtlasLayout = { cells: [], headings: [], width: 0, height: 0 };
  let [left, top] = [0, 0];
  blocks.forEach(([title, places], block) => {
    const above = blocks.length > 1 ? TITLE : 0;
    if (above) layout.headings.push({ text: title, kind: "title", x: left, y: top + 20 });
    const layers = [...new Set(places.map(({ layer }) => layer))].sort((a, b) => a - b);
    const heads = [...new Set(places.map(({ head }) => head ?? 0))].sort((a, b) => a - b);
    for (const place of places) {
      const row = layers.indexOf(place.layer);
      const column = heads.indexOf(place.head ?? 0);
      const x = left + column * (SIDE + GAP);
      const y = top + above + row * (SIDE + GAP);
      layout.cells.push({ place, row, column, block, x, y, width: SIDE, height: SIDE });
    }
    layers.forEach((layer, row) => {
      const y = top + above + row * (SIDE + GAP) + SIDE / 2;
      layout.headings.push({ text: `L${layer}`, kind: "row", x: left, y });
    });
    heads.forEach((head, column) => {
      const x = left + column * (SIDE + GAP) + SIDE / 2;
      layout.headings.push({ text: `H${head}`, kind: "column", x, y: top + above });
    });
    const width = heads.length * (SIDE + GAP) - GAP;
    const height = above + layers.length * (SIDE + GAP) - GAP;
    layout.width = Math.max(layout.width, left + width);
    layout.height = Math.max(layout.height, top + height);
    if (isAcross) left += width + BLOCK;
    else top += height + BLOCK;
  });
  return layout;
}

/** A cloud a layer, line after line like words. */
function depths(places: AtlasPlaceProps[], screen: Size): AtlasLayout {
  const share = screen.width / Math.max(1, screen.height);
  const columns = Math.max(1, Math.min(places.length, Math.ceil(Math.sqrt(places.length * share))));
  const cells = places.map((place, index) => {
    const [row, column] = [Math.floor(index / columns), index % columns];
    return { place, row, column, block: 0, x: column * (SIDE + GAP), y: row * (SIDE + GAP), width: SIDE, height: SIDE };
  });
  const rows = Math.ceil(places.length / columns);
  return { cells, headings: [], width: columns * (SIDE + GAP) - GAP, height: rows * (SIDE + GAP) - GAP };
}

/** The cell beside another: heads in a row, layers in a column, past the end of a block into the next. */
export function neighbourOf({ cells }: AtlasLayout, from: Cell, across: number, down: number): Cell {
  const ahead = cells.filter((cell) =>
    across ? (cell.x - from.x) * across > 0 && cell.y === from.y : (cell.y - from.y) * down > 0 && cell.x === from.x,
  );
  const apart = (cell: Cell) => Math.abs(cell.x - from.x) + Math.abs(cell.y - from.y);
  const [first, ...rest] = ahead;
  return first ? rest.reduce((best, cell) => (apart(cell) < apart(best) ? cell : best), first) : from;
}

export function cellAt({ cells }: AtlasLayout, x: number, y: number): Cell | null {
  return (
    cells.find((cell) => x >= cell.x && x < cell.x + cell.width && y >= cell.y && y < cell.y + cell.height) ?? null
  );
}
