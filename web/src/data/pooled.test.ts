import { expect, it } from "vitest";
import { Plane } from "./plane";
import { pooled } from "./pooled";

const values = Float32Array.from({ length: 16 }, (_, cell) => (cell === 6 ? 1 : cell === 9 ? -0.25 : 0));
const plane = new Plane(4, 4, values, values.map(Math.abs));
const whole = { rows: [0, 4], columns: [0, 4] } as { rows: [number, number]; columns: [number, number] };

it("keeps the strongest of the cells that share a dot, on the root scale", () => {
  const { rows, columns, bytes } = pooled(plane, whole, 2, 2, false);
  expect([rows, columns, ...bytes]).toEqual([2, 2, 0, 255, 128, 0]);
});

it("keeps signs where there are any", () => {
  expect([...pooled(plane, whole, 2, 2, true).bytes]).toEqual([128, 255, 96, 128]);
});

it("shows differences on the root scale", () => {
  expect([...pooled(plane, whole, 2, 2, true, true).bytes]).toEqual([128, 255, 65, 128]);
});

it("shows a rectangle cell by cell when there is room", () => {
  const { rows, columns, bytes } = pooled(plane, { rows: [1, 3], columns: [1, 3] }, 99, 99, false);
  expect([rows, columns, ...bytes]).toEqual([2, 2, 0, 255, 128, 0]);
});
