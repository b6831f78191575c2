import { expect, test } from "vitest";
import { strongestFirst } from "./table";

const TEXTS = ["a", "b", "c"];
const values = Float32Array.of(0.25, Number.NaN, 0.75);

test("a query's keys, a key's queries, the strongest first; what is masked is left out", () => {
  expect(strongestFirst("L0H0", values, { side: "query", index: 1 }, TEXTS, TEXTS)).toEqual([
    ["L0H0", 1, "b", 2, "c", 0.75],
    ["L0H0", 1, "b", 0, "a", 0.25],
  ]);
  expect(strongestFirst("L0H0", values, { side: "key", index: 1 }, TEXTS, TEXTS)[0]).toEqual([
    "L0H0",
    2,
    "c",
    1,
    "b",
    0.75,
  ]);
});

test("without a token, what each key gets from all queries", () => {
  expect(strongestFirst("L0H0", values, null, TEXTS, TEXTS)[0]).toEqual(["L0H0", "mean", "all queries", 2, "c", 0.75]);
});
