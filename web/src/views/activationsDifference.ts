/** What stands in the cells of the activations view where two runs are subtracted: A − B, blue where A has more. */

import { apart, type Changed, moved, type SignedWindow, type Two, type Whose } from "../data/activationDifferences";
import { type ActivationsOf, NUMBERS, type Numbers, visible } from "../data/activations";
import { number } from "../data/measures";
import { exact } from "../data/neuron";
import type { Selection } from "../selection";
import type { Theme } from "../theme";
import { type Cells, drawn, named, noteOnSum, notesOn, type Stream, titleOf, type Words } from "./activationsCells";
import { type Legend, signedLegend } from "./legend";

/** What is less than this share of the runs' own numbers is rounding, and stays pale. */
const ROUNDING = 1e-5;
const FOLLOWED: Record<Whose, string> = {
  either: "the prediction whose probability differs most",
  A: "the probability of what A predicts in the end",
  B: "the probability of what B predicts in the end",
};

/** With its sign, also where that is +. */
export function signed(value: number): string {
  const text = number(value);
  return value > 0 && text !== "0" ? `+${text}` : text;
}

/** A share as a percentage. */
export function percent(logprob: number): string {
  return `${(100 * Math.exp(logprob)).toFixed(1)} %`;
}

export class SignedCells implements Cells {
  readonly isSigned = true;
  readonly stream: Stream;
  private readonly whose: Whose;

  constructor(
    private readonly of: ActivationsOf<SignedWindow>,
    private readonly selection: Selection,
  ) {
    this.stream = drawn(of.any, selection.stream);
    this.whose = selection.whose;
  }

  /** On the root scale, as in the other views. */
  shade(place: number, position: number): number {
    const value = this.difference(place, position);
    return Number.isNaN(value) ? 0 : Math.sign(value) * Math.sqrt(Math.min(1, Math.abs(value) / this.most()));
  }

  legend(theme: Theme): Legend | null {
    if (!this.of.any) return null;
    const quantity = this.stream === "lens" ? "probability" : named(this.stream);
    return signedLegend(theme, `difference of ${quantity}, A − B`, this.most(), "square-root");
  }

  words(place: number, position: number): Words {
    if (this.stream !== "lens") {
      const value = this.difference(place, position);
      const text = Number.isNaN(value) ? "" : signed(value);
      return { text, isQuiet: text === "0" };
    }
    const candidate = this.of.at(position)?.followed(this.whose, place, position);
    if (!candidate) return { text: this.of.isLive ? "…" : "" };
    const [text, change] = [visible(candidate.text), signed(moved(candidate))];
    if (change === "0") return { text: this.whose === "either" ? text : change, isQuiet: true };
    return { text: this.whose === "either" ? text : change, whole: `${text} ${change}` };
  }

  tip(place: number, position: number): string[] {
    const known = this.of.any;
    if (!known) return [];
    const lines: string[] = [];
    for (const stream of NUMBERS) {
      const two = known.value(stream, place, position);
      if (known.hasStream(stream) && !Number.isNaN(two.a)) lines.push(`${named(stream)}  ${three(two)}`);
    }
    const here = this.of.at(position);
    const followed = this.whose === "either" ? null : here?.followed(this.whose, place, position);
    const candidates = followed ? [followed] : (here?.candidates(place, position, 6) ?? []);
    for (const candidate of candidates) lines.push(candidateLine(candidate));
    const answers = [here?.answer("A", place, position), here?.answer("B", place, position)];
    const isSame = answers[0]?.text === answers[1]?.text;
    answers.slice(0, isSame ? 1 : 2).forEach((answer, run) => {
      if (!answer) return;
      const places = `number ${answer.ranks.a + 1} in A, ${answer.ranks.b + 1} in B`;
      lines.push(`the answer of ${isSame ? "both" : "AB"[run]}, ${visible(answer.text)}: ${places}`);
    });
    return lines;
  }

  told(): { title: string; notes: string[] } {
    const known = this.of.any;
    if (!known) return { title: "", notes: [] };
    const title = this.stream === "lens" ? FOLLOWED[this.whose] : titleOf(this.stream);
    const notes = notesOn(known, this.selection.stream, this.stream);
    const [full, { most, own }] = [this.most(), this.extent()];
    if (most === 0) notes.push("no difference in anything shown");
    else if (most < ROUNDING * own) notes.push("no difference beyond rounding");
    else notes.push(`full colour: a difference of ${full < 0.001 ? exact(full) : number(full)}, square-root scale`);
    return { title: `A − B: ${title}`, notes: [...notes, ...noteOnSum(known, this.stream)] };
  }

  columns(): string[] {
    const names = [...this.shown.map(named), "log-probability"].map((name) => [
      `${name} A`,
      `${name} B`,
      `${name} A − B`,
    ]);
    return [...names.slice(0, -1).flat(), "prediction", ...(names.at(-1) ?? [])];
  }

  row(place: number, position: number): (string | number)[] {
    const candidate = this.of.at(position)?.followed(this.whose, place, position);
    const none: Two = { a: Number.NaN, b: Number.NaN };
    const values = this.shown.map((stream) => this.of.any?.value(stream, place, position) ?? none);
    const parts = (two: Two) => [two.a, two.b, apart(two)];
    return [...values.flatMap(parts), candidate?.text ?? "", ...parts(candidate ?? none)];
  }

  private get shown(): Numbers[] {
    return NUMBERS.filter((stream) => this.of.any?.hasStream(stream));
  }

  /** A − B: of a prediction, of its probability. */
  private difference(place: number, position: number): number {
    if (this.stream === "lens") {
      const candidate = this.of.at(position)?.followed(this.whose, place, position);
      return candidate ? moved(candidate) : Number.NaN;
    }
    const two = this.of.any?.value(this.stream, place, position);
    return two ? apart(two) : Number.NaN;
  }

  /** The difference that has the full colour. */
  private most(): number {
    const { most, own } = this.extent();
    return Math.max(most, ROUNDING * own, 1e-12);
  }

  private known: { most: number; own: number; windows: number } | null = null;

  /** The largest difference, and the largest number itself: of all tokens, or of those whose predictions have come. */
  private extent(): { most: number; own: number } {
    const windows = [...this.of.all];
    if (this.known?.windows === windows.length) return this.known;
    const extent = { most: 0, own: 0, windows: windows.length };
    const take = (two: Two | null | undefined, how: (two: Two) => number, size: number) => {
      if (!two || Number.isNaN(two.a)) return;
      extent.most = Math.max(extent.most, Math.abs(how(two)));
      extent.own = Math.max(extent.own, size);
    };
    const { stream } = this;
    for (const window of stream === "lens" ? windows : windows.slice(0, 1)) {
      const first = stream === "lens" ? window.props.first : 0;
      const last = stream === "lens" ? first + window.props.count : window.nTokens;
      for (let place = 0; place < window.nPlaces; place++) {
        for (let position = first; position < last; position++) {
          if (stream === "lens") take(window.followed(this.whose, place, position), moved, 1);
          else {
            const two = window.value(stream, place, position);
            take(two, apart, Math.abs(two.a));
          }
        }
      }
    }
    this.known = extent;
    return extent;
  }
}

/** A number in both runs, and the difference. */
export function three(two: Two): string {
  return `${signed(apart(two))}: ${exact(two.a)} less ${exact(two.b)}`;
}

/** A candidate in both runs, and the difference of its log-probabilities. */
function candidateLine(candidate: Changed): string {
  return `${visible(candidate.text)}  ${percent(candidate.a)} less ${percent(candidate.b)}, log-probability ${signed(apart(candidate))}`;
}
