/** Trees beside the columns of the head view: gold dependencies left of the queries, the head's own right of the keys. */

import { type Arc, deepest, goldArcs, inducedArcs, type Trees } from "../data/trees";
import { frame } from "../marks/boxes";
import { drawBracket } from "../marks/brackets";
import type { Box } from "../marks/cells";
import type { Raster } from "../marks/raster";
import type { Side } from "../selection";
import type { Theme } from "../theme";
import type { Columns } from "./columns";
import type { Label, Ruler } from "./labels";
import type { Scene } from "./scene";

const STEP = 8; // px from one level to the next
const SIZE = 10; // of relations' names
const GAP = 6;

export class Arcs {
  readonly gold: Arc[];
  readonly induced: Arc[];
  private readonly names: number;

  constructor(
    readonly trees: Trees,
    private readonly scene: Scene,
    ruler: Ruler,
  ) {
    const { queries, keys } = scene.layer;
    const isThere = (stack: string) => stack === trees.gold.stack;
    this.gold = isThere(queries.stack) ? goldArcs(trees, queries) : [];
    this.induced = scene.isSelf && isThere(keys.stack) ? inducedArcs(trees, keys) : [];
    this.names = this.gold.length ? Math.min(72, ruler.usual(trees.gold.relations, SIZE) + 4) : 0;
  }

  /** How much room they take beside each column. */
  get aside(): Record<Side, number> {
    const room = (arcs: Arc[], more: number) => (arcs.length ? deepest(arcs) * STEP + more + GAP : 0);
    return { query: room(this.gold, this.names + GAP), key: room(this.induced, GAP) };
  }

  paint(raster: Raster, scale: number, columns: Columns, scroll: number, theme: Theme): void {
    for (const side of ["query", "key"] as const) {
      const arcs = side === "query" ? this.gold : this.induced;
      const out = side === "query" ? -1 : 1;
      const base = this.edge(columns, side) + out * (side === "query" ? this.names + GAP : GAP);
      // Those that agree lie on top.
      for (const arc of [...arcs].sort((a, b) => Number(a.isRight) - Number(b.isRight))) {
        const to = columns.at(side, arc.dependent, scroll);
        const nudge = Math.min(4, columns.pitch / 4) * Math.sign(arc.dependent - arc.head);
        const from = columns.at(side, arc.head, scroll) + nudge;
        if (Math.max(from, to) < columns.from || Math.min(from, to) > columns.to) continue;
        drawBracket(
          raster,
          {
            from: from * scale,
            to: to * scale,
            base: base * scale,
            reach: (base + out * STEP * (arc.level + 1)) * scale,
          },
          4 * scale,
          (arc.isRight ? 1.6 : 1.1) * scale,
          arc.isRight ? theme.good : theme.tertiary,
          arc.isRight ? 1 : 0.55,
        );
      }
    }
  }

  /** The relation of each word to its head, beside the word. */
  labels(columns: Columns, scroll: number, theme: Theme): Label[] {
    const { gold } = this.trees;
    if (!this.gold.length && !gold.relations.length) return [];
    const right = new Set(this.gold.filter((arc) => arc.isRight).map((arc) => arc.word));
    const { queries } = this.scene.layer;
    const x = this.edge(columns, "query") - GAP / 2;
    const labels: Label[] = [];
    gold.words.forEach((positions, word) => {
      const seen = positions.map((position) => queries.groupOf[position] ?? -1).filter((index) => index >= 0);
      if (!seen.length || !gold.relations[word]) return;
      const middle = seen.reduce((sum, index) => sum + index, 0) / seen.length;
      const y = columns.at("query", middle, scroll);
      if (y < columns.from - 2 || y > columns.to + 2) return;
      const colour = right.has(word) ? theme.good : theme.tertiary;
      labels.push({ text: gold.relations[word] ?? "", x, y, align: "right", width: this.names, size: SIZE, colour });
    });
    return labels;
  }

  /** In a matrix: the cells of gold dependencies, framed. */
  paintCells(raster: Raster, scale: number, theme: Theme, boxOf: (query: number, key: number) => Box | null): void {
    const { gold, tree } = this.trees;
    const { queries, keys } = this.scene.layer;
    const indices = (positions: number[], reading: typeof queries) =>
      [...new Set(positions.map((position) => reading.groupOf[position] ?? -1))].filter((index) => index >= 0);
    const way = this.scene.selection.arcs;
    gold.heads.forEach((head, word) => {
      if (head < 0) return;
      const ends = [gold.words[word] ?? [], gold.words[head] ?? []] as const;
      const ways =
        way === "AT" ? [[1, 0] as const] : way === "A+AT" ? [[0, 1] as const, [1, 0] as const] : [[0, 1] as const];
      const isRight = tree?.agrees[word] ?? false;
      for (const [from, to] of ways) {
        for (const query of indices(ends[from], queries)) {
          for (const key of indices(ends[to], keys)) {
            const box = boxOf(query, key);
            const tone = isRight ? theme.good : theme.secondary;
            if (box) frame(raster, box, tone, Math.max(1, Math.round((isRight ? 2 : 1) * scale)), isRight ? 1 : 0.7);
          }
        }
      }
    });
  }

  private edge(columns: Columns, side: Side): number {
    const beyond = 10 + columns.label[side] + columns.segment;
    return side === "query" ? columns.start - beyond : columns.end + beyond;
  }
}
