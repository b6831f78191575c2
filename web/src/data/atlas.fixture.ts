/** A small atlas for tests: two examples, of three tokens and of two. */

import type { AtlasTokensProps } from "../contract";
import type { Grid, Part } from "../wire";
import { AtlasTokens } from "./atlasTokens";

export const whole = (values: number[]): Grid => ({
  dtype: "int32",
  code: "linear",
  shape: [values.length],
  values: Int32Array.from(values),
});

export const floating = (values: number[]): Grid => ({
  dtype: "float32",
  code: "linear",
  shape: [values.length],
  values: Float32Array.from(values),
});

export function tokensPart(): Part<AtlasTokensProps> {
  return {
    kind: "tokens",
    props: { stack: "main", n_tokens: 5, texts: ["[CLS]", "cat", "."], tables: { tag_upos: ["NOUN"] } },
    arrays: {
      text: whole([0, 1, 2, 0, 1]),
      example: whole([0, 0, 0, 1, 1]),
      position: whole([0, 1, 2, 0, 1]),
      length: whole([3, 3, 3, 2, 2]),
      frequency: whole([2, 2, 1, 2, 2]),
      start: whole([-1, 0, 3, -1, 0]),
      end: whole([-1, 3, 4, -1, 3]),
      word: whole([-1, 0, 1, -1, 0]),
      tag_upos: whole([-1, 0, -1, -1, 0]),
      flags: { dtype: "uint8", code: "linear", shape: [5], values: Uint8Array.of(1, 0, 2, 1, 0) },
    },
  };
}

export const atlasTokens = () => new AtlasTokens(tokensPart());
