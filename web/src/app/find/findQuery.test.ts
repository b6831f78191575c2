import { describe, expect, test } from "vitest";
import { stack } from "../../data/trace.fixture";
import {
  EMPTY_QUERY,
  exampleIn,
  type FindQuery,
  lacking,
  optionsOf,
  parseQuery,
  queryText,
  unfitPattern,
} from "./findQuery";

const query = (change: Partial<FindQuery>): FindQuery => ({ ...structuredClone(EMPTY_QUERY), ...change });
const word = (text: string, at: number[] | null = null) => ({ text, at });

describe("what is asked", () => {
  test("says what is missing", () => {
    expect(lacking(query({ from: word("she") }))).toContain("looked at");
    expect(lacking(query({ from: word("she"), to: word("nurse") }))).toBe("");
    expect(lacking(query({ by: "painted" }))).toContain("Paint");
    expect(lacking(query({ by: "effect" }))).toContain("prediction");
    expect(lacking(query({ by: "pattern", over: "lines", lines: " \n" }))).toContain("input");
  });

  test("goes to the server with what its kind of search uses", () => {
    expect(optionsOf(query({ from: word("She", [9]), to: word(" nurse ") }))).toEqual({
      by: "example",
      source: [9],
      target: "nurse",
      site: "",
    });
    expect(optionsOf(query({ by: "pattern", pattern: "induction", over: "repeated" }))).toEqual({
      by: "pattern",
      pattern: "induction",
      over: "repeated",
    });
    expect(optionsOf(query({ by: "effect", token: " was", position: 9, over: "lines", lines: "a\n\nb" }))).toEqual({
      by: "effect",
      token: " was",
      position: 9,
      ablate: "zero",
      over: "lines",
      lines: ["a", "b"],
    });
  });

  test("looks for the word, not the place, in other inputs", () => {
    const options = optionsOf(query({ from: word("She", [9]), to: word("nurse", [5]), over: "lines", lines: "x" }));
    expect(options).toMatchObject({ source: "She", target: "nurse" });
  });

  test("comes back from a link as it was", () => {
    for (const search of [
      query({ from: word("She", [9]), to: word("nurse"), site: "L3" }),
      query({ by: "painted", cells: [[1, 0, 3]], site: "L0" }),
      query({ by: "effect", token: " was", position: 0, ablate: "mean" }),
    ]) {
      expect(parseQuery(queryText(search))).toEqual(search);
    }
  });

  test("is nothing where a link is broken, and no link where it is too long", () => {
    for (const text of ["", "{", "3", "null", '{"by":"dance"}', '{"by":"painted","cells":[[1,2]]}']) {
      expect(parseQuery(text)).toBeNull();
    }
    expect(queryText(query({ lines: "x".repeat(5000) }))).toBe("");
  });
});

describe("patterns that a model cannot have", () => {
  const pattern = { name: "a_to_b", about: "", needs: "", text: "A.", pair: "B.", kinds: ["pair"], looks_ahead: false };
  test("are refused with the reason, once the model is known", () => {
    expect(unfitPattern(pattern, ["text"], true)).toBe("needs a model that reads pairs");
    expect(unfitPattern(pattern, ["text", "pair"], false)).toBe("");
    expect(unfitPattern(pattern, null, true)).toBe("");
    expect(unfitPattern({ ...pattern, kinds: [], looks_ahead: true }, null, true)).toBe("this model cannot look ahead");
  });
});

test("an empty form has an example of two words that the input has", () => {
  const texts = ["<s>", "The", " nurse", " asked", ".", " She", " said", "!"];
  expect(exampleIn({ stacks: [stack("main", texts)] })).toEqual({ from: "said", to: "nurse" });
  expect(exampleIn({ stacks: [stack("main", ["1", "."])] })).toEqual({ from: "", to: "" });
});
