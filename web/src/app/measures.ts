/** Measures in words, and what they say of one head. */

import type { MethodProps, ScoresProps } from "../contract";
import { floats, type Part } from "../wire";

export interface Measured {
  method: MethodProps;
  value: number;
}

/** `previous_token` as people write it. */
export function titled(name: string): string {
  return name.replaceAll("_", " ");
}

/** What is known of one head, without measures that say nothing about it. */
export function measuresOf(scores: Part<ScoresProps> | null, head: string): Measured[] {
  if (!scores) return [];
  const index = scores.props.heads.indexOf(head);
  if (index < 0) return [];
  return scores.props.methods.flatMap((method) => {
    const grid = scores.arrays[method.name];
    const value = grid ? (floats(grid)[index] ?? Number.NaN) : Number.NaN;
    return Number.isNaN(value) ? [] : [{ method, value }];
  });
}

/** Where a value lies between the ends of its bar, 0 to 1. */
export function along(method: MethodProps, value: number): number {
  const span = method.high - method.low;
  return span > 0 ? Math.min(1, Math.max(0, (value - method.low) / span)) : 0;
}
