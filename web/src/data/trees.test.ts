import { expect, test } from "vitest";
import type { GoldProps, TreeProps } from "../contract";
import { readingOf } from "./reading";
import { STACK } from "./stack.fixture";
import { arcsOf, deepest, goldArcs, inducedArcs, placesOf, toldOf, treeKey } from "./trees";

// The tokens of STACK: [CLS] un happy cats . They ï ï [SEP]; words by the treebank: unhappy, cats, ., They.
const gold: GoldProps = {
  stack: "model",
  words: [[1, 2], [3], [4], [5]],
  forms: ["unhappy", "cats", ".", "They"],
  heads: [1, -1, 1, 1],
  relations: ["amod", "root", "punct", "dep"],
};
const tree: TreeProps = {
  head: "L0H0",
  way: "A",
  heads: [1, -1, 3, 1],
  agrees: [true, false, false, false],
  uas: 0.75,
  baselines: { next: 0.5, previous: 0.25, root: 1 },
  n_words: 4,
  n_right: 3,
  no_tree: "",
};
const tokens = readingOf(STACK, 9, { by: "tokens", hide: [], off: [] });
const words = readingOf(STACK, 9, { by: "words", hide: ["special"], off: [] });

test("a word stands in the middle of its pieces, as they are read", () => {
  expect(placesOf(gold, tokens)).toEqual([1.5, 3, 4, 5]);
  expect(placesOf(gold, words)).toEqual([0, 1, 2, 3]);
});

test("arcs lead from head to dependent, and those that agree are told", () => {
  const arcs = goldArcs({ gold, tree }, words);
  expect(arcs.map(({ dependent, head, isRight }) => [dependent, head, isRight])).toEqual([
    [0, 1, true],
    [2, 1, false],
    [3, 1, false],
  ]);
  expect(inducedArcs({ gold, tree }, words).map((arc) => arc.isRight)).toEqual([true, false, true]);
});

test("arcs that overlap lie on different levels, side by side on one", () => {
  const arcs = arcsOf([1, -1, 3, 1], [0, 1, 2, 3], () => false);
  expect(arcs.map((arc) => arc.level)).toEqual([0, 0, 1]);
  expect(deepest(arcs)).toBe(2);
});

test("what is drawn is said with how well the tree agrees, beside branching", () => {
  expect(toldOf({ gold, tree }).join("; ")).toContain(
    "3 of 4 words have their head, UAS 75 % (root given; each to the next word 50 %, to the previous 25 %, all to the root 100 %)",
  );
  expect(toldOf({ gold, tree: { ...tree, no_tree: "too long" } }).at(-1)).toBe("no tree of this head: too long");
  expect(toldOf({ gold, tree: null })).toEqual(["gold tree"]);
});

test("keys are those of a saved page", () => {
  expect(treeKey("L0H0", "A+AT")).toBe("tree/L0H0?way=A%2BAT");
});
