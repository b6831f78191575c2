import { describe, expect, test } from "vitest";
import { trace, translation } from "../../data/trace.fixture";
import { requestOf } from "../../request";
import { DEFAULT, fitted, type Selection } from "../../selection";
import { pythonOfTwo } from "./comparedPython";
import { namesFile, python } from "./python";

const request = requestOf({ model: "builtin:gpt", text: 'say "hi"\n\\o/ привет' });
const head = fitted({ ...DEFAULT, scale: "head", site: "L1", head: 2 }, trace());

describe("code that gives what is on screen", () => {
  test("quotes texts as Python reads them", () => {
    expect(python(trace(), request, DEFAULT)).toContain('model.run("say \\"hi\\"\\n\\\\o/ привет")');
  });

  test("reads tokens as the page does: left out first, then joined", () => {
    const code = python(trace(), request, { ...head, by: "words", hide: ["special"], off: ["main:2"] });
    expect(code).toContain('weights = trace.without([0, 2]).words().pattern("L1H2")');
    expect(code).toContain('hs.head_view(trace, "L1H2", by="words", hide=["special"], off=[2])');
  });

  test("compares two runs", () => {
    const other = requestOf({ ...request, text: "say" });
    const runs = [
      { trace: trace(), request },
      { trace: trace(), request: other },
    ] as const;
    const code = pythonOfTwo(...runs, trace(), { ...head, compare: "difference" });
    expect(code).toContain('other = model.run("say")');
    expect(code).toContain('view = hs.head_view(comparison, "L1H2")');
    const two = pythonOfTwo(runs[0], { trace: trace({ model: "builtin:bert" }), request }, null, head);
    expect(two).toContain('second = hs.load("builtin:bert")');
    expect(two).toContain("other = second.run(");
    expect(two).toContain("comparison.relation(");
  });

  test("subtracts neurons and activations of two runs", () => {
    const difference = trace({ difference: { a: "she", b: "he", line: "" } });
    const runs = [
      { trace: trace(), request },
      { trace: trace({ model: "step-2000" }), request },
    ] as const;
    const neurons = pythonOfTwo(runs[0], runs[0], difference, { ...head, scale: "neuron" });
    expect(neurons).toContain('view = hs.neuron_view(comparison, "L1H2")');
    const activations = { ...head, scale: "activations", whose: "B", token: { side: "query", index: 3 } } as const;
    expect(pythonOfTwo(runs[0], runs[0], difference, activations)).toContain(
      'view = hs.activations_view(comparison, model, token=3, whose="B")',
    );
    expect(pythonOfTwo(...runs, difference, { ...activations, token: null, whose: "either" })).toContain(
      "view = hs.activations_view(comparison, (model, second))",
    );
    const encoder = fitted({ ...DEFAULT, scale: "activations", site: "encoder.L0" }, translation());
    const two = { trace: translation(), request };
    expect(pythonOfTwo(two, two, translation(), encoder)).toContain(
      'hs.activations_view(comparison, model.activations_difference(comparison, stack="encoder"))',
    );
  });

  test("leaves the weights to the view where stacks lose different tokens", () => {
    const site = { ...DEFAULT, scale: "head" as const, site: "cross.L0" };
    const code = python(
      translation(),
      request,
      fitted({ ...site, hide: ["special"], off: ["encoder:1"] }, translation()),
    );
    expect(code).not.toContain("weights =");
    expect(code).toContain('hs.head_view(trace, "cross.L0H0", hide=["special"], off=["encoder:1"])');
  });

  test("says how lines are filtered and which token is chosen", () => {
    const chosen = { ...head, filter: "mass" as const, mass: 0.5, token: { side: "key", index: 1 } as const };
    expect(python(trace(), request, chosen)).toContain('hs.head_view(trace, "L1H2", mass=0.5, token=("key", 1))');
  });

  test("gives the model view its order and colours", () => {
    const model = { ...fitted(DEFAULT, trace()), sort: "confidence", colour: "induction", least: 0.4 };
    expect(python(trace(), request, model)).toContain(
      'hs.model_view(trace, "L0H0", sort="confidence", colour="induction", least=0.4)',
    );
  });

  test("measures from elsewhere are worked out first, or left out", () => {
    const search = { code: "scores = hs.find_heads(trace, example=('a', 'b'))\n", name: "scores" };
    const elsewhere = { "a → b": search, "corpus:induction": null };
    const model = { ...fitted(DEFAULT, trace()), colour: "a → b", sort: "corpus:induction", least: 0.4 };
    expect(python(trace(), request, model, elsewhere)).toContain(
      `${search.code}view = hs.model_view(trace, "L0H0", colour=scores, least=0.4)`,
    );
    const report = python(trace(), request, { ...model, colour: "corpus:induction" }, elsewhere);
    expect(report).toContain('view = hs.model_view(trace, "L0H0")\n');
    expect(python(trace(), request, head, elsewhere)).not.toContain("find_heads");
  });

  test("the relevance of an answer has the edits of the run, and colours heads where the page does", () => {
    const edited = trace({ edits: ["hs.silence('L1H2')"] });
    const asked = { ...fitted(DEFAULT, trace()), relevance: "9:1234" };
    const line = "hs.relevance(model, trace.inputs, target=1234, position=9, interventions=[hs.silence('L1H2')])";
    expect(python(edited, request, asked)).toContain(line);
    const coloured = python(edited, request, { ...asked, colour: "relevance" });
    expect(coloured.indexOf("hs.relevance(")).toBeLessThan(coloured.indexOf("colour=found.heads"));
    expect(coloured.split("hs.relevance(")).toHaveLength(2);
  });

  test("runs activations with the edits of the run", () => {
    const edited = trace({ edits: ["hs.silence('L1H2')"] });
    const code = python(edited, request, { ...fitted(DEFAULT, trace()), scale: "activations" });
    expect(code).toContain("hs.activations_view(trace, model.activations(trace, interventions=[hs.silence('L1H2')]))");
  });

  test("takes the mean only where the page does", () => {
    const several = { ...head, heads: [1, 2] };
    expect(python(trace(), request, several)).toContain('for head in ["L1H1", "L1H2"]');
    expect(python(trace(), request, { ...several, average: true })).toContain('trace.pattern(["L1H1", "L1H2"])');
  });

  test("gives chats, pairs and edits back", () => {
    const chat = requestOf({ model: "m", chat: [{ role: "user", content: "hi" }] });
    expect(python(trace(), chat, DEFAULT)).toContain('model.run([{"role": "user", "content": "hi"}])');
    const pair = requestOf({ model: "m", text: "a", pair: "b", truncate: true });
    expect(python(trace({ edits: ["hs.silence('L1H2')"] }), pair, DEFAULT)).toContain(
      'model.run("a", interventions=[hs.silence(\'L1H2\')], pair="b", truncate=True)',
    );
  });
});

test("pictures and sounds by their names", () => {
  const seen = trace({ text: null, input_kind: "image" });
  const boat = requestOf({ model: "builtin:vit", media: "preset:sailing boat" });
  const code = python(seen, boat, DEFAULT);
  expect(code).toContain("import headscope as hs\nfrom headscope.server.media import preset\n\n");
  expect(code).toContain('model.run(image=preset("sailing boat").picture())');
  expect(namesFile(seen, boat)).toBe(false);
  expect(python(seen, null, DEFAULT)).toContain('model.run(image="path/to/file")');
  expect(namesFile(seen, null)).toBe(true);
  expect(namesFile(trace(), request)).toBe(false);
});

test("a sound with the language and the task that were chosen", () => {
  const sound = requestOf({ model: "m", media: "preset:tone", language: "fr", task: "translate" });
  expect(python(trace({ text: null }), sound, DEFAULT)).toContain('language="fr", task="translate")');
});

test("tokens in focus by their own positions", () => {
  const at = { ...DEFAULT, site: "L1", head: 2, heads: [2], token: { side: "key", index: 1 } } satisfies Selection;
  expect(python(trace(), null, { ...at, scale: "neuron" })).toContain('hs.neuron_view(trace, "L1H2", token=1)');
  // Without the first token the second is the first.
  expect(python(trace(), null, { ...at, scale: "activations", hide: ["first"] })).toContain(
    "hs.activations_view(trace, model, token=2)",
  );
});

test("the difference of two runs, neuron by neuron", () => {
  const at = { ...DEFAULT, scale: "neuron", site: "L1", head: 2, heads: [2] } satisfies Selection;
  const side = { trace: trace(), request };
  expect(pythonOfTwo(side, side, trace(), at)).toContain('view = hs.neuron_view(comparison, "L1H2")');
});

test("neurons as they are looked at", () => {
  const at = { ...DEFAULT, scale: "neuron", site: "L1", head: 2, heads: [2] } satisfies Selection;
  const view = (more: Partial<Selection>) =>
    python(trace(), null, { ...at, ...more })
      .split("\n")
      .at(-3);
  expect(view({})).toBe('view = hs.neuron_view(trace, "L1H2")');
  expect(view({ token: { side: "query", index: 3 }, order: "token", against: 1, fold: ["value"] })).toBe(
    'view = hs.neuron_view(trace, "L1H2", token=3, sort=1, fold=["value"])',
  );
  expect(view({ every: "query", order: "spread" })).toBe(
    'view = hs.neuron_view(trace, "L1H2", sort="spread", every="query")',
  );
});
