import { expect, test } from "vitest";
import { type Link, parseLink } from "../link";
import { SETTINGS } from "../workbench.fixture";
import { headingOf, missingNames, rowsOf } from "./linkSummary";

const link = (fragment: string): Link => parseLink(fragment, () => null);
const rows = (fragment: string) =>
  Object.fromEntries(rowsOf(link(fragment), SETTINGS.models).map(({ label, texts }) => [label, texts]));

test("the heading names the model and counts the edits that are switched on", () => {
  expect(headingOf(link("model=builtin:gpt&text=Hi"))).toBe("This link asks to run builtin:gpt.");
  expect(headingOf(link("model=builtin:gpt&text=Hi&edit=silence('L0H1')"))).toBe(
    "This link asks to run builtin:gpt with 1 edit.",
  );
  const stack = "&edit=silence('L0H1')&edit=off:silence('L0H2')&edit=scale('L0H3',+2)";
  expect(headingOf(link(`model=/models/tiny&text=Hi${stack}`))).toBe("This link asks to run tiny with 2 edits.");
  expect(headingOf(link("model=/models/tiny"))).toBe("This link asks to load tiny.");
});

test("a long name of a model does not fill the heading", () => {
  expect(headingOf(link(`model=${"x".repeat(900)}&text=Hi`)).length).toBeLessThan(70);
});

test("the rows hold everything that would be computed", () => {
  const fragment = "model=builtin:gpt&text=Hi&write=5&edit=silence('L0H1')&with=text%3DHo%26edit%3D";
  expect(rows(`${fragment}&view=activations&relevance=1:5&find=%7B%7D`)).toEqual({
    Model: ["builtin:gpt"],
    Text: ["Hi"],
    "New tokens": ["5"],
    Edits: ["silence('L0H1')"],
    "Compare with": ["Ho", "Original: not edited"],
    Analyses: ["Activations, the relevance of the input to a prediction and a search for heads"],
  });
  expect(rows("model=m&text=A&pair=B")).toMatchObject({ Text: ["A"], "Second text": ["B"] });
  expect(rows("model=m&media=preset:lorry&target=T")).toMatchObject({ Media: ["lorry"], Target: ["T"] });
  expect(rows("model=m&media=preset:tone&language=fr&task=translate")).toMatchObject({
    Language: ["French"],
    Task: ["translate"],
  });
  expect(rows('model=m&chat=[["user","Hi"]]')).toMatchObject({ Chat: ["user: Hi"] });
  expect(rows("model=m")).toEqual({ Model: ["m"], Input: ["The model's first example"] });
});

test("only what differs in the other run is listed", () => {
  const other = (change: string) => rows(`model=m&text=Hi&with=${encodeURIComponent(change)}`)["Compare with"];
  expect(other("same")).toEqual(["The same input"]);
  expect(other("model=builtin:bert")).toEqual(["builtin:bert"]);
  expect(other("text=Ho")).toEqual(["Ho"]);
  expect(other("edit=silence('L0H1')")).toEqual(["The same input", "silence('L0H1')"]);
});

test("a model that is not loaded yet is marked", () => {
  const note = (fragment: string) => rowsOf(link(fragment), SETTINGS.models)[0]?.note;
  expect(note("model=builtin:gpt&text=Hi")).toBe("");
  expect(note("model=/models/tiny&text=Hi")).toBe("Not loaded yet.");
});

test("every edit is listed", () => {
  const edits = Array.from({ length: 9 }, (_, head) => `&edit=silence('L0H${head}')`).join("");
  expect(rows(`model=m&text=Hi${edits}`).Edits).toHaveLength(9);
  expect(rows(`model=m&text=Hi&with=${encodeURIComponent(edits.slice(1))}`)["Compare with"]).toHaveLength(10);
});

test("what is missing reads as a list in a sentence", () => {
  expect(missingNames(["activations"])).toBe("activations");
  expect(missingNames(["compare", "effect", "find"])).toBe(
    "the comparison with another run, the effect of the edits and a search for heads",
  );
});
