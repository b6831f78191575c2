import { describe, expect, test } from "vitest";
import { captionLine, editsLine, inputLine } from "./caption";
import { trace as traceOf } from "./trace.fixture";

describe("what a picture is of, on one line", () => {
  const trace = traceOf();

  test("names texts, pairs and translations", () => {
    expect(inputLine({ ...trace, text: "She  sings.\n" })).toBe("“She sings.”");
    expect(inputLine({ ...trace, text: "She sings.", pair: "He too." })).toBe("“She sings.” + “He too.”");
    expect(inputLine({ ...trace, text: "She sings.", target: "Sie singt." })).toBe("“She sings.” → “Sie singt.”");
    expect(inputLine({ ...trace, text: "word ".repeat(200) }).length).toBeLessThan(310);
  });

  test("says which edits were made, and when there were none", () => {
    expect(editsLine([])).toBe("Not edited");
    expect(captionLine({ ...trace, text: "x", edits: ["hs.silence('L3H2')"] })).toBe(
      "Input: “x” · Edited: silence('L3H2')",
    );
  });

  test("names both runs of a difference", () => {
    const difference = { a: "gpt, 1 edit: x", b: "gpt: x", line: "" };
    expect(captionLine({ ...trace, difference })).toBe("A: gpt, 1 edit: x − B: gpt: x");
  });
});
