/** The numbers of an effect, as they are shown. */

import type { EffectProps } from "../../contract";
import { floats, type Part } from "../../wire";

export interface Candidate {
  text: string;
  /** Log-probabilities. */
  before: number;
  after: number;
}

/** The candidates of one position, by its place among those that were compared. */
export function candidatesAt(part: Part<EffectProps>, place: number): Candidate[] {
  const { candidates, before, after } = part.arrays;
  if (!candidates || !before || !after) return [];
  const width = candidates.shape[1] ?? 0;
  const [was, now] = [before, after].map((grid) => floats(grid, place * width, (place + 1) * width));
  const answers: Candidate[] = [];
  for (let rank = 0; rank < width; rank++) {
    const index = candidates.values[place * width + rank] as number;
    if (index < 0) continue;
    answers.push({ text: part.props.texts[index] ?? "", before: was?.[rank] ?? 0, after: now?.[rank] ?? 0 });
  }
  return answers;
}

/** A change of log-probability: always with its sign. */
export function signed(change: number): string {
  if (change === 0) return "0";
  const text =
    Math.abs(change) < 0.005 ? Math.abs(change).toExponential(0).replace("-", "−") : Math.abs(change).toFixed(2);
  return `${change < 0 ? "−" : "+"}${text}`;
}

/** A divergence: exactly 0 where nothing changed, and never 0 where something did. */
export function divergence(value: number): string {
  if (value === 0) return "0";
  return value < 0.001 ? value.toExponential(0).replace("-", "−") : value.toFixed(3);
}

/** An answer without what cannot be seen, unless that is all there is. */
export function visibleAnswer(text: string): string {
  return text.trim() || text.replaceAll("\n", "↵").replaceAll(/\s/g, "␣") || "(empty)";
}
