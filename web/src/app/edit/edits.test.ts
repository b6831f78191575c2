import { beforeEach, expect, test } from "vitest";
import { calls, Edits } from "./edits.svelte";

let asked: [string[], string][];
let edits: Edits;
beforeEach(() => {
  asked = [];
  edits = new Edits((list, history) => {
    asked.push([calls(list), history]);
    edits.settle(list, true);
  });
});
const last = () => asked.at(-1)?.[0];

test("what is added, switched off, moved and taken out is run", () => {
  edits.add("silence('L0H0')");
  edits.add("silence('L0H1')");
  expect(last()).toEqual(["silence('L0H0')", "silence('L0H1')"]);
  edits.move(1, 0);
  expect(last()).toEqual(["silence('L0H1')", "silence('L0H0')"]);
  edits.turn(0, false);
  expect(last()).toEqual(["silence('L0H0')"]);
  expect(edits.list.length).toBe(2);
  edits.remove(1);
  expect(last()).toEqual([]);
  edits.move(0, 5);
  expect(asked.length).toBe(5);
});

test("undo and redo lead through every step", () => {
  edits.add("silence('L0H0')");
  edits.turn(0, false);
  edits.clear();
  edits.undo();
  edits.undo();
  expect(last()).toEqual(["silence('L0H0')"]);
  edits.redo();
  expect(edits.list).toEqual([{ call: "silence('L0H0')", isOn: false }]);
  edits.add("silence('L0H1')");
  expect(edits.canRedo).toBe(false);
  for (let step = 0; step < 9; step++) edits.undo();
  expect(last()).toEqual([]);
  expect(edits.canUndo).toBe(false);
});

test("a slider on its way is one step", () => {
  for (const value of [0.9, 0.8, 0.7]) edits.put("scale", ["L0H0"], `scale('L0H0', ${value})`, "scale L0H0");
  edits.end();
  expect(asked.map((call) => call[1])).toEqual(["keep", "replace", "replace"]);
  expect(edits.of("scale", ["L0H0"])).toBe(0.7);
  edits.put("scale", ["L0H0"], "scale('L0H0', 0.2)", "scale L0H0");
  edits.undo();
  expect(edits.of("scale", ["L0H0"])).toBe(0.7);
  edits.undo();
  expect(edits.of("scale", ["L0H0"])).toBe(false);
});

test("a head's own edit is found, taken away, and not taken for that of its tokens", () => {
  edits.add("silence('L0H0', tokens=[1])");
  expect(edits.of("silence", ["L0H0"])).toBe(false);
  edits.put("silence", ["L0H0"], "silence('L0H0')");
  expect(edits.of("silence", ["L0H0"])).toBe(true);
  edits.put("silence", ["L0H0"], null);
  expect(edits.list.map((edit) => edit.call)).toEqual(["silence('L0H0', tokens=[1])"]);
});

test("what could not be run leaves the stack as it was", () => {
  const failing = new Edits(() => {});
  failing.settle([{ call: "silence('L0H0')", isOn: true }], false);
  failing.add("silence('L9H9')");
  failing.revert();
  expect(failing.list).toEqual([{ call: "silence('L0H0')", isOn: true }]);
  expect(failing.canUndo).toBe(false);
});

test("another input has no steps back", () => {
  edits.add("silence('L0H0')");
  edits.settle([], false);
  expect(edits.canUndo).toBe(false);
});
