import { describe, expect, test } from "vitest";
import { type Asked, lacking, NOTHING, optionsOf, read, written } from "./asked";

const asked = (change: Partial<Asked>): Asked => ({ ...structuredClone(NOTHING), ...change });
const word = (text: string, at: number[] | null = null) => ({ text, at });

describe("what is asked", () => {
  test("says what is missing", () => {
    expect(lacking(asked({ from: word("she") }))).toContain("looked at");
    expect(lacking(asked({ from: word("she"), to: word("nurse") }))).toBe("");
    expect(lacking(asked({ by: "painted" }))).toContain("Paint");
    expect(lacking(asked({ by: "effect" }))).toContain("prediction");
    expect(lacking(asked({ by: "pattern", over: "lines", lines: " \n" }))).toContain("input");
  });

  test("goes to the server with what its kind of search uses", () => {
    expect(optionsOf(asked({ from: word("She", [9]), to: word(" nurse ") }))).toEqual({
      by: "example",
      source: [9],
      target: "nurse",
      site: "",
    });
    expect(optionsOf(asked({ by: "pattern", pattern: "induction", over: "repeated" }))).toEqual({
      by: "pattern",
      pattern: "induction",
      over: "repeated",
    });
    expect(optionsOf(asked({ by: "effect", token: " was", position: 9, over: "lines", lines: "a\n\nb" }))).toEqual({
      by: "effect",
      token: " was",
      position: 9,
      ablate: "zero",
      over: "lines",
      lines: ["a", "b"],
    });
  });

  test("looks for the word, not the place, in other inputs", () => {
    const found = optionsOf(asked({ from: word("She", [9]), to: word("nurse", [5]), over: "lines", lines: "x" }));
    expect(found).toMatchObject({ source: "She", target: "nurse" });
  });

  test("comes back from a link as it was", () => {
    for (const one of [
      asked({ from: word("She", [9]), to: word("nurse"), site: "L3" }),
      asked({ by: "painted", cells: [[1, 0, 3]], site: "L0" }),
      asked({ by: "effect", token: " was", position: 0, ablate: "mean" }),
    ]) {
      expect(read(written(one))).toEqual(one);
    }
  });

  test("is nothing where a link is broken, and no link where it is too long", () => {
    for (const text of ["", "{", "3", "null", '{"by":"dance"}', '{"by":"painted","cells":[[1,2]]}']) {
      expect(read(text)).toBeNull();
    }
    expect(written(asked({ lines: "x".repeat(5000) }))).toBe("");
  });
});
