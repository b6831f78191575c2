/** The strongest connections of one head, for its card. */

import type { SiteProps, TraceProps } from "../../contract";
import { loadLayer } from "../../data/load";
import { repeatedTexts } from "../../data/repeated";
import { DEFAULT } from "../../selection";
import type { Source } from "../../source";

export interface Connection {
  query: number;
  key: number;
  from: string;
  to: string;
  /** The positions, where the same text stands at others too; else null. */
  fromAt: number | null;
  toAt: number | null;
  weight: number;
}

/** The `count` largest weights between single tokens; what a query cannot help (its only key) is no connection.
 *  `first` is the first key that counts: 1 leaves out the token on which heads park what they have no use for. */
export async function strongest(
  source: Source,
  trace: TraceProps,
  site: SiteProps,
  head: number,
  count: number,
  first: number,
  signal: AbortSignal,
): Promise<Connection[]> {
  const { layer } = await loadLayer(source, trace, site, DEFAULT, signal);
  const plane = layer.head(head);
  const [queries, keys] = [layer.queries.texts, layer.keys.texts].map(repeatedTexts) as [Set<string>, Set<string>];
  const strongestPairs: Connection[] = [];
  let least = 0;
  for (let query = site.is_causal && site.n_keys > 1 ? 1 : 0; query < plane.nQueries; query++) {
    plane.row(query, (cell, key) => {
      const weight = plane.values[cell] ?? 0;
      if (key < first || !(weight > least)) return;
      const [from, to] = [layer.queries.texts[query] ?? "", layer.keys.texts[key] ?? ""];
      const [fromAt, toAt] = [queries.has(from) ? query : null, keys.has(to) ? key : null];
      strongestPairs.push({ query, key, from, to, fromAt, toAt, weight });
      if (strongestPairs.length <= count) return;
      strongestPairs.sort((a, b) => b.weight - a.weight);
      strongestPairs.length = count;
      least = strongestPairs.at(-1)?.weight ?? 0;
    });
  }
  return strongestPairs.sort((a, b) => b.weight - a.weight);
}
