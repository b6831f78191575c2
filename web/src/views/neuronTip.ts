/** What the neuron view draws, and what is under the pointer, in words and exact numbers. */

import { exact, lengthOf, type Of, product, type Terms, type Vectors, weighted } from "../data/neuron";
import type { Reading } from "../data/reading";
import type { Heat, Name } from "./neuronLayout";

/** What is drawn: one query with all keys, or the vectors of all tokens (`every`). */
export interface Content {
  vectors: Vectors;
  tokens: Reading;
  /** Positions of neurons of queries and keys, left to right. */
  order: Int32Array;
  fold: Heat[];
  /** Null where `every` is shown. */
  terms: Terms | null;
  every: Of | null;
  /** The query's own text, and its row where queries are among the keys. */
  query: { text: string; row: number | null };
  /** Rows whose token was replaced, or whose weight was set, by an edit. */
  edited: ReadonlySet<number>;
  /** The key that neurons are ordered by. */
  against: number | null;
}

export interface Spot {
  /** A row's position, or one of the rows that stay. */
  row: number | "query" | "output" | "mean" | "spread";
  column: Name;
  /** The neuron, −1 where there is none. */
  neuron: number;
  /** Its place in the column. */
  place: number;
}

/** Whose vector a spot is in: of a product or a weighted value, that of the row's own token. */
export function partOf({ row, column }: Spot, every: Of | null): Of {
  if (every) return every;
  if (row === "query") return "query";
  if (row === "output") return "mixed";
  return column === "value" || column === "weighted" ? "value" : "key";
}

export function tipOf(content: Content, spot: Spot): string[] {
  const { terms, every, tokens, vectors } = content;
  const neuron = spot.neuron;
  if (spot.row === "query" && terms)
    return [
      `q of ${content.query.text}${terms.two ? ", A − B" : ""}`,
      `neuron ${neuron}: ${exact(terms.query[neuron] as number)}`,
    ];
  if (spot.row === "output" && terms)
    return [
      `output of the head${terms.two ? ", A − B" : ""}`,
      `neuron ${neuron}: ${exact(terms.mixed[neuron] as number)}`,
    ];
  if (spot.row === "mean" || spot.row === "spread") {
    const about = every && vectors.about(every);
    if (!about) return [];
    const [mean, spread] = [about.mean[neuron] as number, about.spread[neuron] as number];
    return [`neuron ${neuron}`, `mean over tokens ${exact(mean)}`, `varies by ${exact(spread)} (standard deviation)`];
  }
  if (typeof spot.row !== "number") return [];
  const name = `${tokens.texts[spot.row]}  (${every === "query" || every === "mixed" ? "token" : "key"} ${spot.row})`;
  if (every) {
    const value = vectors.row(every, spot.row)?.[neuron];
    return neuron < 0 ? [name] : [name, `neuron ${neuron}: ${value === undefined ? "loading" : exact(value)}`];
  }
  if (!terms) return [];
  if (neuron >= 0 && (spot.column === "key" || spot.column === "product")) {
    const key = vectors.row("key", spot.row);
    const products = product(terms, vectors, spot.row);
    if (!key || !products) return [name, "loading …"];
    const scaling = terms.props.scaling;
    const both = vectors.both("key", spot.row);
    if (both && terms.two) {
      const of = ({ query }: { query: Float32Array }, side: Float32Array) =>
        exact((query[neuron] as number) * (side[neuron] as number));
      return [
        name,
        `neuron ${neuron}, A − B`,
        `q ${exact(terms.query[neuron] as number)}`,
        `k ${exact(key[neuron] as number)}: ${exact(both.a[neuron] as number)} less ${exact(both.b[neuron] as number)}`,
        `q × k ${exact(products[neuron] as number)}: ${of(terms.two.a, both.a)} less ${of(terms.two.b, both.b)}`,
      ];
    }
    return [
      name,
      `neuron ${neuron}`,
      `q ${exact(terms.query[neuron] as number)}`,
      `k ${exact(key[neuron] as number)}`,
      `q × k${scaling === null ? "" : " scaled"} ${exact(products[neuron] as number)}`,
    ];
  }
  const weight = terms.weights[spot.row] as number;
  if (neuron >= 0) {
    const value = vectors.row("value", spot.row)?.[neuron];
    const weightedValue = weighted(terms, vectors, spot.row)?.[neuron];
    if (value === undefined || weightedValue === undefined) return [name, "loading …"];
    return [
      name,
      `value neuron ${neuron}${terms.two ? ", A − B" : ""}`,
      `v ${exact(value)}`,
      `a ${exact(weight)}`,
      `a · v ${exact(weightedValue)}`,
    ];
  }
  return [name, ...termsIn(terms, spot.row), `length of a · v ${exact(lengthOf(terms, spot.row))}`];
}

/** The terms of one key's weight, in words. */
function termsIn(terms: Terms, key: number): string[] {
  const { props, capped, bias, allowed } = terms;
  if (terms.two) return subtracted(terms, terms.two, key);
  const lines = [
    `q · k${props.scaling === null ? "" : ` × ${exact(props.scaling)}`} = ${exact(terms.dots[key] as number)}`,
  ];
  if (capped) lines.push(`soft cap ${exact(props.softcap ?? 0)}: ${exact(capped[key] as number)}`);
  if (bias) lines.push(`bias ${exact(bias[key] as number)}`);
  if (allowed?.[key] === 0) lines.push("masked");
  lines.push(`softmax ${exact(terms.weights[key] as number)}`);
  return lines;
}

function subtracted(terms: Terms, two: NonNullable<Terms["two"]>, key: number): string[] {
  const lines = [`A − B: q · k ${exact(terms.dots[key] as number)}`];
  if (terms.capped) lines.push(`after the soft cap ${exact(terms.capped[key] as number)}`);
  if (terms.bias) lines.push(`bias ${exact(terms.bias[key] as number)}`);
  if (terms.allowed?.[key] === 0) lines.push("masked");
  const [first, other] = [two.a.weights[key] as number, two.b.weights[key] as number];
  lines.push(`softmax ${exact(terms.weights[key] as number)}: ${exact(first)} less ${exact(other)}`);
  return lines;
}
