import { expect, test } from "vitest";

import { layer, stack, trace, translation } from "../../data/trace.fixture";
import { explained, refusals, textStack } from "./refusals";

const LABELS = { mean_ablate: "Mean", weights: "Weight", token: "Token", patch: "Patch" };

test("a text that nobody is writing takes every edit", () => {
  expect(refusals(trace(), layer("L0", 4))).toEqual({});
  expect(textStack(translation())?.name).toBe("encoder");
});

test("windows have no single tokens, and a picture no text", () => {
  const picture = trace({ text: null, stacks: [stack("main", ["1·1", "1·2"], { kind: "patches" })] });
  const reasons = refusals(picture, layer("L0", 2, { no_token_edits: "it attends within windows" }));
  expect(Object.keys(reasons)).toEqual(["weights", "token", "patch"]);
  expect(explained(reasons, LABELS)).toEqual([
    "Weight: it attends within windows.",
    "Token: only tokens of a text can be replaced, and the model reads a picture.",
    "Patch: another run is named by its text, and the model reads a picture.",
  ]);
});

test("while the model writes, there is no mean of all tokens, and cross-attention has no single ones", () => {
  const cross = layer("cross.L0", 2, { kind: "cross" });
  expect(refusals(translation(), cross)).toEqual({});
  expect(Object.keys(refusals(translation(), layer("decoder.L0", 2), true))).toEqual(["mean_ablate"]);
  expect(Object.keys(refusals(translation(), cross, true))).toEqual(["mean_ablate", "weights"]);
});
