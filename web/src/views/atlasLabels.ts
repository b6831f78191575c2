/** Which texts have room beside their points: in order of importance, none over another. */

import type { Box } from "../marks/cells";

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
const CELL = 8;

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
