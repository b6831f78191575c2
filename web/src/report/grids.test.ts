import { describe, expect, test } from "vitest";
import { LIGHT } from "../theme";
import { ColourScale } from "./colourScale";
import { Contents } from "./contents";
import { familiesOf } from "./families";
import { orderedRows } from "./grids";
import { REPORT } from "./report.fixture";

describe("heads in the order of their scores", () => {
  const stack = {
    label: "",
    layers: [
      { site: "L0", heads: [0, 1] },
      { site: "L1", heads: [2, 3, 4] },
    ],
  };

  test("begin with the highest of each layer, and end with those that have none", () => {
    expect(orderedRows(stack, [0.1, 0.2, 0.3, null, 0.4])).toEqual([
      [1, 4],
      [0, 2],
      [undefined, 3],
    ]);
  });

  test("keep their order where scores are equal", () =>
    expect(orderedRows(stack, [1, 1, 1, 1, 1])).toEqual([
      [0, 2],
      [1, 3],
      [undefined, 4],
    ]));
});

describe("the colour of a score", () => {
  test("runs from the paper to the full colour, and no further", () => {
    const scale = new ColourScale(LIGHT, { low: 0, high: 2, isSigned: false });
    expect([-1, 0, 1, 2, 3].map((score) => scale.byte(score))).toEqual([0, 0, 128, 255, 255]);
    expect([scale.css(0), scale.css(2)]).toEqual(["rgb(255 255 255)", "rgb(18 48 107)"]);
  });

  test("has two sides where scores have a sign, and none at 0", () => {
    const scale = new ColourScale(LIGHT, { low: -4, high: 4, isSigned: true });
    expect([-4, 0, 4].map((score) => scale.byte(score))).toEqual([1, 128, 255]);
    expect([-4, 0, 4].map((score) => scale.css(score))).toEqual([
      "rgb(217 95 2)",
      "rgb(255 255 255)",
      "rgb(33 102 172)",
    ]);
  });
});

test("families are counted in the order of the page, without those that no head is of", () => {
  expect(familiesOf(new Contents(REPORT), [0, 1, 2, 3])).toEqual([
    { key: "position", count: 1 },
    { key: "copying", count: 1 },
    { key: "none", count: 2 },
  ]);
});
