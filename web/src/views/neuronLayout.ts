/** Where the columns of the neuron view stand: as wide as there is room for, folded where there is none. */

import type { Selection } from "../selection";

export type Heat = Selection["fold"][number];
export type Figure = "dots" | "capped" | "bias";
export type Name = "token" | Heat | Figure | "softmax" | "every";

export interface Column {
  name: Name;
  x: number;
  width: number;
  isFolded: boolean;
}

export const TITLES: Record<Heat, string> = { key: "key k", product: "q × k", value: "value v", weighted: "a · v" };
/** The same where a column is narrower than its title. */
export const SHORT: Record<Heat, string> = { key: "k", product: "q×k", value: "v", weighted: "a·v" };
const MARGIN = 16;
const GAP = { wide: 14, narrow: 8 };
const FOLDED = 18;
const FIGURE = 48;
const BAR = { wide: 118, narrow: 64 };
/** A neuron is at least so wide, or columns fold; and at most so wide. */
const LEAST = 1.5;
const MOST = 16;
/** Which columns go first when there is no room for all: the product says most. */
const DISPENSABLE: Heat[] = ["key", "value", "weighted"];

export interface Room {
  width: number;
  /** Room for tokens. */
  tokens: number;
  dim: number;
  valueDim: number;
  figures: Figure[];
  fold: Heat[];
}

/** The columns from left to right, and those that were folded for want of room. */
export function layOut(room: Room): { columns: Column[]; forced: Heat[] } {
  const forced: Heat[] = [];
  const count = (name: Heat) => (name === "key" || name === "product" ? room.dim : room.valueDim);
  const isNarrow = room.width < 560;
  const bar = isNarrow ? BAR.narrow : BAR.wide;
  const gap = isNarrow ? GAP.narrow : GAP.wide;
  const order: Name[] = ["token", "key", "product", ...room.figures, "softmax", "value", "weighted"];
  for (;;) {
    const isFolded = (name: Name) => room.fold.includes(name as Heat) || forced.includes(name as Heat);
    const open = (["key", "product", "value", "weighted"] as Heat[]).filter((name) => !isFolded(name));
    const fixed = (name: Name) =>
      name === "token" ? room.tokens : name === "softmax" ? bar : isFolded(name) ? FOLDED : FIGURE;
    const taken = order.filter((name) => !open.includes(name as Heat)).reduce((sum, name) => sum + fixed(name), 0);
    const left = room.width - 2 * MARGIN - taken - gap * (order.length - 1);
    const cells = open.reduce((sum, name) => sum + count(name), 0);
    const cell = cells ? Math.min(MOST, left / cells) : 0;
    const next = DISPENSABLE.find((name) => open.includes(name));
    if (cells && cell < LEAST && next && open.length > 1) {
      forced.push(next);
      continue;
    }
    let x = MARGIN;
    const columns = order.map((name) => {
      const width = open.includes(name as Heat) ? Math.max(24, cell * count(name as Heat)) : fixed(name);
      const column = { name, x, width, isFolded: isFolded(name) };
      x += width + gap;
      return column;
    });
    return { columns, forced };
  }
}

/** One wide column for the vectors of all tokens. */
export function layOutEvery(width: number, tokens: number, dim: number): Column[] {
  const left = MARGIN + tokens + GAP.wide;
  const room = Math.max(24, Math.min(dim * MOST * 1.5, width - left - MARGIN));
  return [
    { name: "token", x: MARGIN, width: tokens, isFolded: false },
    { name: "every", x: left, width: room, isFolded: false },
  ];
}

/** What is folded after a click on a column: it opens, and where there is no room for it another one folds. */
export function toggled(name: Heat, fold: Heat[], forced: Heat[]): Heat[] {
  if (fold.includes(name)) return fold.filter((column) => column !== name);
  if (!forced.includes(name)) return [...fold, name];
  const all: Heat[] = ["key", "product", "value", "weighted"];
  const open = all.filter((column) => !fold.includes(column) && !forced.includes(column));
  const goes = open.find((column) => column !== "product") ?? open[0];
  return all.filter(
    (column) => fold.includes(column) || (forced.includes(column) && column !== name) || column === goes,
  );
}
