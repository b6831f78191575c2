/** Where the patches of a layer's keys lie in the picture: in a grid, or each in a box of its own. */

import type { ImageProps, SiteProps, StackProps } from "../contract";

interface Point {
  x: number;
  y: number;
}

/** A box of the page. */
interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Patches {
  readonly count: number;
  /** How large a patch is in a picture that is drawn in `area`. */
  cell(area: Box): { width: number; height: number };
  /** The box of a patch in that picture. */
  box(patch: number, area: Box): Box;
  /** The patch at a point of it; −1 beside all. */
  at(area: Box, x: number, y: number): number;
}

type Shape = Pick<Box, "width" | "height">;

/** Rows and columns from the upper left corner; patches of a `cell` in a picture of `size`. */
export class PatchGrid implements Patches {
  constructor(
    private readonly grid: [number, number],
    private readonly patch: Shape,
    private readonly size: Shape,
  ) {}

  get count(): number {
    return this.grid[0] * this.grid[1];
  }

  cell({ width, height }: Shape): Shape {
    return {
      width: (this.patch.width * width) / this.size.width,
      height: (this.patch.height * height) / this.size.height,
    };
  }

  box(patch: number, area: Box): Box {
    const { width, height } = this.cell(area);
    const [row, column] = [Math.floor(patch / this.grid[1]), patch % this.grid[1]];
    return { x: area.x + column * width, y: area.y + row * height, width, height };
  }

  at(area: Box, x: number, y: number): number {
    const { width, height } = this.cell(area);
    const [row, column] = [Math.floor((y - area.y) / height), Math.floor((x - area.x) / width)];
    const [rows, columns] = this.grid;
    return row < 0 || column < 0 || row >= rows || column >= columns ? -1 : row * columns + column;
  }
}

/** Boxes of image tokens within a text, as shares of the picture: left, top, right, bottom. */
export class PatchBoxes implements Patches {
  private readonly boxes: [number, number, number, number][];

  constructor(boxes: StackProps["boxes"]) {
    this.boxes = boxes.filter((box) => box !== null);
  }

  get count(): number {
    return this.boxes.length;
  }

  cell(area: Box): Shape {
    const { width, height } = this.box(0, area);
    return { width, height };
  }

  box(patch: number, area: Box): Box {
    const [left, top, right, bottom] = this.boxes[patch] ?? [0, 0, 0, 0];
    return {
      x: area.x + left * area.width,
      y: area.y + top * area.height,
      width: (right - left) * area.width,
      height: (bottom - top) * area.height,
    };
  }

  at(area: Box, x: number, y: number): number {
    const [across, down] = [(x - area.x) / area.width, (y - area.y) / area.height];
    return this.boxes.findIndex(
      ([left, top, right, bottom]) => across >= left && across < right && down >= top && down < bottom,
    );
  }
}

/** Whether a stack's tokens say themselves where they lie in a picture, and a layer sees them one by one. */
export function hasBoxes(stack: StackProps, site: Pick<SiteProps, "n_keys" | "places">): boolean {
  return stack.boxes.some((box) => box !== null) && stack.texts.length === site.n_keys && !site.places.length;
}

/** The patches of a layer's keys; `first` is the grid of the input, of whose patches a coarser layer's are several. */
export function patchesIn(stack: StackProps, site: SiteProps, picture: Shape & { patch: [number, number] }): Patches {
  if (hasBoxes(stack, site)) return new PatchBoxes(stack.boxes);
  const grid = site.grid ?? [1, 1];
  const first = stack.grid ?? grid;
  const [down, across] = [0, 1].map(
    (axis) => 2 ** Math.round(Math.log2((first[axis] as number) / (grid[axis] as number))),
  ) as [number, number];
  return new PatchGrid(grid, { width: picture.patch[1] * across, height: picture.patch[0] * down }, picture);
}

/** The number of each position's patch among a stack's boxes; −1 for a token that has none. */
export function numbersOf({ boxes }: Pick<StackProps, "boxes">): Int32Array {
  let next = 0;
  return Int32Array.from(boxes, (box) => (box ? next++ : -1));
}

/** Tokens that only part others, by the names that Python gives them (`models/inputs/placed_tokens.py`). */
const SEPARATORS = new Set(["[row end]", "[outside]", "[no tile]"]);

export function isSeparator(text: string): boolean {
  return SEPARATORS.has(text.replace(/^.*(?=\[)/, ""));
}

/** A part of the picture that was marked: as shares of all that is drawn, once for each copy of the picture, and in
 *  pixels of the picture as it was given (left, top, right, bottom). */
export interface Region {
  shares: Edges[];
  source: Edges;
}

type Edges = [left: number, top: number, right: number, bottom: number];
type Area = ImageProps["areas"][number];

/** What two corners mark of a picture drawn in `drawn`, on every copy of it; null beside the picture. */
export function regionOf(areas: Area[], drawn: Box, from: Point, to: Point): Region | null {
  const share = ({ x, y }: Point): [number, number] => [(x - drawn.x) / drawn.width, (y - drawn.y) / drawn.height];
  const [first, last] = [share(from), share(to)];
  const area = areas.find(
    ({ box }) => first[0] >= box[0] && first[0] < box[2] && first[1] >= box[1] && first[1] < box[3],
  );
  if (!area) return null;
  const edges = [0, 1, 2, 3].map((edge) => {
    const axis = edge % 2;
    const pick = edge < 2 ? Math.min : Math.max;
    const at = pick(first[axis] as number, last[axis] as number);
    return between(
      Math.max(area.box[axis] as number, Math.min(area.box[axis + 2] as number, at)),
      area.box,
      area.source,
      axis,
    );
  });
  const source = edges.map((edge) => Math.round(edge * 10) / 10) as Edges;
  if (source[0] >= source[2] || source[1] >= source[3]) return null;
  const onArea = ({ box, source: shows }: Area) => source.map((edge, at) => between(edge, shows, box, at % 2)) as Edges;
  return { source, shares: areas.map(onArea) };
}

/** A number between the edges of one box along an axis, as it lies between those of another. */
function between(at: number, from: Edges, to: Edges, axis: number): number {
  const [low, high] = [from[axis] as number, from[axis + 2] as number];
  const share = high > low ? (at - low) / (high - low) : 0;
  return (to[axis] as number) + share * ((to[axis + 2] as number) - (to[axis] as number));
}

/** The positions of the patches that a region touches. */
export function positionsIn(stack: StackProps, { shares }: Region): number[] {
  const touches = ([left, top, right, bottom]: Edges) =>
    shares.some((edges) => left < edges[2] && edges[0] < right && top < edges[3] && edges[1] < bottom);
  return stack.boxes.flatMap((box, position) => (box && touches(box) ? [position] : []));
}
