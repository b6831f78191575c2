/** Activations of one stack: asked for some tokens at a time, since what belongs to single tokens is much. */

import type { ActivationsProps, RunEvent } from "../contract";
import { type Source, SourceError } from "../source";
import type { Grid, Part } from "../wire";

/** Tokens that are asked for together. */
const WINDOW = 128;
const N_CANDIDATES = 5;

export interface Candidate {
  text: string;
  logprob: number;
}

export interface Neuron {
  index: number;
  value: number;
  share: number;
}

/** What there is a number of for every place and token, in the order that it is told. */
export const NUMBERS = ["norm", "cosine", "attention", "cross", "mlp"] as const;
export type Numbers = (typeof NUMBERS)[number];

/** Some tokens of one run or of two: numbers of all of them, and what belongs to single tokens of those from `first` on. */
export abstract class AnyWindow {
  readonly props: ActivationsProps;

  constructor(protected readonly part: Part<ActivationsProps>) {
    this.props = part.props;
  }

  abstract get nTokens(): number;
  abstract hasStream(stream: string): boolean;

  get nPlaces(): number {
    return this.props.places.length;
  }

  has(position: number): boolean {
    return position >= this.props.first && position < this.props.first + this.props.count;
  }

  /** A number of a place and a token; NaN where there is none, as before the first layer, which wrote nothing. */
  protected number(name: string, stream: Numbers, place: number, position: number): number {
    const grid = this.part.arrays[name];
    const row = stream === "norm" || stream === "cosine" ? place : place - 1;
    return grid && row >= 0 ? (grid.values[row * this.nTokens + position] as number) : Number.NaN;
  }

  /** Where the numbers of a place (or layer) and a token begin. */
  protected cell(grid: Grid, row: number, position: number): number {
    const [, width = 0, depth = 1] = grid.shape;
    return (row * width + position - this.props.first) * depth;
  }

  /** A number for each head of an attention layer. */
  protected ofHeads(name: string, position: number): number[] {
    const grid = this.part.arrays[name];
    if (!grid || !this.has(position)) return [];
    const [count = 0, width = 0] = grid.shape;
    return Array.from(
      { length: count },
      (_, head) => grid.values[head * width + position - this.props.first] as number,
    );
  }
}

/** Activations of one run. */
export class Window extends AnyWindow {
  get nTokens(): number {
    return this.part.arrays.norm?.shape[1] ?? 0;
  }

  value(stream: Numbers, place: number, position: number): number {
    return this.number(stream, stream, place, position);
  }

  hasStream(stream: string): boolean {
    return stream === "lens" ? !this.props.no_lens : stream in this.part.arrays;
  }

  candidates(place: number, position: number): Candidate[] {
    const { lens, logprob } = this.part.arrays;
    if (!lens || !logprob || !this.has(position)) return [];
    const from = this.cell(lens, place, position);
    return Array.from({ length: lens.shape[2] ?? 0 }, (_, rank) => ({
      text: this.props.texts[lens.values[from + rank] as number] ?? "",
      logprob: logprob.values[from + rank] as number,
    }));
  }

  /** How many candidates came before the one that the last place puts first. */
  rank(place: number, position: number): number {
    const { rank } = this.part.arrays;
    return rank && this.has(position) ? (rank.values[this.cell(rank, place, position)] as number) : Number.NaN;
  }

  /** The log-probability at a place of what the last place puts first. */
  answer(place: number, position: number): number {
    const { answer } = this.part.arrays;
    return answer && this.has(position) ? (answer.values[this.cell(answer, place, position)] as number) : Number.NaN;
  }

  neurons(layer: number, position: number): Neuron[] {
    const { neuron, value, share } = this.part.arrays;
    if (!neuron || !value || !share || !this.has(position)) return [];
    const from = this.cell(neuron, layer, position);
    return Array.from({ length: neuron.shape[2] ?? 0 }, (_, rank) => ({
      index: neuron.values[from + rank] as number,
      value: value.values[from + rank] as number,
      share: share.values[from + rank] as number,
    }));
  }

  /** How much each head of an attention layer wrote. */
  heads(site: string, position: number): number[] {
    return this.ofHeads(`heads/${site}`, position);
  }
}

type Hear = (event: RunEvent | null) => void;

/** What is known of one stack of one trace (or of one minus another), and how to learn more. */
export class ActivationsOf<Known extends AnyWindow = Window> {
  /** Any window: norms are in all of them. */
  any: Known | null = null;
  private readonly windows = new Map<number, Known>();
  private readonly coming = new Map<number, Promise<void>>();
  private readonly listeners = new Set<Hear>();
  private stop = new AbortController();

  constructor(
    private readonly source: Source,
    private readonly stack: string,
    private readonly read: (part: Part<ActivationsProps>) => Known,
  ) {}

  /** Whether what has not come yet still can. */
  get isLive(): boolean {
    return !!this.source.task;
  }

  /** All windows that have come. */
  get all(): Iterable<Known> {
    return this.windows.values();
  }

  at(position: number): Known | null {
    const window = this.windows.get(Math.floor(position / WINDOW)) ?? this.any;
    return window?.has(position) ? window : null;
  }

  /** Told while something is worked out, and with null when something has come. */
  listen(hear: Hear): () => void {
    this.listeners.add(hear);
    return () => {
      this.listeners.delete(hear);
      // Nobody looks any more: what is still being worked out is stopped.
      if (!this.listeners.size) this.halt();
    };
  }

  /** Have these positions, [first, last), ready. */
  async need(first: number, last: number): Promise<void> {
    const wanted: Promise<void>[] = [];
    for (let index = Math.floor(first / WINDOW); index <= Math.floor(Math.max(first, last - 1) / WINDOW); index++) {
      if (!this.windows.has(index)) wanted.push(this.coming.get(index) ?? this.begin(index));
    }
    await Promise.all(wanted);
  }

  /** Have all positions ready, one stretch after the other: the server has others to answer too. */
  async whole(count: number, report: (done: number) => void): Promise<void> {
    for (let first = 0; first < count; first += WINDOW) {
      report(first);
      await this.need(first, first + 1);
    }
  }

  private begin(index: number): Promise<void> {
    const { signal } = this.stop;
    const work = this.load(index, signal)
      .then((window) => {
        this.windows.set(index, window);
        this.any ??= window;
      })
      .finally(() => {
        if (!signal.aborted) this.coming.delete(index);
        for (const hear of this.listeners) hear(null);
      });
    this.coming.set(index, work);
    return work;
  }

  private async load(index: number, signal: AbortSignal): Promise<Known> {
    const { source, stack } = this;
    if (!source.task) {
      if (source.has?.(`activations/${stack}`) === false) {
        throw new SourceError(
          "This saved page holds no activations.",
          "Open the input in the workbench, or save a page of them: hs.activations_view(trace, model).save(…).",
          "NotSaved",
        );
      }
      return this.read(await source.part<ActivationsProps>(`activations/${stack}`, signal));
    }
    const options = { stack, first: index * WINDOW, count: WINDOW, k: N_CANDIDATES };
    const hear = (event: RunEvent) => {
      for (const listener of this.listeners) listener(event);
    };
    return this.read(await source.task<ActivationsProps>("activations", options, hear, signal));
  }

  private halt(): void {
    this.stop.abort();
    this.stop = new AbortController();
    this.coming.clear();
  }
}

/** One for each stack of each source, as long as somebody holds the source. */
export function remembering<Known extends AnyWindow>(read: (part: Part<ActivationsProps>) => Known) {
  const known = new WeakMap<Source, Map<string, ActivationsOf<Known>>>();
  return (source: Source, stack: string): ActivationsOf<Known> => {
    const stacks = known.get(source) ?? new Map<string, ActivationsOf<Known>>();
    known.set(source, stacks);
    const activations = stacks.get(stack) ?? new ActivationsOf(source, stack, read);
    stacks.set(stack, activations);
    return activations;
  };
}

export const activationsOf = remembering((part) => new Window(part));

/** A prediction without what cannot be seen, unless that is all there is. */
export function visible(text: string): string {
  return text.trim() || text.replaceAll("\n", "↵").replaceAll(/\s/g, "␣") || "(empty)";
}
