import { describe, expect, test } from "vitest";
import { trace } from "../../data/trace.fixture";
import { requestOf } from "../../request";
import { Call, call, isOfModel, otherRun, parsed, spoken, summary } from "./calls";

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

describe("words", () => {
  const [first, two] = trace().stacks[0]?.texts ?? [];
  test.each([
    ["silence('L0H1')", "silence L0H1"],
    ["block('L0H1', [0], 1)", `block ${first} → ${two} in L0H1`],
    ["block('L0H1', -99, 'x')", "block token -99 → x in L0H1"],
    ["set_weight('L0H1', 1, 0, 0.8, renormalise=False)", `${two} → ${first} = 0.8 in L0H1, row's sum not kept at 1`],
    ["temperature(None, 2.0)", "temperature 2 in all heads"],
    ["set_neuron('L0', 'mlp', 7, 1.5)", "MLP neuron 7 of L0 = 1.5"],
    ["scale_neuron('L0H1', 'key', 3, -2)", "key 3 of L0H1 × −2"],
    ["replace_token(1)", `mask ${two}`],
    ["replace_token(1, 'nurse')", `${two} becomes nurse`],
    ["patch('L0H1', model.run('another text'))", "L0H1 from another text"],
    ["something_new('L0H1')", "something_new('L0H1')"],
  ])("%s", (text, phrase) => {
    expect(spoken(text, trace())).toBe(phrase);
  });

  test("a run is named by what it goes without", () => {
    expect(summary(["silence('L3H2')"])).toBe("silence L3H2");
    expect(summary(["silence('L3H2')", "silence('L4H0')"])).toBe("silence L3H2 and L4H0");
    expect(summary(["block('L3H2', [5], [2])"])).toBe("a look blocked in L3H2");
    expect(summary(["scale('L3H2', 0.5)", "silence('L4H0')"])).toBe("scale L3H2 by 0.5 and 1 more");
  });

  test("edits of heads mean the same for another input, edits of tokens do not", () => {
    expect(isOfModel("silence('L3H2')")).toBe(true);
    expect(isOfModel("silence('L3H2', tokens=[1])")).toBe(false);
    expect(isOfModel("block('L3H2', 1, 2)")).toBe(false);
    expect(isOfModel("patch('L3H2', model.run('a'))")).toBe(false);
  });
});
