/** Measures of heads, looked up by head and by name. */

import { MEASURE_TERMS, type MethodProps, type ScoresProps, type TraceProps } from "../contract";
import { floats, type Part } from "../wire";
import { headName } from "./trace";

export interface Measured {
  method: MethodProps;
  value: number;
}

export class Measures {
  readonly methods: MethodProps[];
  private readonly places: Map<string, number>;
  private readonly values: Map<string, Float32Array>;

  constructor(part: Part<ScoresProps> | null) {
    this.methods = part?.props.methods ?? [];
    this.places = new Map((part?.props.heads ?? []).map((head, index) => [head, index]));
    this.values = new Map(Object.entries(part?.arrays ?? {}).map(([name, grid]) => [name, floats(grid)]));
  }

  /** NaN where the measure says nothing. */
  of(head: string, method: string): number {
    return this.values.get(method)?.[this.places.get(head) ?? -1] ?? Number.NaN;
  }

  /** A value as a share of its measure's range. */
  share(head: string, method: string): number {
    const about = this.methods.find((candidate) => candidate.name === method);
    return about ? along(about, this.of(head, method)) : Number.NaN;
  }

  /** What is known of a head in this input, without measures that say nothing about it. */
  known(head: string): Measured[] {
    return this.methods
      .filter((method) => isOwn(method.name))
      .map((method) => ({ method, value: this.of(head, method.name) }))
      .filter((measure) => !Number.isNaN(measure.value));
  }

  /** The `count` of those that lie furthest from what chance gives, in their usual order; relevance, where an answer was
   *  chosen, always. */
  telling(head: string, count: number): Measured[] {
    const known = this.known(head);
    const far = ({ method, value }: Measured) =>
      method.name === "relevance"
        ? 9
        : method.baseline === null
          ? 0
          : Math.abs(along(method, value) - along(method, method.baseline));
    const chosen = new Set([...known].sort((a, b) => far(b) - far(a)).slice(0, count));
    return known.filter((measure) => chosen.has(measure));
  }

  /** The measures that say most about a head: those asked for, then those furthest from what chance gives. */
  striking(head: string, asked: string[], count: number): { name: string; value: number }[] {
    const far = ({ name, baseline, low, high }: MethodProps) =>
      asked.includes(name) ? 9 : (this.of(head, name) - (baseline ?? high)) / Math.max(1e-12, high - low);
    return this.methods
      .filter(({ name }) => !Number.isNaN(this.of(head, name)) && (isOwn(name) || asked.includes(name)))
      .sort((a, b) => far(b) - far(a))
      .slice(0, count)
      .map(({ name }) => ({ name, value: this.of(head, name) }));
  }

  /** What stands out most in a head: the measure furthest above what chance gives, if any is far above it.
   *  The plain difference, so that what is rare by chance (the next token) goes before what is not (the same sentence). */
  best(head: string): { name: string; value: number } | null {
    let best: { name: string; value: number } | null = null;
    let most = 0.35;
    for (const { name, baseline, low, high } of this.methods) {
      if (baseline === null || unitOf(name) || high !== 1 || !isOwn(name) || isEcho(name)) continue;
      const value = this.of(head, name);
      const above = (value - baseline) / Math.max(1e-12, high - low);
      if (above > most) [most, best] = [above, { name, value }];
    }
    return best;
  }
}

/** Where the head is that has the most of a measure; null if that is not known, or hardly above chance everywhere. */
export function strongestHead(
  trace: TraceProps,
  measures: Measures,
  name: string,
): { site: string; head: number } | null {
  const method = measures.methods.find((candidate) => candidate.name === name);
  let strongest: { site: string; head: number } | null = null;
  let most = (method?.baseline ?? 0) + (method ? 0.2 * (method.high - method.low) : 0);
  for (const { site, n_heads } of trace.layers) {
    for (let head = 0; head < n_heads; head++) {
      const value = measures.of(headName(site, head), name);
      if (value > most) [most, strongest] = [value, { site, head }];
    }
  }
  return strongest;
}

/** Measures of several sources as one, over the heads of all of them; of two with a name, the first counts. */
export function joined(parts: (Part<ScoresProps> | null)[]): Part<ScoresProps> | null {
  const known = parts.filter((part) => part !== null);
  if (!known.length) return null;
  const heads = [...new Set([...known].reverse().flatMap((part) => part.props.heads))];
  const methods: MethodProps[] = [];
  const arrays: Part<ScoresProps>["arrays"] = {};
  for (const part of known) {
    const measures = new Measures(part);
    for (const method of part.props.methods) {
      if (method.name in arrays) continue;
      methods.push(method);
      const values = Float32Array.from(heads, (head) => measures.of(head, method.name));
      arrays[method.name] = { dtype: "float32", shape: [heads.length], code: "linear", values };
    }
  }
  return { kind: "scores", props: { heads, methods }, arrays };
}

/** Where a value lies between the ends of its measure's bar, 0 to 1. */
export function along(method: MethodProps, value: number): number {
  const span = method.high - method.low;
  return span > 0 ? Math.min(1, Math.max(0, (value - method.low) / span)) : 0;
}

/** Whether a measure repeats another with what heads park on counted, or weighted by norms: no caption is needed. */
function isEcho(name: string): boolean {
  return name === "peak_weight" || MEASURE_TERMS[name]?.group === MEASURE_TERMS.norm?.group;
}

/** The unit of a measure; empty for a share of 1, and for measures that are not ours. */
export function unitOf(name: string): string {
  return MEASURE_TERMS[plainName(name).replace(/\/.*$/, "")]?.unit ?? "";
}

/** What the names of measures over a corpus begin with. */
export const OF_CORPUS = "corpus:";

/** Whether a measure is of the input on screen, rather than of a whole corpus. */
export function isOwn(name: string): boolean {
  return !name.startsWith(OF_CORPUS);
}

function plainName(name: string): string {
  return isOwn(name) ? name : name.slice(OF_CORPUS.length);
}

/** The label of a measure, as the glossary has it; `corpus:syntactic/nsubj→head` is "nsubj → head". */
export function spoken(name: string): string {
  const own = plainName(name);
  if (own.startsWith("alignment/")) return own.replace("/", ", the word it ");
  const label = MEASURE_TERMS[own]?.label;
  return (
    label ??
    own
      .replace(/^[^/]*\//, "")
      .replaceAll("→", " → ")
      .replaceAll("_", " ")
  );
}

/** The same where nothing else tells which measures it is one of. */
export function titleOf(name: string): string {
  return isOwn(name) ? spoken(name) : `${spoken(name)}, over the corpus`;
}

/** A weight after a softmax, which is never nothing: three digits after the point, all the way down a column. */
export function weightText(weight: number): string {
  return weight > 0 && weight < 0.0005 ? "<0.001" : weight.toFixed(3);
}

/** Two digits, as everywhere in the page. */
export function number(value: number): string {
  if (Number.isNaN(value)) return "–";
  if (value === Number.NEGATIVE_INFINITY) return "masked";
  const size = Math.abs(value);
  if (size < 0.00005) return "0";
  const digits = size < 0.001 ? 4 : size < 0.01 ? 3 : size < 10 ? 2 : size < 100 ? 1 : 0;
  return value.toFixed(digits).replace("-", "−");
}
