/** Where tokens and lines are in the head view. `along` runs with the tokens, `across` from queries to keys: down and
 *  across the page, or the other way round. */

import type { Box } from "../marks/cells";
import type { Side } from "../selection";

export interface Token {
  side: Side;
  index: number;
}

export function same(a: Token | null, b: Token | null): boolean {
  return a === b || (!!a && !!b && a.side === b.side && a.index === b.index);
}

const MARGIN = 14;
const GAP = 10; // between a token and its lines
const LEAST = 14;
const MOST = 32;
const LONG = 20; // the pitch of tokens that do not all fit
const MAP = 40;

export interface Room {
  width: number;
  height: number;
  axis: "vertical" | "horizontal";
  count: Record<Side, number>;
  /** How wide the widest token is. */
  text: Record<Side, number>;
  nHeads: number;
  hasSegments: boolean;
  /** Room for what stands beyond the tokens. */
  aside?: Record<Side, number>;
}

export class Columns {
  readonly isVertical: boolean;
  readonly pitch: number;
  readonly isLong: boolean;
  /** Across: where lines begin and end. */
  readonly start: number;
  readonly end: number;
  /** Across: how much room a token's text has, and each head's number beyond it. */
  readonly label: Record<Side, number>;
  readonly number: number;
  /** Across: the room for A and B, between a token and its numbers. */
  readonly segment: number;
  /** Tokens stand side by side rather than upright, where they are horizontal and short. */
  readonly isFlat: boolean;
  /** Along: where tokens may be seen. */
  readonly from: number;
  readonly to: number;
  /** Where the whole input is seen at once, when it does not fit. */
  readonly map: Box | null;
  private readonly count: Record<Side, number>;

  constructor(room: Room) {
    this.isVertical = room.axis === "vertical";
    this.count = room.count;
    const [length, breadth] = this.isVertical ? [room.height, room.width] : [room.width, room.height];
    this.from = this.isVertical ? 38 : 64;
    this.to = Math.max(this.from + 40, length - MARGIN);
    const n = Math.max(room.count.query, room.count.key, 1);
    const even = (this.to - this.from) / n;
    const widest = Math.max(room.text.query, room.text.key) + 14;
    const most = this.isVertical ? MOST : Math.max(MOST, Math.min(120, widest));
    this.isLong = even < LEAST;
    this.pitch = this.isLong ? LONG : Math.min(most, even);
    this.isFlat = this.isVertical || this.pitch >= widest;
    this.segment = room.hasSegments ? 18 : 0;
    const map = this.isLong ? MAP + MARGIN : 0;
    const limit = this.isVertical ? Math.min(200, breadth * 0.22) : Math.min(150, breadth * 0.26);
    const text = (side: Side) =>
      this.isVertical || !this.isFlat ? Math.max(24, Math.min(limit, room.text[side] + 8)) : 20;
    this.label = { query: text("query"), key: text("key") };
    const aside = room.aside ?? { query: 0, key: 0 };
    const fixed = this.label.query + this.label.key + aside.query + aside.key + 2 * (MARGIN + GAP + this.segment) + map;
    const wanted = this.isVertical || !this.isFlat ? 36 : 18;
    const spare = Math.max(0, (breadth - fixed - Math.max(90, 0.28 * breadth)) / 2);
    this.number = Math.max(3, Math.min(wanted, spare / room.nHeads));
    const numbers = this.number * room.nHeads;
    const free = Math.max(60, breadth - fixed - 2 * numbers);
    const lines = this.isVertical ? Math.min(free, Math.max(280, Math.min(520, breadth * 0.46))) : Math.min(free, 560);
    const rest = (free - lines) / 2;
    // What stands aside may lie where numbers come and go.
    const left = Math.max(numbers, aside.query);
    this.start = Math.round(MARGIN + this.segment + left + this.label.query + GAP + rest);
    this.end = Math.round(this.start + lines);
    this.map = !this.isLong
      ? null
      : this.isVertical
        ? { x: breadth - MARGIN - MAP, y: this.from, width: MAP, height: this.to - this.from }
        : { x: this.from, y: breadth - MARGIN - MAP, width: this.to - this.from, height: MAP };
  }

  get room(): number {
    return this.to - this.from;
  }

  get furthest(): number {
    return Math.max(0, Math.max(this.count.query, this.count.key) * this.pitch - this.room);
  }

  /** Along: the middle of a token. A shorter side moves less, so that both ends meet. */
  at(side: Side, index: number, scroll: number): number {
    return this.origin(side, scroll) + (index + 0.5) * this.pitch;
  }

  /** The tokens that can be seen, as [first, last). */
  visible(side: Side, scroll: number): [number, number] {
    const origin = this.origin(side, scroll);
    const first = Math.max(0, Math.floor((this.from - origin) / this.pitch));
    return [first, Math.min(this.count[side], Math.ceil((this.to - origin) / this.pitch))];
  }

  /** The token at a point, on its text or beside it. */
  hit(x: number, y: number, scroll: number): Token | null {
    const [along, across] = this.isVertical ? [y, x] : [x, y];
    if (along < this.from - this.pitch / 2 || along > this.to + this.pitch / 2) return null;
    const side = across < this.start + 24 ? "query" : across > this.end - 24 ? "key" : null;
    if (!side) return null;
    if (this.map && (this.isVertical ? x >= this.map.x - 4 : y >= this.map.y - 4)) return null;
    const reach = this.label[side] + this.segment + 60 + GAP;
    if (side === "query" ? across < this.start - reach : across > this.end + reach) return null;
    const index = Math.floor((along - this.origin(side, scroll)) / this.pitch);
    return index >= 0 && index < this.count[side] ? { side, index } : null;
  }

  /** The scroll that brings a token into the middle. */
  centred({ side, index }: Token): number {
    const total = this.count[side] * this.pitch;
    const own = Math.max(0, total - this.room);
    if (!own) return 0;
    const wanted = (index + 0.5) * this.pitch - this.room / 2;
    return Math.max(0, Math.min(this.furthest, (wanted * this.furthest) / own));
  }

  isSeen({ side, index }: Token, scroll: number): boolean {
    const at = this.at(side, index, scroll);
    return at >= this.from + this.pitch && at <= this.to - this.pitch;
  }

  /** From along and across to a point of the page. */
  point(along: number, across: number): { x: number; y: number } {
    return this.isVertical ? { x: across, y: along } : { x: along, y: across };
  }

  box(along: number, across: number, length: number, breadth: number): Box {
    return this.isVertical
      ? { x: across, y: along, width: breadth, height: length }
      : { x: along, y: across, width: length, height: breadth };
  }

  private origin(side: Side, scroll: number): number {
    const total = this.count[side] * this.pitch;
    if (total <= this.room) return this.from + (this.room - total) / (this.isVertical ? 2.6 : 2);
    return this.from - (this.furthest ? (scroll * (total - this.room)) / this.furthest : 0);
  }
}
