import { describe, expect, test } from "vitest";
import { TimeAxis } from "./timeAxis";

const axis = (seen: [number, number]) => new TimeAxis({ from: 100, width: 600 }, seen, 1500, 30);

describe("the time axis", () => {
  test("pixels, frames and seconds lead to each other", () => {
    const part = axis([10, 16]);
    expect(part.secondOf(500)).toBeCloseTo(10);
    expect(part.left(500)).toBeCloseTo(100);
    expect(part.pixelAt(13)).toBeCloseTo(400);
    for (const index of [500, 612, 799]) expect(part.frameAt(part.left(index) + 0.5)).toBe(index);
  });

  test("beside it there is no frame, and past the end none but the last", () => {
    expect(axis([0, 30]).frameAt(99)).toBe(-1);
    expect(axis([0, 30]).frameAt(700)).toBe(-1);
    expect(axis([0, 40]).frameAt(699)).toBe(1499);
  });

  test("ticks are round and far enough apart to be read", () => {
    expect(
      axis([0, 30])
        .ticks()
        .map((second) => second + 0),
    ).toEqual([0, 5, 10, 15, 20, 25, 30]);
    const ticks = axis([10.03, 11.01]).ticks();
    expect(ticks[0]).toBeCloseTo(10.2);
    expect(ticks.at(-1)).toBeCloseTo(11);
  });

  test("the wheel keeps the second under the pointer", () => {
    const [from, to] = axis([0, 30]).zoomed(400, -100);
    expect(to - from).toBeCloseTo(30 * Math.exp(-0.3));
    expect((from + to) / 2).toBeCloseTo(15);
  });

  test("never more than the sound, nor less than eight frames", () => {
    expect(axis([5, 25]).zoomed(100, 1e6)[0]).toBeGreaterThanOrEqual(0);
    expect(axis([0, 30]).zoomed(400, 1e6)).toEqual([0, 30]);
    let seen: [number, number] = [0, 30];
    for (let turn = 0; turn < 60; turn++) seen = axis(seen).zoomed(400, -120);
    expect(seen[1] - seen[0]).toBeCloseTo(0.16);
  });
});
