import { describe, expect, test } from "vitest";
import { layer, stack, trace, translation } from "./data/trace.fixture";
import { carried, changed, cleaned, DEFAULT, fitted, hasPair, opened } from "./selection";

const start = fitted(DEFAULT, trace());

describe("a selection from anywhere", () => {
  test("what is not understood is as by default", () => {
    const selection = cleaned({
      scale: "galaxy",
      head: -1,
      heads: "all",
      mass: 7,
      hide: ["last"],
      token: { side: "up", index: 0 },
    });
    expect(selection).toEqual(DEFAULT);
  });

  test("what is understood is kept", () => {
    const token = { side: "key", index: 2 } as const;
    const selection = cleaned({ scale: "head", site: "L1", head: 2, heads: [1, 2], mass: 0.5, hide: ["first"], token });
    expect(selection).toMatchObject({
      scale: "head",
      site: "L1",
      head: 2,
      heads: [1, 2],
      mass: 0.5,
      hide: ["first"],
      token,
    });
  });
});

describe("opening a run", () => {
  test("a translation opens on cross-attention, the mean of its heads", () => {
    const selection = fitted(opened(DEFAULT, translation()), translation());
    expect(selection).toMatchObject({ scale: "head", site: "cross.L0", heads: [0, 1, 2, 3], average: true });
    expect(opened({ ...start, sort: "entropy" }, translation())).toMatchObject({ scale: "head", site: "cross.L0" });
  });

  test("a place that was chosen stays, and so does any other model", () => {
    const encoder = { ...DEFAULT, site: "encoder.L0" };
    expect(opened(encoder, translation())).toEqual(encoder);
    expect(opened({ ...DEFAULT, scale: "neuron" }, translation())).toMatchObject({ scale: "neuron", site: "" });
    expect(opened(DEFAULT, trace())).toEqual(DEFAULT);
  });

  test("another kind of model shows its heads one by one again", () => {
    const before = fitted(opened(DEFAULT, translation()), translation());
    expect(carried(before, trace())).toMatchObject({ site: "L0", heads: [0], average: false });
  });
});

describe("fitting a trace", () => {
  test("an empty selection becomes the first head", () => {
    expect(start).toMatchObject({ site: "L0", head: 0, heads: [0] });
  });

  test("a layer that is not there becomes one of the same depth", () => {
    expect(fitted({ ...DEFAULT, site: "L0", head: 9 }, translation())).toMatchObject({ site: "encoder.L0", head: 3 });
  });

  test("scores fall back to weights where there are none, or tokens are read otherwise", () => {
    const without = trace({ layers: [layer("L0", 4, { no_scores: "not recorded" })] });
    expect(fitted({ ...DEFAULT, what: "scores" }, without).what).toBe("pattern");
    expect(fitted({ ...DEFAULT, what: "scores", by: "words" }, trace()).what).toBe("pattern");
    expect(fitted({ ...DEFAULT, what: "scores" }, trace()).what).toBe("scores");
  });

  test("tokens that are not there are dropped, and never all of them switched off", () => {
    expect(fitted({ ...DEFAULT, off: ["main:1", "main:99", "other:0", "main:x"] }, trace()).off).toEqual(["main:1"]);
    expect(fitted({ ...DEFAULT, off: ["main:0", "main:1", "main:2", "main:3"] }, trace()).off).toEqual([]);
  });

  test("sentences A and B are told apart only where there are two", () => {
    const pair = trace({ stacks: [stack("main", ["a", "b", "c", "d"], { segments: ["A", "A", "B", "B"] })] });
    expect(fitted({ ...DEFAULT, pair: "AB" }, trace()).pair).toBe("all");
    expect(fitted({ ...DEFAULT, pair: "AB" }, pair).pair).toBe("AB");
    expect(hasPair(pair, layer("L0", 4))).toBe(true);
  });
});

describe("changing", () => {
  test("moving on takes a single head along", () => {
    expect(changed(start, { head: 2 }, trace()).heads).toEqual([2]);
  });

  test("all heads stay all heads in the next layer", () => {
    const all = { ...start, heads: [0, 1, 2, 3] };
    const deeper = trace({ layers: [layer("L0", 4), layer("L1", 4, { n_heads: 2 })] });
    expect(changed(all, { site: "L1" }, deeper).heads).toEqual([0, 1]);
  });

  test("the head in focus is always among those shown", () => {
    expect(changed({ ...start, heads: [0, 1] }, { head: 3 }, trace()).heads).toEqual([0, 1, 3]);
  });

  test("a chosen token stays in the next layer, and goes when tokens are read otherwise", () => {
    const chosen = { ...start, token: { side: "query", index: 2 } as const };
    expect(changed(chosen, { site: "L1" }, trace()).token).toEqual(chosen.token);
    expect(changed(chosen, { by: "words" }, trace()).token).toBeNull();
    expect(changed(chosen, { off: ["main:1"] }, trace()).token).toBeNull();
  });

  test("another run keeps places and options, not tokens", () => {
    const selection = {
      ...start,
      site: "L1",
      head: 2,
      heads: [2],
      by: "words" as const,
      off: ["main:1"],
      token: { side: "key", index: 1 } as const,
    };
    expect(carried(selection, trace())).toMatchObject({ site: "L1", head: 2, by: "words", off: [], token: null });
  });
});

describe("neurons", () => {
  test("belong to the model's own tokens, all of them", () => {
    const read = changed(start, { scale: "head", by: "words", hide: ["special"] }, trace());
    expect(changed(read, { scale: "neuron" }, trace())).toMatchObject({ by: "tokens", hide: [], off: [] });
  });

  test("are ordered only as makes sense", () => {
    const at = changed(start, { scale: "neuron", order: "token", against: 2 }, trace());
    expect(at).toMatchObject({ order: "token", against: 2 });
    expect(changed(at, { every: "query" }, trace())).toMatchObject({ order: "index", against: null });
    expect(changed(at, { against: 99 }, trace())).toMatchObject({ order: "index", against: null });
    expect(changed(at, { order: "spread" }, trace())).toMatchObject({ order: "index" });
    expect(changed(at, { every: "key", order: "spread" }, trace())).toMatchObject({ order: "spread" });
  });
});
