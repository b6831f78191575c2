import { describe, expect, test } from "vitest";
import { cleaned, fitted } from "../selection";
import { readingOf } from "./reading";
import { answerAt, clampedStep, stepsOf, stepTo, untilOf, writtenFrom } from "./steps";
import { trace, translation } from "./trace.fixture";

const answer = (position: number, text: string, stack = "main") => ({
  stack,
  position,
  candidates: [{ text, logprob: -0.1, id: 7 }],
});

/** "the cat" was given; "sat" was written. */
const written = trace({ steps: [null, null, null, 0], answers: [answer(2, " sat"), answer(3, ".")] });

describe("the steps of text that a model wrote", () => {
  test("are read from the token before", () => {
    expect(stepsOf(written)?.queries).toEqual([2]);
    expect(stepsOf(trace())).toBeNull();
    expect(writtenFrom(written, "main")).toBe(3);
    expect(answerAt(written, 0)).toEqual({ answer: written.answers[0], written: "sat" });
  });

  test("show the tokens that had been read, in their places", () => {
    expect(untilOf(written, 0, "main")).toBe(2);
    expect(untilOf(written, null, "main")).toBeNull();
    const stack = written.stacks[0];
    if (!stack) throw new Error("no stack");
    const how = { by: "tokens", hide: [], off: [], until: 2, written: 3 } as const;
    const reading = readingOf(stack, 4, { ...how, hide: [], off: [] });
    expect(reading.texts).toEqual(["<s>", "the", "cat", "sat"]);
    expect(reading.isLater).toEqual([false, false, false, true]);
    expect(reading.isWritten).toEqual([false, false, false, true]);
    expect(reading.isPartial).toBe(false);
    expect(reading.isPlain).toBe(false);
  });

  test("put the query into focus, also where the first token is hidden", () => {
    const selection = fitted(cleaned({ site: "L0", scale: "head" }), written);
    expect(stepTo(written, selection, 0)).toEqual({ step: 0, token: { side: "query", index: 2 } });
    const hidden = { ...selection, hide: ["first" as const] };
    expect(stepTo(written, hidden, 0)).toEqual({ step: 0, token: { side: "query", index: 1 } });
    expect(stepTo(written, selection, null)).toEqual({ step: null, token: null });
  });

  test("have a last one in a decoder, whose token nobody reads", () => {
    const writer = {
      ...translation(),
      steps: [null, 0],
      answers: [answer(0, "кот", "decoder"), answer(1, "</s>", "decoder")],
    };
    expect(stepsOf(writer)?.queries).toEqual([0, 1]);
    expect(answerAt(writer, 1).written).toBe("</s>");
    expect(untilOf(writer, 0, "encoder")).toBeNull();
  });

  test("outside what there is are brought back", () => {
    expect(clampedStep(written, 99)).toBe(0);
    expect(clampedStep(trace(), 3)).toBeNull();
    expect(fitted(cleaned({ site: "L0", step: 7 }), trace()).step).toBeNull();
  });
});
