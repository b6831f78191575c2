import { afterEach, expect, test, vi } from "vitest";
import { requestOf } from "../request";
import { earlierRuns, remembered, storeRuns } from "./runHistory";
import type { EarlierRun } from "./slices";

const run = (text: string, edits: string[] = []): EarlierRun => ({
  request: requestOf({ model: "builtin:gpt", text, edits }),
  when: 0,
});
const texts = (runs: EarlierRun[]) => runs.map(({ request }) => request.text);

afterEach(() => vi.unstubAllGlobals());

test("the same run again moves to the front", () => {
  const runs = remembered([run("b"), run("a")], run("a"), null);
  expect(texts(runs)).toEqual(["a", "b"]);
});

test("a slider on its way leaves one run, not one for each stop; the run without edits stays", () => {
  const [plain, stop, next] = [run("a"), run("a", ["scale('L0H0', 0.5)"]), run("a", ["scale('L0H0', 0.6)"])];
  expect(remembered([stop, plain], next, stop.request)).toEqual([next, plain]);
  expect(remembered([plain], next, plain.request)).toEqual([next, plain]);
});

test("twelve are kept", () => {
  let runs: EarlierRun[] = [];
  for (let at = 0; at < 20; at++) runs = remembered(runs, run(String(at)), null);
  expect(texts(runs)).toHaveLength(12);
  expect(runs[0]?.request.text).toBe("19");
});

test("the tab's store gives them back, and a store that refuses is no problem", () => {
  const store = new Map<string, string>();
  vi.stubGlobal("sessionStorage", {
    getItem: (name: string) => store.get(name) ?? null,
    setItem: (name: string, text: string) => store.set(name, text),
  });
  storeRuns([run("a")]);
  expect(texts(earlierRuns())).toEqual(["a"]);
  vi.stubGlobal("sessionStorage", {
    getItem: () => "{",
    setItem: () => {
      throw new DOMException("", "QuotaExceededError");
    },
  });
  expect(() => storeRuns([run("a")])).not.toThrow();
  expect(earlierRuns()).toEqual([]);
});
