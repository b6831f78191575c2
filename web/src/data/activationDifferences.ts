/** Activations of two runs on the tokens that both have: what each of them is in A and in B. */

import type { Selection } from "../selection";
import type { Grid } from "../wire";
import { AnyWindow, type Numbers, remembering } from "./activations";

/** A number in both runs. */
export interface Two {
  a: number;
  b: number;
}

/** A candidate of the logit lens, with its log-probability in both runs. */
export interface Changed extends Two {
  text: string;
}

export interface Answer extends Changed {
  /** How many candidates came before it, in A and in B. */
  ranks: Two;
}

export interface ChangedNeuron extends Two {
  index: number;
}

export type Whose = Selection["whose"];

/** A − B. */
export function apart({ a, b }: Two): number {
  return a - b;
}

/** The difference of two probabilities, which are given as logarithms. */
export function moved({ a, b }: Two): number {
  return Math.exp(a) - Math.exp(b);
}

/** One run minus another. */
export class SignedWindow extends AnyWindow {
  get nTokens(): number {
    return this.part.arrays["a:norm"]?.shape[1] ?? 0;
  }

  hasStream(stream: string): boolean {
    return stream === "lens" ? !this.props.no_lens : `a:${stream}` in this.part.arrays;
  }

  value(stream: Numbers, place: number, position: number): Two {
    return {
      a: this.number(`a:${stream}`, stream, place, position),
      b: this.number(`b:${stream}`, stream, place, position),
    };
  }

  /** What one run or the other finds likely at a place: those first whose probability differs most. */
  candidates(place: number, position: number, most = Number.POSITIVE_INFINITY): Changed[] {
    const { candidate } = this.part.arrays;
    if (!candidate || !this.has(position)) return [];
    const from = this.cell(candidate, place, position);
    const candidates: Changed[] = [];
    for (let at = from; at < from + Math.min(most, candidate.shape[2] ?? 0); at++) {
      const id = candidate.values[at] as number;
      if (id >= 0) candidates.push({ text: this.props.texts[id] ?? "", ...this.two("logprob", at) });
    }
    return candidates;
  }

  /** What A or B predicts in the end, as it stands at a place. */
  answer(whose: "A" | "B", place: number, position: number): Answer | null {
    const { predicted } = this.part.arrays;
    const grid = this.part.arrays["a:answer"];
    if (!predicted || !grid || !this.has(position)) return null;
    const run = whose === "A" ? 0 : 1;
    const id = predicted.values[this.cell(predicted, run, position)] as number;
    const at = this.cell(grid, place, position) + run;
    return { text: this.props.texts[id] ?? "", ...this.two("answer", at), ranks: this.two("rank", at) };
  }

  /** The candidate that is followed. */
  followed(whose: Whose, place: number, position: number): Changed | null {
    if (whose !== "either") return this.answer(whose, place, position);
    return this.candidates(place, position, 1)[0] ?? null;
  }

  /** The neurons of a layer whose activations differ most. */
  neurons(layer: number, position: number): ChangedNeuron[] {
    const { neuron } = this.part.arrays;
    if (!neuron || !this.has(position)) return [];
    const from = this.cell(neuron, layer, position);
    return Array.from({ length: neuron.shape[2] ?? 0 }, (_, rank) => ({
      index: neuron.values[from + rank] as number,
      ...this.two("value", from + rank),
    }));
  }

  /** How much each head of an attention layer wrote. */
  heads(site: string, position: number): Two[] {
    const second = this.ofHeads(`b:heads/${site}`, position);
    return this.ofHeads(`a:heads/${site}`, position).map((norm, head) => ({
      a: norm,
      b: second[head] ?? Number.NaN,
    }));
  }

  private two(name: string, at: number): Two {
    const value = (side: string) =>
      ((this.part.arrays[`${side}:${name}`] as Grid | undefined)?.values[at] as number | undefined) ?? Number.NaN;
    return { a: value("a"), b: value("b") };
  }
}

export const differencesOf = remembering((part) => new SignedWindow(part));
