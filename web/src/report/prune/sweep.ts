/** What the report of a sweep holds: the JSON that Python's `reports/pruning/sweep_page.py` puts into its page. */

import { figure, isKnown } from "../figures";

export interface Metric {
  name: string;
  label: string;
  unit: string;
  higher_is_better: boolean;
}

export interface ScoreJson {
  value: number | null;
  low: number | null;
  high: number | null;
  n: number;
  split: string;
}

/** A setting of a series: the mean over its points, which differ in their seed. */
export interface CurvePoint {
  heads: number;
  score: number;
  low: number;
  high: number;
  points: { id: string; heads: number; score: number }[];
}

export interface Series {
  label: string;
  method: string;
  is_tuned: boolean;
  is_own: boolean;
  is_scratch: boolean;
  curve: CurvePoint[];
}

export interface Panel {
  key: string;
  title: string;
  axis: string;
  total: number;
  /** All heads after as much fine-tuning: the mean over seeds, and their extremes. */
  tuned_baseline: { value: number; low: number; high: number; n: number } | null;
  series: Series[];
  conclusion: string;
  published: string[];
}

export interface Bar {
  label: string;
  heads: number;
  n_seeds: number;
  families: Record<string, number>;
  /** The fewest and the most heads with a role, over seeds. */
  low: number;
  high: number;
}

export interface RolesFigure {
  title: string;
  bars: Bar[];
  conclusion: string;
  published: string;
}

export interface TypesFigure {
  curves: { type: string; points: { id: string; total: number; heads: number }[] }[];
  total: number;
  conclusion: string;
  published: string;
}

export interface LayersFigure {
  type: string;
  columns: { id: string; total: number }[];
  rows: { site: string; heads: number; kept: number[] }[];
  conclusion: string;
}

export interface Point {
  id: string;
  label: string;
  lambda: string;
  seed: number;
  /** By type of attention: heads that survive, of how many. */
  counts: Record<string, [number, number]>;
  total: [number, number];
  score: ScoreJson;
  /** By layer, 1 where a head survives. */
  mask: Record<string, number[]>;
  roles: Record<string, { role: string; family: string; short: string }> | null;
  is_chosen: boolean;
}

export interface ResultRow {
  lambda: string;
  counts: Record<string, number>;
  /** From the trained model, and from scratch. */
  scores: [ScoreJson | null, ScoreJson | null];
  /** Heads kept from scratch by type, where they are not those of the row. */
  scratch_heads: string;
}

export interface PublishedRow {
  data: string;
  counts: Record<string, number>;
  scores: (number | null)[];
}

/** An L0 point, and as many heads chosen in other ways. `untuned` says what was done to L0's weights before. */
export interface Alternatives {
  id: string;
  heads: number;
  untuned: string;
  rows: { label: string; counts: Record<string, number> | null; untuned: string; tuned: string; is_l0: boolean }[];
}

/** What the original model and the slim one cost. */
export interface Smaller {
  point: string | null;
  heads: [number, number];
  rows: { name: string; parameters: number; bytes: number; flops: number; seconds: number }[];
  timed: string;
  refused: string;
  is_plain: boolean;
}

export interface SweepJson {
  metric: Metric;
  types: { name: string; label: string; heads: number }[];
  layers: { site: string; type: string; heads: number; groups: number }[];
  baseline: ScoreJson | null;
  panels: Panel[];
  types_figure: TypesFigure;
  layers_figure: LayersFigure[];
  roles: RolesFigure[];
  roles_about: string;
  table: { rows: ResultRow[]; published: PublishedRow[]; source: string; conclusion: string };
  alternatives: Alternatives[];
  smaller: Smaller | null;
  points: Point[];
  csv: string;
}

/** A score as the metric is written: BLEU with one decimal, others with three. */
export function scoreText({ name }: Metric, score: number | null | undefined): string {
  return isKnown(score) ? score.toFixed(name === "bleu" ? 1 : 3).replace("-", "−") : "–";
}

/** The metric with its unit, as axes name it. */
export function metricTitle({ label, unit, higher_is_better }: Metric): string {
  return `${label}${unit ? `, ${unit}` : ""} (${higher_is_better ? "higher" : "lower"} is better)`;
}

/** Heads by type of attention, as 2 / 8 / 19. */
export function countsText(types: SweepJson["types"], counts: Record<string, number>): string {
  return types.map(({ name }) => counts[name] ?? "–").join(" / ");
}

/** What `countsText` counts. */
export function countsTitle(types: SweepJson["types"]): string {
  return types.length === 1
    ? "Heads"
    : `Heads: ${types.map(({ label }) => label.toLowerCase().replace("-attention", "")).join(" / ")}`;
}

/** Numbers of heads: whole, or the mean over seeds. */
export function headCount(count: number): string {
  return Number.isInteger(count) ? String(count) : figure(count);
}
