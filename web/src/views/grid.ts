/** Where the model view puts its heads: layers × heads in blocks, or all of them in order of a score. */

import type { OtherLayerProps, SiteProps } from "../contract";
import type { Box } from "../marks/cells";

export interface Place {
  site: SiteProps;
  head: number;
  x: number;
  y: number;
}

export interface Mark {
  text: string;
  x: number;
  y: number;
  align: "left" | "right" | "centre";
  isTitle?: boolean;
  /** The layer that it names. */
  site?: SiteProps;
}

export interface Grid {
  places: Place[];
  marks: Mark[];
  /** The side of a head's picture, and what is left free under it for words. */
  size: number;
  caption: number;
  width: number;
  height: number;
}

const MARGIN = 16;
const LEAST = 10;
const MOST = 280;
const SIDE = 40; // for the names of layers
const HEADS = 22; // for the names of heads
const TITLE = 24;
const CAPTION = 16;
const LINES = 28; // two lines of words
const GAP = 18; // for layers without softmax attention, named in a line

interface Block {
  title: string;
  layers: SiteProps[];
  columns: number;
  /** What is written above a layer (or, at the end, below the last): which layers there have no softmax attention. */
  gaps: Map<number, string>;
}

/** The stacks of a model, each with its layers: encoder, decoder, cross-attention. */
export function blocksOf(layers: SiteProps[], others: OtherLayerProps[] = []): Block[] {
  const blocks = new Map<string, Block>();
  for (const site of layers) {
    const name = `${site.kind} ${site.stack} ${site.key_stack}`;
    const title = site.kind === "cross" ? `cross-attention, ${site.stack} → ${site.key_stack}` : site.stack;
    const block: Block = blocks.get(name) ?? { title, layers: [], columns: 0, gaps: new Map() };
    block.layers.push(site);
    block.columns = Math.max(block.columns, site.n_heads);
    blocks.set(name, block);
  }
  for (const block of blocks.values()) {
    if (block.layers[0]?.kind === "self") block.gaps = gapsOf(block.layers, others);
  }
  return [...blocks.values()];
}

/** Layers without softmax attention between those that have it, by the row that they stand before. */
function gapsOf(layers: SiteProps[], others: OtherLayerProps[]): Map<number, string> {
  const runs = new Map<number, OtherLayerProps[]>();
  for (const other of others.filter(({ stack }) => stack === layers[0]?.stack)) {
    const after = layers.findIndex(({ layer }) => layer > other.layer);
    const row = after < 0 ? layers.length : after;
    runs.set(row, [...(runs.get(row) ?? []), other]);
  }
  return new Map([...runs].map(([row, run]) => [row, gapText(run)]));
}

function gapText(run: OtherLayerProps[]): string {
  const numbers = run.map(({ layer }) => layer);
  const [first, last] = [Math.min(...numbers), Math.max(...numbers)];
  const names =
    last - first + 1 === run.length && last > first ? `L${first}–L${last}` : numbers.map((n) => `L${n}`).join(", ");
  return `${names}: no softmax attention (${[...new Set(run.map(({ mixer }) => mixer))].join(", ")})`;
}

/** All heads by layer, as large as fits; blocks beside or under each other, whichever lets them be larger. */
export function gridOf(
  layers: SiteProps[],
  width: number,
  height: number,
  hasCaptions: boolean,
  others: OtherLayerProps[] = [],
): Grid {
  const blocks = blocksOf(layers, others);
  const title = blocks.length > 1 ? TITLE : 0;
  let best: { abreast: number; pitch: number } = { abreast: 1, pitch: 0 };
  for (let abreast = 1; abreast <= blocks.length; abreast++) {
    const bands = chunks(blocks, abreast);
    const across = Math.min(
      ...bands.map((band) => (width - 2 * MARGIN - band.length * SIDE) / sum(band.map((block) => block.columns))),
    );
    const rows = sum(bands.map((band) => Math.max(...band.map((block) => block.layers.length))));
    const down = (height - 2 * MARGIN - bands.length * (title + HEADS) - gapsIn(bands)) / rows;
    const pitch = Math.min(across, down);
    if (pitch > best.pitch) best = { abreast, pitch };
  }
  const bands = chunks(blocks, best.abreast);
  const rows = sum(bands.map((band) => Math.max(...band.map((block) => block.layers.length))));
  const across = Math.min(
    ...bands.map((band) => (width - 2 * MARGIN - band.length * SIDE) / sum(band.map((block) => block.columns))),
  );
  const down = (height - 2 * MARGIN - bands.length * (title + HEADS) - gapsIn(bands)) / rows;
  let caption = 0;
  let size = sizeIn(best.pitch);
  if (hasCaptions) {
    const smaller = sizeIn(Math.min(across, down - CAPTION));
    if (smaller >= 64) [size, caption] = [smaller, CAPTION];
  }
  const gap = gapOf(size);
  const grid: Grid = { places: [], marks: [], size, caption, width: 0, height: 0 };
  const inner = bands.map((band) => sum(band.map((block) => SIDE + block.columns * (size + gap) - gap)));
  const left = Math.max(MARGIN, Math.floor((width - Math.max(...inner) - SIDE / 2) / 2));
  const tall = rows * (size + gap + caption) + bands.length * (title + HEADS) + gapsIn(bands);
  let y = Math.max(MARGIN, Math.floor((height - tall) / 4));
  for (const band of bands) {
    let x = left;
    for (const block of band) {
      placeBlock(grid, block, x, y, title, gap);
      x += SIDE + block.columns * (size + gap) - gap;
    }
    grid.width = Math.max(grid.width, x + MARGIN);
    const below = Math.max(...band.map((block) => block.layers.length)) * (size + gap + caption);
    y += title + HEADS + below + gapsIn([band]);
  }
  grid.height = y - gap + MARGIN;
  return grid;
}

function placeBlock(grid: Grid, block: Block, x: number, y: number, title: number, gap: number): void {
  const pitch = grid.size + gap;
  const first = { x: x + SIDE, y: y + title + HEADS };
  if (title) grid.marks.push({ text: block.title, x: first.x, y: y + 12, align: "left", isTitle: true });
  const step = Math.ceil(26 / pitch);
  for (let head = 0; head < block.columns; head += step) {
    const at = first.x + head * pitch + grid.size / 2;
    grid.marks.push({ text: `H${head}`, x: at, y: first.y - 10, align: "centre" });
  }
  const skip = Math.ceil(13 / (pitch + grid.caption));
  let top = first.y;
  const name = (row: number) => {
    const text = block.gaps.get(row);
    if (text === undefined) return;
    grid.marks.push({ text, x: first.x, y: top + GAP / 2 - gap / 2, align: "left" });
    top += GAP;
  };
  block.layers.forEach((site, row) => {
    name(row);
    if (row % skip === 0) {
      grid.marks.push({ text: `L${site.layer}`, x: first.x - 8, y: top + grid.size / 2, align: "right", site });
    }
    for (let head = 0; head < site.n_heads; head++) grid.places.push({ site, head, x: first.x + head * pitch, y: top });
    top += pitch + grid.caption;
  });
  name(block.layers.length);
}

/** The height of the lines that name layers without softmax attention, in bands under each other. */
function gapsIn(bands: Block[][]): number {
  return sum(bands.map((band) => GAP * Math.max(...band.map((block) => block.gaps.size))));
}

/** Heads in a given order, line after line, each with words under it. */
export function rankedOf(
  heads: { site: SiteProps; head: number }[],
  width: number,
  height: number,
  least: number,
): Grid {
  let size = least;
  for (let candidate = MOST; candidate > least; candidate -= 2) {
    const columns = Math.floor((width - 2 * MARGIN + gapOf(candidate)) / (candidate + gapOf(candidate)));
    if (columns < 1) continue;
    const rows = Math.ceil(heads.length / columns);
    if (rows * (candidate + gapOf(candidate) + captionOf(candidate)) <= height - 2 * MARGIN) {
      size = candidate;
      break;
    }
  }
  const gap = gapOf(size);
  const caption = captionOf(size);
  const columns = Math.max(1, Math.floor((width - 2 * MARGIN + gap) / (size + gap)));
  const used = Math.min(columns, heads.length);
  const left = Math.max(MARGIN, Math.floor((width - used * (size + gap) + gap) / 2));
  const places = heads.map((head, index) => ({
    ...head,
    x: left + (index % columns) * (size + gap),
    y: MARGIN + Math.floor(index / columns) * (size + gap + caption),
  }));
  const rows = Math.ceil(heads.length / columns);
  return {
    places,
    marks: [],
    size,
    caption,
    width: left + used * (size + gap),
    height: 2 * MARGIN + rows * (size + gap + caption),
  };
}

/** A name and its number stand under each other where they have no room side by side. */
export function captionOf(size: number): number {
  return size >= 88 ? CAPTION : LINES;
}

function gapOf(size: number): number {
  return size >= 64 ? 10 : size >= 36 ? 7 : size >= 22 ? 4 : size >= 14 ? 2 : 1;
}

function sizeIn(pitch: number): number {
  for (let size = Math.min(MOST, Math.floor(pitch)); size > LEAST; size--) if (size + gapOf(size) <= pitch) return size;
  return LEAST;
}

function chunks<Item>(items: Item[], size: number): Item[][] {
  const slices: Item[][] = [];
  for (let i = 0; i < items.length; i += size) slices.push(items.slice(i, i + size));
  return slices;
}

function sum(numbers: number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

/** The head at a point, on its picture or the words under it. */
export function headAt(grid: Grid, x: number, y: number): Place | null {
  const { places, size, caption } = grid;
  const half = Math.min(5, size / 8);
  const below = caption + half;
  const isOn = (place: Place) =>
    x >= place.x - half && x < place.x + size + half && y >= place.y - half && y < place.y + size + below;
  return places.find(isOn) ?? null;
}

/** The next head in a direction: the nearest one that lies that way, in the same row or column if there is one. */
export function neighbour(places: Place[], from: Place, [dx, dy]: [number, number]): Place | undefined {
  let nearest: Place | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const place of places) {
    const along = (place.x - from.x) * dx + (place.y - from.y) * dy;
    const aside = Math.abs((place.x - from.x) * dy) + Math.abs((place.y - from.y) * dx);
    const distance = along + 8 * aside;
    if (along > 0 && distance < least) [least, nearest] = [distance, place];
  }
  if (nearest || !dx) return nearest;
  // Past the end of a row comes the next one, as in reading.
  const index = places.indexOf(from) + dx;
  return places[index];
}

/** Where to scroll to so that a head is in view: nowhere else if it is. */
export function scrollTo(target: Place, grid: Grid, view: Box): { x: number; y: number } {
  const size = grid.size + 24;
  const into = (from: number, before: number, start: number, room: number) =>
    from - before < start ? from - before : from + size > start + room ? from + size - room : start;
  return { x: into(target.x, 40, view.x, view.width), y: into(target.y, 24, view.y, view.height) };
}
