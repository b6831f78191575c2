import { describe, expect, test } from "vitest";
import { requestOf } from "../../request";
import { Call, call, isOfModel, otherRun, parsed } from "./calls";

describe("reading and writing", () => {
  test.each([
    "silence('L3H2')",
    "scale('L3H2', 0.5)",
    "silence('L3H2', tokens=[0, -1])",
    "block(None, 'segment:A', [1, 'the'])",
    "set_weight('L0H0', 5, 3, 0.8, renormalise=False)",
    "block('L0H0', range(0, 3), slice(None, -1))",
    "patch('L3H2', model.run('the cat', pair='the dog', truncate=True))",
    "mean_ablate('L3H2', model.run([{'role': 'user', 'content': 'Hi'}]))",
    "set_row('L0H0', 1, [0.5, 0.5])",
    "scale('L0H0', -1e-7)",
    "replace_token(2)",
  ])("%s is read and written again as it was", (text) => {
    expect(String(parsed(text))).toBe(text);
  });

  test("quotes, escapes and what Python prints are read", () => {
    expect(parsed(`hs.silence("L3H2")`)?.args).toEqual(["L3H2"]);
    expect(parsed(`replace_token(1, 'it\\'s\\n\\u0041\\x42\\U0001F600')`)?.args[1]).toBe("it's\nAB😀");
    expect(parsed(call("replace_token", [1, 'it\'s "so" \\ \n']))?.args[1]).toBe('it\'s "so" \\ \n');
  });

  test.each(["", "silence", "silence('L3H2'", "silence('L3H2') + 1", "'x'", "silence(x)", "silence('a)"])(
    "%s is no edit",
    (text) => {
      expect(parsed(text)).toBeNull();
    },
  );

  test("another run is written as the Python that makes it", () => {
    const request = requestOf({ model: "m", text: "a", pair: "b", truncate: true, edits: ["silence('L0H0')"] });
    expect(String(otherRun(request))).toBe("model.run('a', pair='b', truncate=True)");
    expect(call("patch", ["L0H1", otherRun(request)], { tokens: undefined })).toBe(
      "patch('L0H1', model.run('a', pair='b', truncate=True))",
    );
    expect(otherRun(requestOf({ model: "m", chat: [{ role: "user", content: "x" }] }))).toEqual(
      new Call("model.run", [[{ role: "user", content: "x" }]]),
    );
  });
});

describe("another input", () => {
  test("edits of heads mean the same for another input, edits of tokens do not", () => {
    expect(isOfModel("silence('L3H2')")).toBe(true);
    expect(isOfModel("silence('L3H2', tokens=[1])")).toBe(false);
    expect(isOfModel("block('L3H2', 1, 2)")).toBe(false);
    expect(isOfModel("patch('L3H2', model.run('a'))")).toBe(false);
  });
});
