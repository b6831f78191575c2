/** The rows of the neuron view: a row a token, under rows that stay above and, for one query, over one that stays below. */

/** Where things that stay begin, from the top: of one query, and of every token. */
export const TOP = { titles: 18, strip: 34, rows: 64 };
export const EVERY_TOP = { mean: 34, spread: 58, rows: 88 };
/** What stays below, and the height of a strip of neurons there and above. */
export const FOOT = 44;
export const STRIP = 18;
const PITCH = { least: 19, most: 34 };

export class NeuronRows {
  /** The height of a row. */
  readonly pitch: number;
  /** Where rows begin. */
  readonly first: number;

  constructor(
    private readonly count: number,
    private readonly height: number,
    private readonly isEvery: boolean,
  ) {
    this.first = isEvery ? EVERY_TOP.rows : TOP.rows;
    const room = height - (isEvery ? EVERY_TOP.rows + 12 : TOP.rows + FOOT);
    this.pitch = Math.max(PITCH.least, Math.min(PITCH.most, Math.floor(room / Math.max(1, count))));
  }

  /** How high all of it is. */
  get tall(): number {
    return (this.isEvery ? EVERY_TOP.rows + 12 : TOP.rows + FOOT) + this.count * this.pitch;
  }

  /** Where the rows that stay below begin: under the last row, or at the bottom. */
  get foot(): number {
    return Math.min(this.height - FOOT, this.first + this.count * this.pitch + 8);
  }

  /** Between what stays above and below. */
  private get room(): number {
    return this.height - (this.isEvery ? EVERY_TOP.rows : TOP.rows + FOOT);
  }

  top(row: number, scroll: number): number {
    return this.first + row * this.pitch - scroll;
  }

  /** The row at a height of the page; null where there is none. */
  at(y: number, scroll: number): number | null {
    if (y < this.first || (!this.isEvery && y > this.foot)) return null;
    const row = Math.floor((y - this.first + scroll) / this.pitch);
    return row < 0 || row >= this.count ? null : row;
  }

  /** The rows in view, [first, last). */
  visible(scroll: number): [number, number] {
    const first = Math.max(0, Math.min(this.count - 1, Math.floor(scroll / this.pitch)));
    return [first, Math.min(this.count, Math.ceil((scroll + this.room) / this.pitch) + 1)];
  }

  /** Whether a row's middle is between what stays above and below. */
  isInView(row: number, scroll: number): boolean {
    const middle = this.top(row, scroll) + this.pitch / 2;
    return middle > this.first - 2 && middle < this.height - (this.isEvery ? 0 : FOOT - 2);
  }

  /** Where to scroll to so that a row can be seen: nowhere else if it is. */
  reveal(row: number, scroll: number): number {
    const top = row * this.pitch;
    if (top < scroll) return top;
    return top + this.pitch > scroll + this.room ? top + this.pitch - this.room : scroll;
  }
}
