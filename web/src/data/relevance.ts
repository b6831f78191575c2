/** Where an answer came from: the relevance of tokens and heads to one logit, looked up and turned into colours. */

import type { RelevanceProps, ScoresProps, StackProps } from "../contract";
import { between, type Rgb, type Theme } from "../theme";
import { floats, type Grid, type Part } from "../wire";
import { number } from "./measures";
import type { Reading } from "./reading";

/** Which logit is asked about. In the address: `9:1234`, less another `9:1234-77`, by another rule `9:1234:attn`. */
export interface RelevanceQuery {
  /** −1 where a model answers once, for the whole input; `all` in the address. */
  position: number;
  target: number;
  other: number | null;
  rule: "cp" | "attn";
}

export const RULES = { cp: "CP-LRP", attn: "AttnLRP" } as const;

/** The name of the heads' relevance among the measures. */
export const RELEVANCE = "relevance";

export function parseRelevance(text: string): RelevanceQuery | null {
  const match = /^(all|\d{1,9}):(\d{1,9})(?:-(\d{1,9}))?(:attn)?$/.exec(text);
  if (!match) return null;
  return {
    position: match[1] === "all" ? -1 : Number(match[1]),
    target: Number(match[2]),
    other: match[3] === undefined ? null : Number(match[3]),
    rule: match[4] ? "attn" : "cp",
  };
}

export function relevanceText({ position, target, other, rule }: RelevanceQuery): string {
  const where = position < 0 ? "all" : String(position);
  return `${where}:${target}${other === null ? "" : `-${other}`}${rule === "attn" ? ":attn" : ""}`;
}

/** How strongly a value is coloured, and in which colour. */
export interface Tone {
  colour: Rgb;
  alpha: number;
}

const MOST_ALPHA = 0.5; // text stays readable on it, in both themes
const LEAST = 0.01; // of the largest: below, no colour

export class Relevance {
  readonly props: RelevanceProps;
  /** The largest relevance of a single token, by size: what full colour stands for. Of a picture, that of a
   *  patch: [CLS], whatever it brings, is no place in it. */
  readonly most: number;
  private readonly stacks = new Map<string, Float32Array>();

  constructor(part: Part<RelevanceProps>, stacks: readonly StackProps[] = []) {
    this.props = part.props;
    let most = 0;
    for (const [name, grid] of Object.entries(part.arrays)) {
      if (!name.startsWith("tokens/")) continue;
      const values = floats(grid as Grid);
      const stack = stacks.find((candidate) => `tokens/${candidate.name}` === name);
      const beside = new Set(stack?.kind === "patches" ? stack.special : []);
      this.stacks.set(name.slice("tokens/".length), values);
      values.forEach((value, index) => {
        if (!beside.has(index)) most = Math.max(most, Math.abs(value));
      });
    }
    this.most = most;
  }

  /** The relevance of every token of a stack; null where it has none. */
  of(stack: string): Float32Array | null {
    return this.stacks.get(stack) ?? null;
  }

  /** The relevance of tokens as they are read: a word's is the sum over its pieces. */
  read(reading: Reading): Float32Array | null {
    const own = this.of(reading.stack);
    if (!own || own.length !== reading.groupOf.length) return null;
    return Float32Array.from(reading.members, (group) => group.reduce((sum, at) => sum + (own[at] as number), 0));
  }

  tone(theme: Theme, value: number): Tone | null {
    const share = this.most ? Math.min(1, Math.abs(value) / this.most) : 0;
    if (share < LEAST) return null;
    return { colour: value < 0 ? theme.negative : theme.positive, alpha: MOST_ALPHA * share ** 0.75 };
  }

  /** The same for CSS. */
  css(value: number): string {
    const share = this.most ? Math.min(1, Math.abs(value) / this.most) : 0;
    if (share < LEAST) return "transparent";
    const sign = value < 0 ? "negative" : "positive";
    return `color-mix(in srgb, var(--${sign}) ${(100 * MOST_ALPHA * share ** 0.75).toFixed(1)}%, transparent)`;
  }

  /** The answer in words: “nurse”, or “nurse” rather than “doctor”. */
  get answer(): string {
    const { text, other } = this.props;
    return other === null ? quoted(text) : `${quoted(text)} rather than ${quoted(other)}`;
  }

  /** A value in words, for a tip, to three digits. */
  told(value: number): string {
    const digits = String(Number(value.toPrecision(3))).replace("-", "−");
    return `relevance ${value > 0 ? "+" : ""}${digits} to ${this.answer}`;
  }
}

/** Heads' relevance as a measure beside the others. */
export function measureOf(part: Part<RelevanceProps>): Part<ScoresProps> {
  const share = part.arrays.share as Grid;
  const most = floats(share).reduce((sum, value) => Math.max(sum, Math.abs(value)), 0) || 1;
  const about = `relevance to ${new Relevance(part).answer}, as a share of its layer (${RULES[part.props.rule]})`;
  return {
    kind: "scores",
    props: {
      heads: part.props.heads,
      methods: [{ name: RELEVANCE, about, baseline: null, low: -most, high: most }],
    },
    arrays: { [RELEVANCE]: share },
  };
}

/** The colour of a measure that has both signs: grey at zero. */
export function diverging(theme: Theme, value: number, low: number, high: number): Rgb {
  const size = Math.max(Math.abs(low), Math.abs(high)) || 1;
  return between(theme.line, value < 0 ? theme.negative : theme.positive, Math.min(1, Math.abs(value) / size));
}

export function quoted(text: string): string {
  return `‘${text.trim() || text.replaceAll("\n", "↵").replaceAll(/\s/g, "␣")}’`;
}

/** With its sign, always. */
export function signed(value: number): string {
  return value > 0 ? `+${number(value)}` : number(value);
}
