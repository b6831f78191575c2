/** Scores as they are written, and what is worked out from them. */

import type { Measure, Score } from "./contents";

export function isKnown(score: Score | undefined): score is number {
  return typeof score === "number" && Number.isFinite(score);
}

/** Three digits or so, and the unit; a dash where there is no score. */
export function figure(score: Score | undefined, unit = ""): string {
  if (!isKnown(score)) return "–";
  const size = Math.abs(score);
  const digits = size >= 100 ? 0 : size >= 10 ? 1 : size >= 0.095 || size === 0 ? 2 : 3;
  return score.toFixed(digits).replace("-", "−") + (unit ? ` ${unit}` : "");
}

/** The 95 % interval of a head's score, in words; empty where there is none. */
export function intervalOf({ low, high }: Measure, head: number): string {
  return isKnown(low?.[head]) ? `${figure(low[head])} to ${figure(high?.[head])}` : "";
}

export interface Range {
  low: number;
  high: number;
  /** Scores of both signs: as far below 0 as above. */
  isSigned: boolean;
}

/** What the colours of a measure run over: from 0, or as far to both sides of it. */
export function rangeOf(scores: Score[]): Range {
  const known = scores.filter(isKnown);
  if (!known.length) return { low: 0, high: 1, isSigned: false };
  const [low, high] = [Math.min(...known), Math.max(...known)];
  if (low >= 0) return { low: 0, high: high || 1, isSigned: false };
  const most = Math.max(-low, high);
  return { low: -most, high: most, isSigned: true };
}

/** The ends of an axis: all scores with a little room, and nothing below 0 where no score is. */
export function axisOf(scores: number[]): [low: number, high: number] {
  const [low, high] = [Math.min(...scores), Math.max(...scores)];
  const room = (high - low || 1) * 0.06;
  return [low >= 0 ? Math.max(0, low - room) : low - room, high + room];
}

export function mean(scores: number[]): number {
  return scores.length ? scores.reduce((sum, score) => sum + score, 0) / scores.length : Number.NaN;
}

/** Places in the order from 0; those that are equal share the middle of theirs. */
export function ranksOf(scores: number[]): number[] {
  const order = scores.map((_, index) => index).sort((a, b) => (scores[a] as number) - (scores[b] as number));
  const ranks = new Array<number>(scores.length);
  for (let first = 0; first < order.length; ) {
    let next = first;
    while (next < order.length && scores[order[next] as number] === scores[order[first] as number]) next++;
    for (const index of order.slice(first, next)) ranks[index] = (first + next - 1) / 2;
    first = next;
  }
  return ranks;
}

/** Spearman's rank correlation; NaN of fewer than three pairs, or where one side is all the same. */
export function spearman(across: number[], up: number[]): number {
  if (across.length < 3) return Number.NaN;
  const [a, b] = [ranksOf(across), ranksOf(up)];
  const middle = (across.length - 1) / 2;
  let [product, squareA, squareB] = [0, 0, 0];
  a.forEach((rank, i) => {
    const [x, y] = [rank - middle, (b[i] as number) - middle];
    product += x * y;
    squareA += x ** 2;
    squareB += y ** 2;
  });
  return squareA && squareB ? product / Math.sqrt(squareA * squareB) : Number.NaN;
}
