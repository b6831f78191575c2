/** A whole row of a pattern as it is typed: its weights, or the tokens that it looks at alike. */

export type Kind = "weights" | "alike";

export interface Row {
  /** One for each key; what was not said is zero. Empty where there is a complaint. */
  weights: number[];
  /** How it is understood, or what is wrong with it. */
  said: string;
}

const none = (problem: string): Row => ({ weights: [], said: problem });

/** Reads `0.5, 0, 0.5` (from the first key on), or for tokens alike `1, 4-6, nurse`: positions, ranges and words. */
export function rowOf(kind: Kind, text: string, keys: string[]): Row {
  const pieces = text.split(kind === "weights" ? /[\s,;[\]]+/ : /[,;]+/).filter((piece) => piece.trim());
  if (!pieces.length) return none("");
  return kind === "weights" ? weighted(pieces, keys.length) : alike(pieces, keys);
}

function weighted(pieces: string[], count: number): Row {
  const weights = pieces.map(Number);
  const wrong = pieces.find((_, index) => !(Number.isFinite(weights[index]) && (weights[index] as number) >= 0));
  if (wrong !== undefined) return none(`${wrong} is no weight: numbers from 0 on, with commas between`);
  if (weights.length > count) return none(`${weights.length} weights, but there are ${count} tokens to look at`);
  const sum = weights.reduce((all, weight) => all + weight, 0);
  if (!sum) return none("at least one weight has to be above 0");
  const rest = weights.length < count ? `, the other ${count - weights.length} are 0` : "";
  return { weights: padded(weights, count), said: `sum ${Number(sum.toPrecision(4))}${rest}` };
}

function alike(pieces: string[], keys: string[]): Row {
  const chosen = new Set<number>();
  for (const piece of pieces.map((text) => text.trim())) {
    const range = /^(\d{1,9})(?:\s*[-–]\s*(\d{1,9}))?$/.exec(piece);
    const named = keys.flatMap((text, index) => (text.trim() === piece ? [index] : []));
    if (range) {
      const [from, to] = [Number(range[1]), Number(range[2] ?? range[1])];
      if (from > to || to >= keys.length) return none(`${piece}: tokens are numbered from 0 to ${keys.length - 1}`);
      for (let index = from; index <= to; index++) chosen.add(index);
    } else if (named.length) {
      for (const index of named) chosen.add(index);
    } else {
      return none(`there is no token ${piece}: give positions, ranges such as 4-6, or tokens`);
    }
  }
  const share = Number((1 / chosen.size).toPrecision(6));
  const weights = keys.map((_, index) => (chosen.has(index) ? share : 0));
  return { weights, said: chosen.size === 1 ? "1 token" : `${chosen.size} tokens, ${share.toPrecision(2)} each` };
}

function padded(weights: number[], count: number): number[] {
  return Array.from({ length: count }, (_, index) => weights[index] ?? 0);
}
