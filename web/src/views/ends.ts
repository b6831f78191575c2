/** What one token gives to those opposite, or gets from them: of each head that is drawn. */

import { number } from "../data/measures";
import type { Exact } from "../data/rows";
import type { Token } from "./columns";
import type { DrawnHead, Scene } from "./scene";

/** Weights from here on are written out. */
export const WORTH = 0.005;
const IN_TIP = 12; // heads at most

/** The numbers of the tokens opposite, and which lines to them are drawn. */
export interface Ends {
  values: Float32Array;
  strength: Float32Array;
  isDrawn: Uint8Array;
}

/** Of one head; from exact numbers, where they have come. */
export function endOf(scene: Scene, drawnHead: DrawnHead, { side, index }: Token, exact: Exact | null): Ends {
  const { queries, keys } = scene.layer;
  const count = (side === "query" ? keys : queries).texts.length;
  const end = {
    values: new Float32Array(count).fill(Number.NaN),
    strength: new Float32Array(count),
    isDrawn: new Uint8Array(count),
  };
  const { plane, lines } = drawnHead;
  const visit = (cell: number, other: number) => {
    end.values[other] = plane.values[cell] as number;
    end.strength[other] = plane.strength[cell] as number;
    const [query, key] = side === "query" ? [index, other] : [other, index];
    end.isDrawn[other] = lines.has(cell, query, key) ? 1 : 0;
  };
  if (side === "query") plane.row(index, visit);
  else plane.column(index, visit);
  if (!exact) return end;
  const heads = drawnHead.head < 0 ? scene.selection.heads : [drawnHead.head];
  end.values.fill(0);
  for (const head of heads) {
    const values = exact(head);
    for (let i = 0; i < count; i++) end.values[i] = (end.values[i] as number) + (values[i] as number) / heads.length;
  }
  const { between } = scene;
  const isOwn = side === "query" ? between.queries[index] : between.keys[index];
  const others = side === "query" ? between.keys : between.queries;
  for (let i = 0; i < count; i++) {
    end.strength[i] = scene.layer.strengthOf(end.values[i] as number);
    if (lines.floor !== null) end.isDrawn[i] = isOwn && others[i] && (end.strength[i] as number) >= lines.floor ? 1 : 0;
  }
  return end;
}

/** In words: the strongest end of each head. */
export function strongestEnds(scene: Scene, token: Token, ends: Ends[]): string[] {
  const opposite = token.side === "query" ? scene.layer.keys : scene.layer.queries;
  const strongestOf = ends.map(({ strength, values }, which) => {
    const most = strength.reduce((best, weight, index) => (weight > (strength[best] as number) ? index : best), 0);
    const name = (scene.drawnHeads[which] as DrawnHead).name;
    return {
      strength: strength[most] as number,
      text: `${name}  ${token.side === "query" ? "→" : "←"} ${opposite.texts[most]}  ${number(values[most] as number)}`,
    };
  });
  const worth = strongestOf.filter((end) => end.strength >= WORTH);
  const strongest = new Set([...worth].sort((a, b) => b.strength - a.strength).slice(0, IN_TIP));
  const lines = worth.filter((end) => strongest.has(end)).map((end) => end.text);
  return worth.length > IN_TIP ? [...lines, `and ${worth.length - IN_TIP} weaker heads`] : lines;
}
