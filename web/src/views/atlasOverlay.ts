/** What lies over the points: rings about those in focus, lines to the strongest keys, the lasso. Few strokes, so a
 *  canvas of its own draws them, and the points below stay as they are. */

import type { AtlasLinesProps } from "../contract";
import type { HeadMap } from "../data/atlasPoints";
import type { Box } from "../marks/cells";
import { css, type Rgb, type Theme } from "../theme";
import type { Part } from "../wire";

export interface Spot {
  x: number;
  y: number;
}

export interface Overlay {
  rings: (Spot & { colour: Rgb; radius: number; width: number })[];
  lines: { from: Spot; to: Spot; weight: number }[];
  boxes: { box: Box; colour: Rgb; width: number }[];
  /** The lasso or the box while it is drawn. */
  path: Spot[];
}

export const EMPTY: Overlay = { rings: [], lines: [], boxes: [], path: [] };

export function paintOverlay(context: CanvasRenderingContext2D, overlay: Overlay, theme: Theme, scale: number): void {
  context.save();
  context.scale(scale, scale);
  context.lineCap = "round";
  for (const { box, colour, width } of overlay.boxes) {
    context.strokeStyle = css(colour);
    context.lineWidth = width;
    context.strokeRect(box.x - width / 2, box.y - width / 2, box.width + width, box.height + width);
  }
  for (const { from, to, weight } of overlay.lines) {
    context.strokeStyle = css(theme.ink, 0.25 + 0.6 * weight);
    context.lineWidth = 0.8 + 2.4 * weight;
    context.beginPath();
    context.moveTo(from.x, from.y);
    context.lineTo(to.x, to.y);
    context.stroke();
  }
  for (const { x, y, colour, radius, width } of overlay.rings) {
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.strokeStyle = css(theme.background);
    context.lineWidth = width + 2;
    context.stroke();
    context.strokeStyle = css(colour);
    context.lineWidth = width;
    context.stroke();
  }
  paintPath(context, overlay.path, theme);
  context.restore();
}

function paintPath(context: CanvasRenderingContext2D, path: Spot[], theme: Theme): void {
  if (path.length < 2) return;
  context.beginPath();
  for (const { x, y } of path) context.lineTo(x, y);
  context.closePath();
  context.fillStyle = css(theme.accent, 0.08);
  context.fill();
  context.strokeStyle = css(theme.accent);
  context.lineWidth = 1.5;
  context.setLineDash([5, 4]);
  context.stroke();
  context.setLineDash([]);
}

/** One query's weight on one key, as points. */
export interface Link {
  query: number;
  key: number;
  weight: number;
}

const MOST_LINKS = 400;

/** The lines of some points: from queries to their strongest keys, and to keys from the queries that have them so. */
export function linksOf(map: HeadMap, { arrays }: Part<AtlasLinesProps>, points: ArrayLike<number>): Link[] {
  const { set } = map;
  const shape = arrays.keys?.shape as [number, number];
  const keys = arrays.keys?.values as Int32Array;
  const weights = arrays.weights?.values as Float32Array;
  const top = shape[1];
  const links: Link[] = [];
  const add = (queryRow: number, rank: number) => {
    const at = queryRow * top + rank;
    const keyRow = keys[at] as number;
    if (keyRow < 0) return;
    const [query, key] = [set.pointOf("query", queryRow), set.pointOf("key", keyRow)];
    if (query >= 0 && key >= 0) links.push({ query, key, weight: weights[at] as number });
  };
  const wantedKeys = new Set<number>();
  for (let i = 0; i < points.length; i++) {
    const point = points[i] as number;
    const row = set.row[point] as number;
    if (set.role(point) === "key") wantedKeys.add(row);
    else for (let rank = 0; rank < top; rank++) add(row, rank);
  }
  if (wantedKeys.size) {
    for (let at = 0; at < keys.length; at++)
      if (wantedKeys.has(keys[at] as number)) add(Math.floor(at / top), at % top);
  }
  return links.sort((a, b) => b.weight - a.weight).slice(0, MOST_LINKS);
}
