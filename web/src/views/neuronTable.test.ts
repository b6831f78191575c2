import { expect, test } from "vitest";
import { tableOf } from "./neuronTable";
import type { Content } from "./neuronTip";
import { dotsTitle, wordsOf } from "./neuronWords";

const tokens = { texts: ["a", "b", "c"] };
const vectors = {
  head: "L0H1",
  row: (_: string, row: number) => (row === 1 ? null : Float32Array.of(row, 0.5, -row)),
};
const every = { vectors, tokens, terms: null, every: "key", order: Int32Array.of(2, 0) } as unknown as Content;
const terms = {
  index: 2,
  dots: Float32Array.of(1, 2, 3),
  capped: null,
  bias: null,
  weights: Float32Array.of(0.25, 0.75, 0),
  allowed: Uint8Array.of(1, 1, 0),
  norms: Float32Array.of(2, 4, 1),
  sink: null,
  two: null,
  props: { scaling: 0.125, softcap: null, bias: "", notes: [], sink: null, dim: 16 },
};
const ofQuery = { ...every, terms, every: null, query: { text: "c", row: 2 }, against: 1 } as unknown as Content;

test("of every token: neurons in their order, without tokens that have not come", () => {
  expect(tableOf(every, 10)).toEqual({
    columns: ["position", "token", "key 2", "key 0"],
    rows: [
      [0, "a", 0, 0],
      [2, "c", -2, 2],
    ],
    total: 3,
  });
});

test("of one query: a row a key, and only columns that the model has", () => {
  const { columns, rows, total } = tableOf(ofQuery, 2);
  expect(columns.slice(4)).toEqual(["masked", "q·k", "weight", "contribution"]);
  expect(rows.map((row) => row.slice(0, 7))).toEqual([
    [2, "c", 0, "a", "", 1, 0.25],
    [2, "c", 1, "b", "", 2, 0.75],
  ]);
  expect(total).toBe(3);
  expect(tableOf(ofQuery, 3).rows[2]?.[4]).toBe("masked");
});

test("the line names head, query and neurons; notes say what was ordered and folded", () => {
  const { line, notes } = wordsOf(ofQuery, "token", false, ["value"]);
  expect(line).toBe("L0H1, query c (2), 3 keys, 16 neurons");
  expect(notes[0]).toBe("scores and q × k are scaled by 0.125");
  expect(notes).toContain("neurons by |q × k| of b (1)");
  expect(notes.at(-1)).toMatch(/^folded for want of room: /);
  expect(wordsOf(every, "spread", true, []).line).toBe("A − B: L0H1, keys of all 3 tokens, 2 neurons");
});

test("the score says on screen how it is scaled, and files keep its name", () => {
  expect(dotsTitle({ scaling: 0.25, dim: 16 })).toBe("q·k/√d");
  expect(dotsTitle({ scaling: 0.125, dim: 16 })).toBe("q·k×s");
  expect(dotsTitle({ scaling: null, dim: 16 })).toBe("q·k");
  const { columns, titles } = tableOf(ofQuery, 2);
  expect([columns[5], titles?.[5]]).toEqual(["q·k", "q·k×s"]);
});
