import { describe, expect, it } from "vitest";
import type { AtlasPatternProps, AtlasPlaceProps, AtlasProps, LayerProps } from "../contract";
import { floats, type Grid, type Part } from "../wire";
import { atlasTokens, floating } from "./atlas.fixture";
import { exampleOf } from "./atlasExample";

const place: AtlasPlaceProps = {
  address: "L2H1",
  site: "L2",
  layer: 2,
  head: 1,
  is_causal: true,
  clouds: [
    { role: "query", stack: "main" },
    { role: "key", stack: "main" },
  ],
};
const weights = [1, 0, 0, 0.5, 0.5, 0, 0.25, 0.25, 0.5];
const pattern: Part<AtlasPatternProps> = {
  kind: "pattern",
  props: { head: "L2H1", example: 0, query_stack: "main", key_stack: "main", first_query: 0, first_key: 0, note: "" },
  arrays: { weights: { ...floating(weights), shape: [3, 3] }, value_norm: floating([1, 3, 0]) },
};
const atlas = { id: "a", model_name: "bert" } as AtlasProps;

async function layerOf(isWeighed: boolean): Promise<Grid> {
  const { source } = exampleOf({ atlas, place, pattern, tokens: { main: atlasTokens() }, image: null, isWeighed });
  return (await source.part<LayerProps>("layer/L2?what=pattern")).arrays.weights as Grid;
}

describe("an example of an atlas", () => {
  it("is a trace of one layer, in which its head has the atlas's pattern", async () => {
    const { trace } = exampleOf({
      atlas,
      place,
      pattern,
      tokens: { main: atlasTokens() },
      image: null,
      isWeighed: false,
    });
    expect(trace.stacks[0]).toMatchObject({ texts: ["[CLS]", "cat", "."], special: [0], kind: "text", looks: "" });
    expect(trace.layers[0]).toMatchObject({ site: "L2", n_heads: 2, n_queries: 3, n_keys: 3, is_causal: true });
    const layer = await layerOf(false);
    expect(layer.shape).toEqual([2, 3, 3]);
    expect([...floats(layer).subarray(9)]).toEqual(weights);
  });

  it("weighs by the norms of values, with rows that sum to 1", async () => {
    const weighed = [...floats(await layerOf(true)).subarray(9)];
    expect(weighed.slice(3, 6)).toEqual([0.25, 0.75, 0]);
    expect(weighed.slice(6)).toEqual([0.25, 0.75, 0]);
  });

  it("has nothing else to give", async () => {
    const { source } = exampleOf({
      atlas,
      place,
      pattern,
      tokens: { main: atlasTokens() },
      image: null,
      isWeighed: false,
    });
    expect(source.isLive).toBe(false);
    await expect(source.part("maps?size=96")).rejects.toThrow("there is no maps?size=96");
  });
});
