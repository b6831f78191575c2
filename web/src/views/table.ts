/** The lines that are drawn as rows of a table, strongest first of each query. */

import type { Token } from "./columns";
import type { LinesForm } from "./lines";
import type { DrawnHead, Scene } from "./scene";

type Row = (string | number)[];

/** At most `limit` rows; `lines` may know the exact numbers of a pinned token. */
export function tableOf(scene: Scene, lines: LinesForm, limit: number): { rows: Row[]; total: number } {
  const rows: Row[] = [];
  const { queries, keys } = scene.layer;
  let total = 0;
  const add = ({ name }: DrawnHead, pairs: { query: number; key: number; value: number; strength: number }[]) => {
    total += pairs.length;
    if (rows.length >= limit) return;
    pairs.sort((a, b) => b.strength - a.strength || a.query - b.query || a.key - b.key);
    for (const { query, key, value } of pairs.slice(0, limit - rows.length)) {
      const written = Number(value.toPrecision(6));
      rows.push([name, query, queries.texts[query] as string, key, keys.texts[key] as string, written]);
    }
  };
  const { pinned } = lines;
  if (pinned) {
    lines.endsOf(pinned).forEach((end, which) => {
      const pairs = Array.from(end.isDrawn, (isDrawn, other) => ({ isDrawn, other }))
        .filter((end) => end.isDrawn)
        .map(({ other }) => ({
          ...(pinned.side === "query" ? { query: pinned.index, key: other } : { query: other, key: pinned.index }),
          value: end.values[other] as number,
          strength: end.strength[other] as number,
        }));
      add(scene.drawnHeads[which] as DrawnHead, pairs);
    });
    return { rows, total };
  }
  for (const drawnHead of scene.drawnHeads) {
    const { plane } = drawnHead;
    for (let query = 0; query < plane.nQueries; query++) {
      if (rows.length >= limit) return { rows, total: scene.drawn };
      const pairs: Parameters<typeof add>[1] = [];
      plane.row(query, (cell, key) => {
        if (!drawnHead.lines.has(cell, query, key)) return;
        pairs.push({ query, key, value: plane.values[cell] as number, strength: plane.strength[cell] as number });
      });
      add(drawnHead, pairs);
    }
  }
  return { rows, total };
}

/** Of a token: what it gives to those opposite, or gets from them; without one, what each key gets on average. */
export function strongestFirst(
  name: string,
  values: Float32Array,
  token: Token | null,
  queries: string[],
  keys: string[],
): (string | number)[][] {
  const rows: [number, (string | number)[]][] = [];
  values.forEach((weight, index) => {
    if (Number.isNaN(weight)) return;
    const [query, key] = !token ? [-1, index] : token.side === "query" ? [token.index, index] : [index, token.index];
    const from = query < 0 ? ["mean", "all queries"] : [query, queries[query] as string];
    rows.push([weight, [name, ...from, key, keys[key] as string, Number(weight.toPrecision(6))]]);
  });
  return rows.sort((a, b) => b[0] - a[0]).map(([, row]) => row);
}
