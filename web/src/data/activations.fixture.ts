/** Activations that are small enough to be known by heart, for tests: one layer, three tokens, of which the last two are
 *  read one by one. */

import type { ActivationsProps } from "../contract";
import type { Grid, Part } from "../wire";

export function floats(shape: number[], values: number[]): Grid {
  return { dtype: "float32", code: "linear", shape, values: Float32Array.from(values) };
}

export function whole(shape: number[], values: number[]): Grid {
  return { dtype: "int32", code: "linear", shape, values: Int32Array.from(values) };
}

const props = (first: number): ActivationsProps => ({
  stack: "main",
  places: ["input", "L0"],
  layers: ["L0"],
  first,
  count: 2,
  texts: ["a", "b"],
  n_neurons: 9,
  is_sum: true,
  no_lens: "",
  no_neurons: "",
  no_written: "",
});

/** Of one run. */
export function plainPart(first = 1): Part<ActivationsProps> {
  return {
    kind: "activations",
    props: props(first),
    arrays: {
      norm: floats([2, 3], [1, 2, 3, 4, 5, 6]),
      mlp: floats([1, 3], [7, 8, 9]),
      lens: whole([2, 2, 1], [0, 1, 1, 1]),
      logprob: floats([2, 2, 1], [-1, -2, -3, -4]),
      rank: whole([2, 2], [5, 6, 0, 0]),
      answer: floats([2, 2], [-9, -8, -3, -4]),
      neuron: whole([1, 2, 1], [4, 7]),
      value: floats([1, 2, 1], [-2, 0.5]),
      share: floats([1, 2, 1], [0.5, 0.25]),
      "heads/L0": floats([2, 2], [10, 11, 12, 13]),
    },
  };
}

/** Of two. A answers "a" at the first of the tokens that are read and "b" at the second; B answers "b". */
export function signedPart(first = 1): Part<ActivationsProps> {
  const nan = Number.NaN;
  return {
    kind: "activations",
    props: props(first),
    arrays: {
      "a:norm": floats([2, 3], [1, 2, 3, 4, 5, 6]),
      "b:norm": floats([2, 3], [1, 2, 3, 1, 5, 8]),
      "a:mlp": floats([1, 3], [7, 8, 9]),
      "b:mlp": floats([1, 3], [7, 8, 8]),
      candidate: whole([2, 2, 2], [0, -1, 0, 1, 1, 0, 1, 0]),
      "a:logprob": floats([2, 2, 2], [-1, nan, -1, -2, -1, -2, Math.log(0.75), -3]),
      "b:logprob": floats([2, 2, 2], [-3, nan, -1, -2, -1, -2, Math.log(0.25), -3]),
      predicted: whole([2, 2], [0, 1, 1, 1]),
      "a:answer": floats([2, 2, 2], [-1, -9, -2, -10, -3, -11, -4, -12]),
      "b:answer": floats([2, 2, 2], [-3, -13, -2, -14, -7, -15, -4, -16]),
      "a:rank": whole([2, 2, 2], [0, 4, 1, 5, 2, 6, 3, 7]),
      "b:rank": whole([2, 2, 2], [4, 4, 1, 5, 2, 6, 3, 7]),
      neuron: whole([1, 2, 1], [4, 7]),
      "a:value": floats([1, 2, 1], [-2, 0.5]),
      "b:value": floats([1, 2, 1], [-2, 2]),
      "a:heads/L0": floats([2, 2], [10, 11, 12, 13]),
      "b:heads/L0": floats([2, 2], [0, 1, 2, 3]),
    },
  };
}
