/** The numbers of the neuron view: of one query a row a key, of every token a row a token. */

import { lengthOf, type Terms } from "../data/neuron";
import type { Content } from "./neuronTip";
import { dotsTitle } from "./neuronWords";

export function tableOf(content: Content, limit: number) {
  return content.terms ? ofQuery(content, content.terms, limit) : ofEvery(content, limit);
}

type Table = { columns: string[]; titles?: string[]; rows: (string | number)[][]; total: number };

/** Neurons of every token; those that have not come yet are left out. */
function ofEvery({ tokens, every, order, vectors }: Content, limit: number): Table {
  const columns = ["position", "token", ...Array.from(order, (neuron) => `${every} ${neuron}`)];
  const rows = tokens.texts.slice(0, limit).flatMap((text, row) => {
    const values = vectors.row(every ?? "query", row);
    return values ? [[row, text, ...Array.from(order, (neuron) => written(values[neuron]))]] : [];
  });
  return { columns, rows, total: tokens.texts.length };
}

/** What one query's scores, weights and contributions are; columns that the model has. */
function ofQuery({ tokens, query }: Content, terms: Terms, limit: number): Table {
  const named: [string, Float32Array | null][] = [
    ["q·k", terms.dots],
    ["capped", terms.capped],
    ["bias", terms.bias],
    ["weight", terms.weights],
    ["contribution", terms.weights.map((_, key) => lengthOf(terms, key))],
  ];
  const known = named.filter((figure): figure is [string, Float32Array] => figure[1] !== null);
  const columns = [
    "query position",
    "query token",
    "key position",
    "key token",
    "masked",
    ...known.map(([name]) => name),
  ];
  const rows = tokens.texts
    .slice(0, limit)
    .map((text, key) => [
      terms.index,
      query.text,
      key,
      text,
      terms.allowed?.[key] === 0 ? "masked" : "",
      ...known.map(([, values]) => written(values[key])),
    ]);
  const titles = columns.map((name) => (name === "q·k" ? dotsTitle(terms.props) : name));
  return { columns, titles, rows, total: tokens.texts.length };
}

function written(value: number | undefined): number {
  return Number((value ?? Number.NaN).toPrecision(6));
}
