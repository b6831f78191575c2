import { expect, test } from "vitest";
import { type Column, layOut, layOutEvery, type Room, toggled } from "./neuronLayout";

const room: Room = { width: 860, tokens: 90, dim: 32, valueDim: 32, figures: ["dots"], fold: [] };
const open = (columns: Column[]) => columns.filter((column) => !column.isFolded).map((column) => column.name);
const end = (columns: Column[]) => Math.max(...columns.map((column) => column.x + column.width));

test("all columns stand side by side and fill the room", () => {
  const { columns, forced } = layOut(room);
  expect(forced).toEqual([]);
  expect(open(columns)).toEqual(["token", "key", "product", "dots", "softmax", "value", "weighted"]);
  expect(end(columns)).toBeCloseTo(860 - 16);
  columns.slice(1).forEach((column, index) => {
    const before = columns[index] as Column;
    expect(column.x).toBeGreaterThan(before.x + before.width);
  });
});

test("folded columns leave their room to the others", () => {
  const wide = layOut({ ...room, fold: ["key", "value"] }).columns;
  const width = (columns: Column[]) => columns.find((column) => column.name === "product")?.width ?? 0;
  expect(width(wide)).toBeGreaterThan(1.5 * width(layOut(room).columns));
  expect(open(wide)).not.toContain("key");
});

test("where neurons would be too narrow columns fold, the product last", () => {
  const { columns, forced } = layOut({ ...room, width: 500, dim: 128, valueDim: 128, figures: ["dots", "bias"] });
  expect(forced).toEqual(["key", "value", "weighted"]);
  expect(open(columns)).toEqual(["token", "product", "dots", "bias", "softmax"]);
});

test("a click opens what was folded; another gives way where there is no room", () => {
  expect(toggled("key", [], [])).toEqual(["key"]);
  expect(toggled("key", ["key", "value"], [])).toEqual(["value"]);
  expect(toggled("value", [], ["key", "value"])).toEqual(["key", "weighted"]);
});

test("all tokens have one wide column", () => {
  const [token, every] = layOutEvery(860, 90, 64);
  expect(token?.width).toBe(90);
  expect((every?.x ?? 0) + (every?.width ?? 0)).toBe(844);
});
