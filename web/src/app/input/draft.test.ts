import { describe, expect, test } from "vitest";
import type { ModelProps, PresetProps } from "../../contract";
import { requestOf } from "../../request";
import { SETTINGS } from "../workbench.fixture";
import {
  draftOf,
  EMPTY,
  formsOf,
  hasForm,
  missing,
  nameOf,
  requestFrom,
  shortName,
  startPreset,
  startRequests,
  words,
} from "./draft";

const model = (kinds: string[]): ModelProps => ({
  name: "m",
  about: "",
  is_loaded: true,
  kinds,
  shape: "",
  covers: "",
  coverage: "",
  max_tokens: null,
  writes: true,
  languages: [],
  tasks: [],
  presets: [{ name: "story", look_for: "", text: "Once", pair: null, target: null, media: null, sort: "" }],
});

describe("the form of an input", () => {
  test("fits what the model takes", () => {
    expect(formsOf(model(["text", "pair"]))).toEqual(["text", "pair"]);
    expect(formsOf(model(["source-target"]))).toEqual(["source-target"]);
    expect(formsOf(undefined)).toEqual(["text"]);
    expect(hasForm(model(["image"]))).toBe(true);
    expect(formsOf(model(["audio", "target"]))).toEqual(["audio"]);
    expect(hasForm(model(["smell"]))).toBe(false);
  });

  test("becomes a request and comes back", () => {
    const sound = requestOf({ model: "m", media: "preset:tone", language: "fr", task: "translate" });
    expect(requestFrom(draftOf(sound, ["audio"]))).toEqual(sound);
    for (const request of [
      requestOf({ model: "m", text: "a" }),
      requestOf({ model: "m", text: "a", pair: "b", truncate: true }),
      requestOf({ model: "m", chat: [{ role: "user", content: "hi" }] }),
    ]) {
      expect(requestFrom(draftOf(request, ["text", "pair", "chat"]))).toEqual(request);
    }
  });

  test("an empty target is for the model to write", () => {
    const draft = { ...EMPTY, model: "m", form: "source-target" as const, text: "a cat", target: " " };
    expect(requestFrom(draft).target).toBeNull();
  });

  test("says what is missing", () => {
    expect(missing({ ...EMPTY, model: "m" }, 0)).toMatch(/Type a text/);
    expect(missing({ ...EMPTY, model: "m", form: "pair", text: "a" }, 0)).toMatch(/second text/);
    expect(missing({ ...EMPTY, model: "m", text: "aaaa" }, 3)).toMatch(/4 characters/);
    expect(missing({ ...EMPTY, model: "m", text: "aaa" }, 3)).toBe("");
  });

  test("a model in a folder goes by the folder's name where there is little room", () => {
    expect(["builtin:gpt", "/home/me/models/tiny", "C:\\models\\tiny", "org/model"].map(shortName)).toEqual([
      "gpt",
      "tiny",
      "tiny",
      "org/model",
    ]);
  });

  test("a run is named after its preset, or by its first words", () => {
    expect(nameOf(requestOf({ model: "m", text: "Once" }), [model(["text"])])).toBe("story");
    expect(nameOf(requestOf({ model: "m", text: "Twice  upon" }), [model(["text"])])).toBe("Twice upon");
  });
});

test("a sentence pasted with its tree is named by its words", () => {
  const row = (...cells: string[]) => cells.concat(Array(10 - cells.length).fill("_")).join("\t");
  const tree = ["# text = Cats sleep", row("1", "Cats"), row("2", "sleep")].join("\n");
  expect(words(tree)).toBe("Cats sleep");
  expect(words("a\tb")).toBe("a\tb");
  expect(words(null)).toBeNull();
});

test("the start example is one that heads are ranked for, else the first one of the default model", () => {
  const first = requestOf({ model: "builtin:gpt", text: "the cat sat" });
  expect(startRequests(SETTINGS)).toEqual([first, first]);
  const [gpt, ...others] = SETTINGS.models as [ModelProps, ...ModelProps[]];
  const ranked = { ...gpt.presets[0], name: "again", text: "cat cat", sort: "induction" } as PresetProps;
  const model = { ...gpt, presets: [...gpt.presets, ranked] };
  expect(startPreset(model)).toBe(ranked);
  expect(startRequests({ ...SETTINGS, models: [model, ...others] })[0]?.text).toBe("cat cat");
  expect(startRequests({ ...SETTINGS, default_model: "another" })).toEqual([]);
});
