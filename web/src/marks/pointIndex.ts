/** Which points are near a place, within a box or a lasso: cells of a grid, each with its points. */

import type { Places } from "./points";

const SIDE = 65536;
const PER_CELL = 6;

export class PointIndex {
  private readonly cells: number; // on a side
  private readonly starts: Int32Array;
  private readonly order: Int32Array;

  constructor(private readonly places: Places) {
    const count = places.length;
    this.cells = Math.max(1, Math.min(256, Math.ceil(Math.sqrt(count / PER_CELL))));
    const { cells } = this;
    const starts = new Int32Array(cells * cells + 1);
    const cellOf = new Uint16Array(count);
    for (let i = 0; i < count; i++) {
      const place = places[i] as number;
      const cell = this.cell(place >>> 16) * cells + this.cell(place & 0xffff);
      cellOf[i] = cell;
      starts[cell + 1] = (starts[cell + 1] as number) + 1;
    }
    for (let cell = 0; cell < cells * cells; cell++)
      starts[cell + 1] = (starts[cell + 1] as number) + (starts[cell] as number);
    const next = starts.slice();
    this.order = new Int32Array(count);
    for (let i = 0; i < count; i++) {
      const cell = cellOf[i] as number;
      this.order[next[cell] as number] = i;
      next[cell] = (next[cell] as number) + 1;
    }
    this.starts = starts;
  }

  /** The point nearest to a place, at most `radius` away; −1 for none. Of points at one place the last, which lies above. */
  nearest(x: number, y: number, radius: number, isIn: (point: number) => boolean = () => true): number {
    let best = -1;
    let least = radius * radius;
    this.around(x - radius, y - radius, x + radius, y + radius, (point) => {
      const place = this.places[point] as number;
      const apart = ((place & 0xffff) - x) ** 2 + ((place >>> 16) - y) ** 2;
      if (apart > least || (apart === least && point < best) || !isIn(point)) return;
      least = apart;
      best = point;
    });
    return best;
  }

  /** The points within a box, in no order. */
  inBox(left: number, top: number, right: number, bottom: number): Int32Array {
    const points: number[] = [];
    this.around(left, top, right, bottom, (point) => {
      const place = this.places[point] as number;
      const [x, y] = [place & 0xffff, place >>> 16];
      if (x >= left && x <= right && y >= top && y <= bottom) points.push(point);
    });
    return Int32Array.from(points);
  }

  /** The points within a lasso, x and y of its corners by turns: inside by the even-odd rule, as a pen would fill it. */
  inLasso(corners: ArrayLike<number>): Int32Array {
    const xs = Array.from(corners).filter((_, i) => i % 2 === 0);
    const ys = Array.from(corners).filter((_, i) => i % 2 === 1);
    if (xs.length < 3) return new Int32Array(0);
    const candidates = this.inBox(Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys));
    return candidates.filter((point) => {
      const place = this.places[point] as number;
      return isInside(place & 0xffff, place >>> 16, xs, ys);
    });
  }

  private around(left: number, top: number, right: number, bottom: number, hear: (point: number) => void): void {
    if (right < 0 || bottom < 0 || left >= SIDE || top >= SIDE) return;
    const { cells, starts, order } = this;
    const [first, last] = [this.cell(left), this.cell(right)];
    for (let row = this.cell(top); row <= this.cell(bottom); row++) {
      const to = starts[row * cells + last + 1] as number;
      for (let i = starts[row * cells + first] as number; i < to; i++) hear(order[i] as number);
    }
  }

  private cell(at: number): number {
    return Math.min(this.cells - 1, Math.max(0, Math.floor((at * this.cells) / SIDE)));
  }
}

function isInside(x: number, y: number, xs: number[], ys: number[]): boolean {
  let isIn = false;
  for (let i = 0, j = xs.length - 1; i < xs.length; j = i++) {
    const [y1, y2] = [ys[i] as number, ys[j] as number];
    if (y1 > y === y2 > y) continue;
    const [x1, x2] = [xs[i] as number, xs[j] as number];
    if (x < x1 + ((y - y1) / (y2 - y1)) * (x2 - x1)) isIn = !isIn;
  }
  return isIn;
}
