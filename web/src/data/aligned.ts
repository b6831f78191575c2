/** Which tokens of two runs stand for the same, and what of a selection in one means in the other. */

import type { AlignmentProps, TraceProps } from "../contract";
import type { Selection, Side } from "../selection";
import type { Grid, Part } from "../wire";
import { readingOf } from "./reading";
import { siteOf, stackOf } from "./trace";

export type Run = "a" | "b";

interface Token {
  side: Side;
  index: number;
}

export class Aligned {
  readonly props: AlignmentProps;
  private readonly pairs: Record<Run, Map<string, Int32Array>> = { a: new Map(), b: new Map() };

  constructor(part: Part<AlignmentProps>) {
    this.props = part.props;
    for (const [name, grid] of Object.entries(part.arrays)) {
      const at = name.indexOf(":");
      this.pairs[name.slice(0, at) as Run].set(name.slice(at + 1), (grid as Grid).values as Int32Array);
    }
  }

  /** Whether every token of both runs has its partner, position by position. */
  get isWhole(): boolean {
    return this.props.by === "tokens" && this.props.stacks.every((stack) => stack.is_whole);
  }

  /** Tokens of a run that the other has not, and that no difference shows. */
  alone(run: Run, trace: TraceProps): string[] {
    return this.props.stacks.flatMap((stack) => {
      const name = run === "a" ? stack.stack : stack.other;
      const { texts, special } = stackOf(trace, name);
      const pairs = this.pairs[run].get(name);
      return texts.filter((_, place) => pairs?.[place] === -1 && !special.includes(place));
    });
  }

  /** The positions in the other run that some positions of a stack stand for. */
  partners(from: Run, stack: string, positions: number[]): { stack: string; positions: number[] } | null {
    const paired = this.props.stacks.find((candidate) => (from === "a" ? candidate.stack : candidate.other) === stack);
    if (!paired) return null;
    const [to, name] = from === "a" ? (["b", paired.other] as const) : (["a", paired.stack] as const);
    const own = this.pairs[from].get(stack);
    const wanted = new Set(positions.map((place) => own?.[place] ?? -1).filter((pair) => pair >= 0));
    const partnerPlaces: number[] = [];
    this.pairs[to].get(name)?.forEach((pair, place) => {
      if (wanted.has(pair)) partnerPlaces.push(place);
    });
    return { stack: name, positions: partnerPlaces };
  }

  /** A token as read in one run, as read in the other; null where it has no partner. */
  token(from: Run, { side, index }: Token, traces: Record<Run, TraceProps>, how: Record<Run, Selection>): Token | null {
    const to = from === "a" ? "b" : "a";
    const own = placesOf(traces[from], how[from], side);
    const theirs = placesOf(traces[to], how[to], side);
    const partners = this.partners(from, own.stack, own.members[index] ?? []);
    if (!partners || partners.stack !== theirs.stack) return null;
    const group = partners.positions.map((place) => theirs.groupOf[place] ?? -1).find((place) => place >= 0);
    return group === undefined ? null : { side, index: group };
  }

  /** Tokens that are switched off in one run, in the other. */
  off(from: Run, off: string[]): string[] {
    return off.flatMap((name) => {
      const at = name.lastIndexOf(":");
      const partners = this.partners(from, name.slice(0, at), [Number(name.slice(at + 1))]);
      return partners?.positions.map((place) => `${partners.stack}:${place}`) ?? [];
    });
  }
}

function placesOf(trace: TraceProps, selection: Selection, side: Side) {
  const site = siteOf(trace, selection.site);
  const [stack, length] = side === "query" ? [site.stack, site.n_queries] : [site.key_stack, site.n_keys];
  return readingOf(stackOf(trace, stack), length, selection);
}
