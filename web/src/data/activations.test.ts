import { describe, expect, test } from "vitest";
import type { ActivationsProps } from "../contract";
import type { Source } from "../source";
import type { Grid, Part } from "../wire";
import { activationsOf, visible, Window } from "./activations";

function floats(shape: number[], values: number[]): Grid {
  return { dtype: "float32", code: "linear", shape, values: Float32Array.from(values) };
}

function whole(shape: number[], values: number[]): Grid {
  return { dtype: "int32", code: "linear", shape, values: Int32Array.from(values) };
}

/** One layer, three tokens, of which the last two are read one by one. */
function part(first = 1): Part<ActivationsProps> {
  return {
    kind: "activations",
    props: {
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
    },
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

describe("a window of activations", () => {
  const window = new Window(part());

  test("has norms of all tokens, and of what was written none before the first layer", () => {
    expect(window.value("norm", 1, 0)).toBe(4);
    expect(window.value("mlp", 1, 2)).toBe(9);
    expect(window.value("mlp", 0, 2)).toBeNaN();
    expect(window.hasStream("cross")).toBe(false);
  });

  test("has candidates, neurons and heads of its own tokens", () => {
    expect(window.candidates(0, 2)).toEqual([{ text: "b", logprob: -2 }]);
    expect(window.rank(0, 2)).toBe(6);
    expect(window.answer(1, 1)).toBe(-3);
    expect(window.neurons(0, 2)).toEqual([{ index: 7, value: 0.5, share: 0.25 }]);
    expect(window.heads("L0", 2)).toEqual([11, 13]);
    expect(window.candidates(0, 0)).toEqual([]);
    expect(window.rank(0, 0)).toBeNaN();
  });
});

describe("activations of a source", () => {
  test("are asked for once a window, and stopped when nobody listens", async () => {
    const asked: number[] = [];
    const stopped: AbortSignal[] = [];
    const source: Source = {
      isLive: true,
      part: () => Promise.reject(new Error("no parts")),
      task: async (_name, options, _hear, signal) => {
        asked.push(options.first as number);
        stopped.push(signal);
        return part(options.first as number) as never;
      },
    };
    const of = activationsOf(source, "main");
    expect(activationsOf(source, "main")).toBe(of);
    let heard = 0;
    const leave = of.listen(() => heard++);
    await Promise.all([of.need(0, 5), of.need(1, 2)]);
    await of.need(200, 201);
    expect(asked).toEqual([0, 128]);
    expect(heard).toBe(2);
    expect(of.at(1)?.props.first).toBe(0);
    leave();
    expect(stopped[0]?.aborted).toBe(true);
  });

  test("that are not in a saved page are said to be missing", async () => {
    const source: Source = { isLive: false, part: () => Promise.reject(new Error("none")), has: () => false };
    await expect(activationsOf(source, "main").need(0, 1)).rejects.toThrow("holds no activations");
  });
});

test("what cannot be seen is shown by a sign", () => {
  expect([" was", "\n", " ", ""].map(visible)).toEqual(["was", "↵", "␣", "(empty)"]);
});
