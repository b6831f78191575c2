/** Where cells of the activations view lie: places down, tokens across, scrolled by whole columns. */

const MARGIN = 14;
const FOOT = 26;
const WIDEST = 110;
const TALLEST = 46;

/** Over the cells: the tokens. */
export const TOP = 34;
/** Cells of this size, in px, and larger ones have text in them. */
export const READABLE = { width: 46, height: 14 };

export interface Cell {
  /** −1 on the token itself. */
  place: number;
  position: number;
}

export interface Shape {
  width: number;
  height: number;
  nPlaces: number;
  nTokens: number;
  /** How wide the names of places are. */
  names: number;
  /** Whether cells hold words, and are never too narrow for them. */
  hasWords: boolean;
}

export class Layout {
  readonly left: number;
  readonly room: number;
  readonly cell: { width: number; height: number };
  readonly isReadable: boolean;
  /** How far it can be scrolled. */
  readonly furthest: number;
  /** Where the columns begin: at a whole column, so that none is cut. */
  readonly origin: number;
  /** The positions that are seen, [first, last). */
  readonly visible: readonly [number, number];

  constructor(
    readonly shape: Shape,
    readonly scroll: number,
  ) {
    const { width, height, nPlaces, nTokens, names, hasWords } = shape;
    this.left = MARGIN + names + 10;
    this.room = Math.max(40, width - this.left - MARGIN);
    const even = this.room / Math.max(1, nTokens);
    this.cell = {
      width: Math.max(hasWords ? READABLE.width : 0, Math.min(WIDEST, even)),
      height: Math.max(3, Math.min(TALLEST, (height - TOP - FOOT) / nPlaces)),
    };
    this.isReadable = this.cell.width >= READABLE.width && this.cell.height >= READABLE.height;
    this.furthest = Math.max(0, nTokens * this.cell.width - this.room);
    const last = Math.ceil(this.furthest / this.cell.width - 1e-6);
    // At the end the last token is seen whole, though that is more than the way to go.
    const isEnd = this.clamped(scroll) >= this.furthest - 1;
    this.origin = (isEnd ? last : Math.round(this.clamped(scroll) / this.cell.width)) * this.cell.width;
    const first = Math.max(0, Math.round(this.origin / this.cell.width));
    const count = Math.max(1, Math.floor(this.room / this.cell.width + 1e-6));
    this.visible = [first, Math.max(first + 1, Math.min(nTokens, first + count))];
  }

  clamped(scroll: number): number {
    return Math.max(0, Math.min(this.furthest, scroll));
  }

  xOf(position: number): number {
    return this.left + position * this.cell.width - this.origin;
  }

  yOf(place: number): number {
    return TOP + place * this.cell.height;
  }

  hit(x: number, y: number): Cell | null {
    const position = Math.floor((x - this.left + this.origin) / this.cell.width);
    const place = Math.floor((y - TOP) / this.cell.height);
    if (x < this.left || position < 0 || position >= this.visible[1]) return null;
    return place >= this.shape.nPlaces || y < 0 ? null : { place: Math.max(-1, place), position };
  }

  /** Whether a point is in the bar below that scrolls. */
  isInBar(y: number): boolean {
    return this.furthest > 0 && y >= this.shape.height - FOOT;
  }

  /** Where to scroll so that a position is seen; null where it is. */
  revealing(position: number): number | null {
    const at = position * this.cell.width;
    if (at >= this.scroll && at + this.cell.width <= this.scroll + this.room) return null;
    return Math.max(0, at - this.room / 2);
  }
}
