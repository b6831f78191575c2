/** What stands in the cells of the activations view, for one run; `activationsDifference.ts` is the same for two. */

import { type ActivationsOf, type AnyWindow, NUMBERS, type Numbers, visible } from "../data/activations";
import { number } from "../data/measures";
import type { Selection } from "../selection";
import type { Theme } from "../theme";
import { type Legend, linearLegend, logLegend, rootLegend } from "./legend";

export type Stream = Selection["stream"];

/** What is written in a cell. */
export interface Words {
  text: string;
  /** More of it, where there is room. */
  whole?: string;
  isBold?: boolean;
  /** There is nothing to see here. */
  isQuiet?: boolean;
}

export interface Cells {
  /** What can be drawn of what was asked for. */
  readonly stream: Stream;
  /** Whether shades have a sign. */
  readonly isSigned: boolean;
  /** From 0 to 1; with a sign, from −1 to 1. */
  shade(place: number, position: number): number;
  /** What the shades mean; null while nothing is known. */
  legend(theme: Theme): Legend | null;
  words(place: number, position: number): Words;
  /** What is under the pointer, below the name of the cell. */
  tip(place: number, position: number): string[];
  /** The line over the stage: what is drawn, and what is to be known about it. */
  told(): { title: string; notes: string[] };
  /** The numbers of a cell, and what they are. */
  columns(): string[];
  row(place: number, position: number): (string | number)[];
}

/** The shade of the smallest number: there is something, however little. */
const FAINTEST = 0.06;
const TITLES: Record<Stream, string> = {
  lens: "what each layer would predict",
  norm: "norm of the residual stream",
  attention: "norm of what attention wrote",
  cross: "norm of what cross-attention wrote",
  mlp: "norm of what the MLP wrote",
  cosine: "cosine to the last layer's stream",
};
const NAMES: Partial<Record<Stream, string>> = {
  cosine: "cosine to last",
  attention: "written by attention",
  cross: "written by cross-attention",
  mlp: "written by the MLP",
};

export function titleOf(stream: Stream): string {
  return TITLES[stream];
}

export function named(stream: Stream): string {
  return NAMES[stream] ?? stream;
}

/** What can be drawn where something is asked for that there is none of. */
export function drawn(known: AnyWindow | null, wanted: Stream): Stream {
  return known?.hasStream(wanted) === false ? "norm" : wanted;
}

/** How the note begins that says why a run has no predictions layer by layer. */
export const NO_LENS = "no logit lens: ";

/** Why another stream is shown than the one asked for. */
export function notesOn({ props }: AnyWindow, wanted: Stream, stream: Stream): string[] {
  if (wanted === stream) return [];
  if (wanted === "lens") return [`${NO_LENS}${props.no_lens}`];
  return [`nothing to show of ${named(wanted)}: ${props.no_written || "no such layer"}`];
}

/** Whether a layer's change is just the sum of what is written. */
export function noteOnSum({ props }: AnyWindow, stream: Stream): string[] {
  if (!["attention", "cross", "mlp"].includes(stream)) return [];
  return [
    props.is_sum
      ? "a layer adds just what these write"
      : "the model normalises between, so a layer's change is not just their sum",
  ];
}

export class PlainCells implements Cells {
  readonly isSigned = false;
  readonly stream: Stream;
  private range_: [number, number] | null = null;

  constructor(
    private readonly of: ActivationsOf,
    private readonly selection: Selection,
  ) {
    this.stream = drawn(of.any, selection.stream);
  }

  shade(place: number, position: number): number {
    if (this.stream === "lens") {
      const best = this.of.at(position)?.candidates(place, position)[0];
      return best ? Math.sqrt(Math.exp(best.logprob)) : 0;
    }
    const value = this.value(place, position);
    if (Number.isNaN(value)) return 0;
    if (this.stream === "cosine") return Math.max(0, Math.min(1, value));
    const [low, high] = this.range();
    if (high <= low) return 0.5;
    return (
      FAINTEST + (1 - FAINTEST) * Math.max(0, Math.min(1, Math.log(Math.max(value, low) / low) / Math.log(high / low)))
    );
  }

  legend(theme: Theme): Legend | null {
    if (!this.of.any) return null;
    if (this.stream === "lens") return rootLegend(theme, "probability of the prediction");
    if (this.stream === "cosine") return linearLegend(theme, titleOf(this.stream), 0, 1);
    const [low, high] = this.range();
    return logLegend(theme, titleOf(this.stream), low, high, FAINTEST);
  }

  words(place: number, position: number): Words {
    if (this.stream !== "lens") {
      const value = this.value(place, position);
      return { text: Number.isNaN(value) ? "" : number(value) };
    }
    const here = this.of.at(position);
    const best = here?.candidates(place, position)[0];
    return best
      ? { text: visible(best.text), isBold: here?.rank(place, position) === 0 }
      : { text: this.of.isLive ? "…" : "" };
  }

  tip(place: number, position: number): string[] {
    const known = this.of.any;
    if (!known) return [];
    const lines: string[] = [];
    for (const stream of NUMBERS) {
      const value = known.value(stream, place, position);
      if (known.hasStream(stream) && !Number.isNaN(value)) lines.push(`${named(stream)}  ${number(value)}`);
    }
    const here = this.of.at(position);
    for (const candidate of here?.candidates(place, position) ?? []) {
      lines.push(`${visible(candidate.text)}  ${(100 * Math.exp(candidate.logprob)).toFixed(1)} %`);
    }
    const rank = here?.rank(place, position) ?? Number.NaN;
    if (!Number.isNaN(rank)) lines.push(`the last layer's answer is number ${rank + 1} here`);
    return lines;
  }

  told(): { title: string; notes: string[] } {
    const known = this.of.any;
    if (!known) return { title: "", notes: [] };
    const notes = notesOn(known, this.selection.stream, this.stream);
    if (this.stream === "lens") notes.push("coloured by probability; bold where it is what the last layer predicts");
    else if (this.stream !== "cosine") {
      const [low, high] = this.range();
      notes.push(`${number(low)} to ${number(high)}, log scale`);
    }
    return { title: TITLES[this.stream], notes: [...notes, ...noteOnSum(known, this.stream)] };
  }

  columns(): string[] {
    return [...this.shown.map(named), "prediction", "probability", "rank of the last prediction"];
  }

  row(place: number, position: number): (string | number)[] {
    const here = this.of.at(position);
    const best = here?.candidates(place, position)[0];
    return [
      ...this.shown.map((stream) => this.of.any?.value(stream, place, position) ?? Number.NaN),
      best?.text ?? "",
      best ? Math.exp(best.logprob) : Number.NaN,
      here ? here.rank(place, position) + 1 : Number.NaN,
    ];
  }

  private get shown(): Numbers[] {
    return NUMBERS.filter((stream) => this.of.any?.hasStream(stream));
  }

  private value(place: number, position: number): number {
    return this.stream === "lens" ? Number.NaN : (this.of.any?.value(this.stream, place, position) ?? Number.NaN);
  }

  /** The smallest and the largest number of what is drawn. */
  private range(): [number, number] {
    if (this.range_) return this.range_;
    const known = this.of.any;
    let low = Number.POSITIVE_INFINITY;
    let high = 0;
    for (let place = 0; place < (known?.nPlaces ?? 0); place++) {
      for (let position = 0; position < (known?.nTokens ?? 0); position++) {
        const value = this.value(place, position);
        if (value > 0 && value < low) low = value;
        if (value > high) high = value;
      }
    }
    const range: [number, number] = [Math.min(low, high || 1), high || 1];
    if (known) this.range_ = range;
    return range;
  }
}
