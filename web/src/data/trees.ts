/** The gold tree of a sentence, and the tree that one head's attention induces over its words. */

import type { GoldProps, TreeProps } from "../contract";
import type { Selection } from "../selection";
import type { Source } from "../source";
import type { Reading } from "./reading";

export interface Trees {
  gold: GoldProps;
  tree: TreeProps | null;
}

/** From one word to another, by where they stand among the tokens as read; `level` is how far out it is drawn. */
export interface Arc {
  dependent: number;
  head: number;
  word: number;
  level: number;
  /** Gold: the head in view looks there too. Induced: as in the gold tree. */
  isRight: boolean;
}

const NAMES = { next: "each to the next word", previous: "to the previous", root: "all to the root" };
const MOST_LEVELS = 14;

export const treeKey = (head: string, way: string) => `tree/${head}?way=${encodeURIComponent(way)}`;

/** What there is to draw beside the words; null where the input has no words of its own, or none are wanted. */
export async function loadTrees(
  source: Source,
  head: string,
  { arcs }: Selection,
  signal: AbortSignal,
): Promise<Trees | null> {
  if (arcs === "none" || (source.has && !source.has("gold"))) return null;
  const gold = (await source.part<GoldProps>("gold", signal)).props;
  if (!gold.words.length) return null;
  const key = treeKey(head, arcs);
  if (arcs === "gold" || (source.has && !source.has(key))) return { gold, tree: null };
  return { gold, tree: (await source.part<TreeProps>(key, signal)).props };
}

/** Where each word stands among the tokens as read, null where it is left out. */
export function placesOf({ words }: GoldProps, reading: Reading): (number | null)[] {
  return words.map((positions) => {
    const seen = positions.map((position) => reading.groupOf[position] ?? -1).filter((index) => index >= 0);
    return seen.length ? seen.reduce((sum, index) => sum + index, 0) / seen.length : null;
  });
}

/** The arcs of a tree given by heads, packed so that none lies on another. */
export function arcsOf(heads: number[], places: (number | null)[], isRight: (word: number) => boolean): Arc[] {
  const arcs: Arc[] = [];
  heads.forEach((head, word) => {
    const [from, to] = [places[word] ?? null, head >= 0 ? (places[head] ?? null) : null];
    if (from === null || to === null || from === to) return;
    arcs.push({ dependent: from, head: to, word, level: 0, isRight: isRight(word) });
  });
  const span = ({ dependent, head }: Arc) => Math.abs(dependent - head);
  const taken: [number, number][][] = [];
  for (const arc of [...arcs].sort((a, b) => span(a) - span(b))) {
    const [low, high] = [Math.min(arc.dependent, arc.head), Math.max(arc.dependent, arc.head)];
    let level = 0;
    while (level < MOST_LEVELS - 1 && taken[level]?.some(([from, to]) => low < to && high > from)) level++;
    arc.level = level;
    taken[level] = [...(taken[level] ?? []), [low, high]];
  }
  return arcs;
}

export function goldArcs({ gold, tree }: Trees, reading: Reading): Arc[] {
  return arcsOf(gold.heads, placesOf(gold, reading), (word) => tree?.agrees[word] ?? false);
}

export function inducedArcs({ gold, tree }: Trees, reading: Reading): Arc[] {
  if (!tree) return [];
  const isRight = (word: number) => gold.heads.length > 0 && tree.heads[word] === gold.heads[word];
  return arcsOf(tree.heads, placesOf(gold, reading), isRight);
}

export const deepest = (arcs: Arc[]): number => arcs.reduce((most, arc) => Math.max(most, arc.level + 1), 0);

/** What is drawn, in words. */
export function toldOf({ gold, tree }: Trees): string[] {
  const notes: string[] = [];
  if (gold.heads.length)
    notes.push(`gold tree${tree && !tree.no_tree ? ", green where this head looks most at the head" : ""}`);
  if (!tree) return notes;
  if (tree.no_tree) return [...notes, `no tree of this head: ${tree.no_tree}`];
  if (tree.uas === null) return [...notes, "the tree of this head's attention"];
  const percent = (share: number) => `${Math.round(share * 100)} %`;
  const others = Object.entries(tree.baselines).map(
    ([name, share]) => `${NAMES[name as keyof typeof NAMES] ?? name} ${percent(share)}`,
  );
  notes.push(
    `its own tree: ${tree.n_right} of ${tree.n_words} words have their head, UAS ${percent(tree.uas)} (root given; ${others.join(", ")})`,
  );
  return notes;
}
