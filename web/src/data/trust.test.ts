import { expect, test } from "vitest";
import type { BadgeProps, TrustProps } from "../contract";
import { stack, trace, translation } from "./trace.fixture";
import { badgeLines, badgeOf, figuresOf, figureText, joinTrust, untestable, verdictNotes, verdictText } from "./trust";

const FIGURES = {
  change_permuted: 0.012,
  change_uniform: 0.2,
  change_identity: 0.3,
  tau_gradient: -0.25,
  farthest_share: 0.6,
};
function badge(head: string, verdict: BadgeProps["verdict"], figures: BadgeProps["figures"] = FIGURES): BadgeProps {
  return { head, verdict, sentence: `${head} is ${verdict}.`, figures };
}
function tested(...badges: BadgeProps[]): TrustProps {
  return { answer: "' was' (31 %) at token 4", same_output: 0.05, n_permutations: 10, badges };
}

test("a verdict is a sign and words", () => {
  expect(verdictText("not supported")).toBe("✕\u00a0not supported on this input");
  expect(verdictText("mixed")).toBe("?\u00a0mixed");
  expect(verdictText("not tested")).toBe("–\u00a0not tested");
});

test("the figures are the changes of the output and the agreement with the gradient", () => {
  const trust = tested(badge("L0H0", "not supported"));
  const figures = figuresOf(trust.badges[0] as BadgeProps, trust);
  expect(figures.map(({ name, value }) => [name, value])).toEqual([
    ["permuted", 0.012],
    ["uniform", 0.2],
    ["identity", 0.3],
    ["τ with gradient", -0.25],
  ]);
  expect(figures[0]?.about).toContain("median of 10 permutations");
  expect(figures[1]?.about).toContain("up to 0.05 counts as no change");
});

test("a figure that is not known is a dash, and a head that was not tested has none", () => {
  const trust = tested(badge("L0H0", "mixed", { ...FIGURES, tau_gradient: null }), badge("L0H1", "not tested", {}));
  const [known, untested] = trust.badges as [BadgeProps, BadgeProps];
  expect(figuresOf(known, trust).map(figureText).at(-1)).toBe("–");
  expect(figuresOf(untested, trust)).toEqual([]);
  expect(badgeLines(untested, trust)).toEqual(["–\u00a0not tested"]);
});

test("beside the pointer stand the verdict, the changes and what counts as none", () => {
  const trust = tested(badge("L0H0", "not supported"));
  expect(badgeLines(trust.badges[0] as BadgeProps, trust)).toEqual([
    "✕\u00a0not supported on this input",
    "change of the output: permuted 0.01, uniform 0.20, identity 0.30 (up to 0.05: none)",
    "τ with gradient −0.25",
  ]);
});

test("few heads are named and many are counted, those of other layers left out", () => {
  const heads = Array.from({ length: 8 }, (_, head) => `L0H${head}`);
  const trust = tested(...heads.slice(1).map((head) => badge(head, "not supported")), badge("L0H0", "mixed"));
  expect(verdictNotes(trust, heads)).toEqual([
    "✕\u00a0not supported on this input: 7 of 8 heads",
    "?\u00a0mixed: L0H0",
  ]);
  expect(verdictNotes(trust, ["L5H0"])).toEqual([]);
  expect(verdictNotes(null, heads)).toEqual([]);
});

test("a later test of a head replaces the earlier", () => {
  const first = tested(badge("L0H0", "mixed"), badge("L0H1", "mixed"));
  const both = joinTrust(first, tested(badge("L0H1", "not supported")));
  expect(both.badges.map(({ head, verdict }) => [head, verdict])).toEqual([
    ["L0H0", "mixed"],
    ["L0H1", "not supported"],
  ]);
  expect(joinTrust(null, first)).toEqual(first);
  expect(badgeOf(both, "L0H1")?.verdict).toBe("not supported");
  expect(badgeOf(both, "L9H9")).toBeUndefined();
});

test("what cannot be tested is known beforehand", () => {
  expect(untestable(trace())).toBe("");
  expect(untestable(translation())).toContain("encoder-decoder");
  const patches = stack("main", ["0·0", "0·1", "1·0"], { kind: "patches" });
  expect(untestable(trace({ stacks: [patches] }))).toBe("Attention is tested on texts.");
  const short = (...texts: string[]) => trace({ stacks: [stack("main", ["<s>", ...texts], { special: [0] })] });
  expect(untestable(short("cat"))).toBe("The text has 1 token apart from special ones; the test needs 3.");
  expect(untestable(short("cat", "sat"))).toContain("2 tokens");
  expect(untestable(short("a", "cat", "sat"))).toBe("");
});
