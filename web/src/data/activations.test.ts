import { describe, expect, test } from "vitest";
import type { Source } from "../source";
import { activationsOf, visible, Window } from "./activations";
import { plainPart } from "./activations.fixture";

describe("a window of activations", () => {
  const window = new Window(plainPart());

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
        return plainPart(options.first as number) as never;
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
