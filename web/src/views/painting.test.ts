import { describe, expect, test, vi } from "vitest";
import type { Reading } from "../data/reading";
import { Painting } from "./painting";

function cells(painting: Painting): string[] {
  const names: string[] = [];
  painting.each((query, key) => names.push(`${query},${key}`));
  return names.sort();
}

function reading(...members: number[][]): Reading {
  return { members } as unknown as Reading;
}

describe("a painting", () => {
  test("fills every cell between two places of a stroke", () => {
    const painting = new Painting(5, 5);
    painting.begin(0, 0);
    painting.to(3, 3);
    painting.end();
    expect(cells(painting)).toEqual(["0,0", "1,1", "2,2", "3,3"]);
  });

  test("wipes when a stroke begins on a painted cell, and nothing else is painted then", () => {
    const painting = new Painting(3, 3);
    painting.begin(1, 0);
    painting.to(1, 2);
    painting.end();
    painting.begin(1, 1);
    painting.to(2, 1);
    painting.end();
    expect(cells(painting)).toEqual(["1,0", "1,2"]);
  });

  test("undoes strokes one by one, and clearing too", () => {
    const painting = new Painting(3, 3);
    painting.begin(0, 0);
    painting.end();
    painting.begin(0, 1);
    painting.to(0, 2);
    painting.end();
    painting.clear();
    expect(painting.count).toBe(0);
    painting.undo();
    expect(cells(painting)).toEqual(["0,0", "0,1", "0,2"]);
    painting.undo();
    expect(cells(painting)).toEqual(["0,0"]);
    painting.undo();
    expect(painting.canUndo).toBe(false);
    painting.undo();
    expect(painting.count).toBe(0);
  });

  test("stays inside the matrix with a wide brush", () => {
    const painting = new Painting(2, 2);
    painting.begin(0, 0, 5);
    expect(painting.count).toBe(4);
  });

  test("gives stretches of the model's own positions, for words too", () => {
    const painting = new Painting(2, 3);
    painting.begin(1, 0);
    painting.to(1, 1);
    painting.end();
    painting.begin(0, 2);
    painting.end();
    expect(painting.stretches(reading([0], [1, 2]), reading([0], [1, 2], [4]))).toEqual([
      [0, 4, 5],
      [1, 0, 3],
      [2, 0, 3],
    ]);
  });

  test("tells of every change", () => {
    const changed = vi.fn();
    const painting = new Painting(2, 2, changed);
    painting.begin(0, 0);
    painting.end();
    painting.undo();
    expect(changed).toHaveBeenCalledTimes(3);
  });
});
