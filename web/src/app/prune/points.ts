/** Points of sweeps: which of them is on screen, and what is said of it. */

import type { PointOffer, SweepOffer, TraceProps } from "../../contract";

/** The sweep that a model is of, as the original or as a point. */
export function sweepOf(sweeps: SweepOffer[], model: string): SweepOffer | undefined {
  return (
    sweeps.find(({ points }) => points.slice(1).some((point) => point.model === model)) ??
    sweeps.find((sweep) => sweep.model === model)
  );
}

/** The place of a model among the points of its sweep; the untouched model is the first. */
export function placeOf({ points }: SweepOffer, model: string): number {
  return Math.max(
    0,
    points.findIndex((point) => point.model === model),
  );
}

/** `12 of 48 heads kept, BLEU 39.8 (l0-0.1-s0: L0 gates, fine-tuned)`: the end may be cut off. */
export function pointLine({ about, n_kept, score }: PointOffer, total: number): string {
  return `${n_kept} of ${total} heads kept${score ? `, ${score}` : ""} (${about})`;
}

/** The same of a run alone, where nothing is known of its sweep. */
export function prunedLine({
  pruned_heads,
  layers,
  model,
}: Pick<TraceProps, "pruned_heads" | "layers" | "model">): string {
  const total = layers.reduce((sum, { n_heads }) => sum + n_heads, 0);
  return `${total - pruned_heads.length} of ${total} heads kept (point ${model.slice(model.lastIndexOf("/") + 1)})`;
}
