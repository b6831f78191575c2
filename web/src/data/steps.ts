/** The steps of text that a model wrote: at step k it had read the tokens up to one, its query, and wrote the next. */

import type { AnswerProps, StackProps, TraceProps } from "../contract";
import type { Selection } from "../selection";
import { readingOf } from "./reading";

export interface Steps {
  stack: StackProps;
  /** By step: the position of the last token that was read, whose row of attention led to the one that was written. */
  queries: number[];
}

/** The steps of a trace; null where the model wrote nothing. */
export function stepsOf(trace: TraceProps): Steps | null {
  const { steps } = trace;
  const stack =
    trace.stacks.find((stack) => stack.name === "decoder") ??
    trace.stacks.find((stack) => stack.texts.length === steps?.length);
  if (!steps || !stack) return null;
  const queries: number[] = [];
  steps.forEach((step, position) => {
    if (step !== null && position > 0) queries[step] = position - 1;
  });
  // What a decoder wrote last is read by nobody, so it is no token of the trace: its step is there all the same.
  if (stack.name === "decoder") queries.push(steps.length - 1);
  return queries.length ? { stack, queries } : null;
}

export function clampedStep(trace: TraceProps, step: number | null): number | null {
  const count = step === null ? 0 : (stepsOf(trace)?.queries.length ?? 0);
  return step === null || !count ? null : Math.min(step, count - 1);
}

/** The last position that is shown of a stack; null where all are. */
export function untilOf(trace: TraceProps, step: number | null, stack: string): number | null {
  const steps = step === null ? null : stepsOf(trace);
  return step !== null && steps?.stack.name === stack ? (steps.queries[step] ?? null) : null;
}

/** The first position of a stack that the model wrote itself; null where it wrote none. */
export function writtenFrom(trace: TraceProps, stack: string): number | null {
  const steps = trace.steps && stepsOf(trace);
  return steps?.stack.name === stack ? (steps.queries[0] ?? 0) + 1 : null;
}

/** What changes when a step is gone to: its query is the token in focus, where the layer in view has it. */
export function stepTo(trace: TraceProps, selection: Selection, step: number | null): Partial<Selection> {
  const steps = stepsOf(trace);
  const site = trace.layers.find((layer) => layer.site === selection.site);
  if (step === null || !steps || !site) return { step: null, token: null };
  if (site.stack !== steps.stack.name) return { step };
  const query = steps.queries[step] ?? 0;
  const index = readingOf(steps.stack, site.n_queries, selection).groupOf[query] ?? -1;
  return { step, token: index < 0 ? null : { side: "query", index } };
}

/** What the model answered at a step, and which token that became; empty where none follows. */
export function answerAt(trace: TraceProps, step: number): { answer: AnswerProps | null; written: string } {
  const steps = stepsOf(trace);
  const query = steps?.queries[step];
  if (!steps || query === undefined) return { answer: null, written: "" };
  const answer =
    trace.answers.find((candidate) => candidate.stack === steps.stack.name && candidate.position === query) ?? null;
  return { answer, written: steps.stack.texts[query + 1] ?? answer?.candidates[0]?.text ?? "" };
}
