import { describe, expect, test } from "vitest";
import { EDIT_TERMS } from "../../contract";
import { trace } from "../../data/trace.fixture";
import { spoken, summary } from "./editWords";

describe("words", () => {
  const [first, two] = trace().stacks[0]?.texts ?? [];
  test.each([
    ["silence('L0H1')", "silence L0H1"],
    ["block('L0H1', [0], 1)", `block ${first} → ${two} in L0H1`],
    ["block('L0H1', -99, 'x')", "block token -99 → x in L0H1"],
    ["set_weight('L0H1', 1, 0, 0.8, renormalise=False)", `${two} → ${first} = 0.8 in L0H1, row not renormalised`],
    ["temperature(None, 2.0)", "temperature 2 in all heads"],
    ["set_neuron('L0', 'mlp', 7, 1.5)", "MLP neuron 7 of L0 = 1.5"],
    ["scale_neuron('L0H1', 'key', 3, -2)", "key neuron 3 of L0H1 × −2"],
    ["replace_token(1)", `replace ${two} by the mask token`],
    ["replace_token(1, 'nurse')", `replace ${two} by nurse`],
    ["patch('L0H1', model.run('another text'))", "patch L0H1 from another text"],
    ["patch('L0', model.run('another text'), stage='residual')", "patch residual stream of L0 from another text"],
    ["uniform('L0H1', tokens=[1])", `uniform attention in L0H1 at ${two}`],
    ["block(head='L0H1', queries=1, keys=0)", `block ${two} → ${first} in L0H1`],
    ["something_new('L0H1')", "something_new('L0H1')"],
  ])("%s", (text, phrase) => {
    expect(spoken(text, trace())).toBe(phrase);
  });

  test("a run is named by what it goes without", () => {
    expect(summary(["silence('L3H2')"])).toBe("silence L3H2");
    expect(summary(["silence('L3H2')", "silence('L4H0')"])).toBe("silence L3H2 and L4H0");
    expect(summary(["block('L3H2', [5], [2])"])).toBe("block attention in L3H2");
    expect(summary(["scale('L3H2', 0.5)", "silence('L4H0')"])).toBe("scale L3H2 by 0.5 and 1 more");
  });

  test("one that is about tokens, whose texts only the run knows, by its label", () => {
    expect(summary(["uniform('L2H1', tokens=[1])"])).toBe("uniform attention in L2H1");
    expect(summary(["replace_token(1, 'nurse')"])).toBe("replace token");
    expect(summary(["temperature(None, 2.0)"])).toBe("temperature 2 in all heads");
  });

  test("every phrase of the glossary is filled in", () => {
    for (const term of Object.values(EDIT_TERMS)) {
      expect(spoken(term.example.replace(/^replace_pattern.*/, "replace_pattern('L3H2')"), null)).not.toMatch(
        /[{}()]|undefined/,
      );
    }
  });
});
