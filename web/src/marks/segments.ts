/** Straight lines and arrows, smooth, of any opacity: drawn pixel by pixel along their longer side. */

import type { Rgb } from "../theme";
import type { Raster } from "./raster";

export interface Stroke {
  colour: Rgb;
  alpha: number;
  width: number;
}

interface Point {
  x: number;
  y: number;
}

export function drawSegment(raster: Raster, from: Point, to: Point, { colour, alpha, width }: Stroke): void {
  const isSteep = Math.abs(to.y - from.y) > Math.abs(to.x - from.x);
  const [a0, b0, a1, b1] = isSteep ? [from.y, from.x, to.y, to.x] : [from.x, from.y, to.x, to.y];
  const [start, startAcross, end, endAcross] = a0 <= a1 ? [a0, b0, a1, b1] : [a1, b1, a0, b0];
  const slope = end > start ? (endAcross - startAcross) / (end - start) : 0;
  // Measured across the longer side, a slanted line is broader than it is.
  const half = (width * Math.sqrt(1 + slope * slope)) / 2;
  for (let along = Math.floor(start); along <= Math.floor(end); along++) {
    const covered = Math.min(along + 1, end) - Math.max(along, start);
    if (covered <= 0 && end > start) continue;
    const middle = startAcross + slope * (Math.min(Math.max(along + 0.5, start), end) - start);
    for (let across = Math.floor(middle - half); across <= Math.floor(middle + half); across++) {
      const share = Math.min(across + 1, middle + half) - Math.max(across, middle - half);
      if (share <= 0) continue;
      const [x, y] = isSteep ? [across, along] : [along, across];
      blend(raster, x, y, colour, alpha * Math.min(1, share) * (end > start ? covered : 1));
    }
  }
}

/** A line with a head; where both ends are one point, a ring. */
export function drawArrow(raster: Raster, from: Point, to: Point, stroke: Stroke, head: number): void {
  const length = Math.hypot(to.x - from.x, to.y - from.y);
  if (length < 1) {
    drawRing(raster, from, head * 0.7, stroke);
    return;
  }
  const [dx, dy] = [(to.x - from.x) / length, (to.y - from.y) / length];
  drawSegment(raster, from, to, stroke);
  const size = Math.min(head, length * 0.6);
  for (const turn of [0.5, -0.5]) {
    const [cos, sin] = [Math.cos(turn), Math.sin(turn)];
    const end = { x: to.x - size * (dx * cos - dy * sin), y: to.y - size * (dx * sin + dy * cos) };
    drawSegment(raster, to, end, stroke);
  }
}

function drawRing(raster: Raster, { x, y }: Point, radius: number, { colour, alpha, width }: Stroke): void {
  const reach = Math.ceil(radius + width);
  for (let row = Math.floor(y) - reach; row <= y + reach; row++) {
    for (let column = Math.floor(x) - reach; column <= x + reach; column++) {
      const apart = Math.abs(Math.hypot(column + 0.5 - x, row + 0.5 - y) - radius);
      const share = Math.min(1, Math.max(0, width / 2 + 0.5 - apart));
      if (share > 0) blend(raster, column, row, colour, alpha * share);
    }
  }
}

function blend(raster: Raster, x: number, y: number, [red, green, blue]: Rgb, alpha: number): void {
  if (x < 0 || y < 0 || x >= raster.width || y >= raster.height || alpha <= 0) return;
  const at = (y * raster.width + x) * 4;
  const { pixels } = raster;
  pixels[at] = (pixels[at] as number) + (red - (pixels[at] as number)) * alpha;
  pixels[at + 1] = (pixels[at + 1] as number) + (green - (pixels[at + 1] as number)) * alpha;
  pixels[at + 2] = (pixels[at + 2] as number) + (blue - (pixels[at + 2] as number)) * alpha;
}
