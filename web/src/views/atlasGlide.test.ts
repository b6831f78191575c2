import { afterEach, describe, expect, it, vi } from "vitest";
import { type HeadMap, headMap, PointSet } from "../data/atlasPoints";
import { between, Glide } from "./atlasGlide";

const clouds = [{ role: "query", stack: "main", rows: Int32Array.of(0, 1) }];
const set = new PointSet(clouds);
const [low, step] = [[0, 0, 0], 1];
const map = (...values: number[]) => headMap(set, Uint16Array.from(values), 2, low, step);
const [from, to] = [map(0, 0, 65535, 65535), map(0, 65535, 65535, 0)];

function motion(isReduced: boolean) {
  const frames: FrameRequestCallback[] = [];
  vi.stubGlobal("matchMedia", () => ({ matches: isReduced }));
  vi.stubGlobal("requestAnimationFrame", (callback: FrameRequestCallback) => frames.push(callback));
  vi.stubGlobal("cancelAnimationFrame", () => {});
  return frames;
}

describe("points that glide", () => {
  afterEach(() => vi.unstubAllGlobals());

  it("are half way at half of the way, and where they belong at its ends", () => {
    expect(between(from, to, 0).places).toEqual(from.places);
    expect(between(from, to, 1).places).toEqual(to.places);
    const places = [...between(from, to, 0.5).places];
    expect(places.map((place) => place >>> 16)).toEqual([32768, 32768]);
    expect(places.map((place) => place & 65535)).toEqual([...to.places].map((place) => place & 65535));
  });

  it("are maps on the way, and then where they belong", async () => {
    const frames = motion(false);
    const maps: (HeadMap | null)[] = [];
    const glide = new Glide((now) => maps.push(now));
    const done = glide.run(from, to);
    for (const now of [1000, 1225, 1450]) frames.shift()?.(now);
    await done;
    expect(maps).toHaveLength(4);
    expect(maps[2]?.places).toEqual(between(from, to, 0.5).places);
    expect(maps[3]).toBeNull();
    expect(glide.isGliding).toBe(false);
  });

  it("stay where they belong when motion is not welcome, or when they are others", async () => {
    const maps: (HeadMap | null)[] = [];
    const frames = motion(true);
    await new Glide((now) => maps.push(now)).run(from, to);
    motion(false);
    const others = headMap(new PointSet(clouds), Uint16Array.of(0, 0, 1, 1), 2, low, step);
    await new Glide((now) => maps.push(now)).run(others, to);
    expect([maps, frames]).toEqual([[], []]);
  });

  it("are where they belong at once when something else takes over", async () => {
    motion(false);
    const maps: (HeadMap | null)[] = [];
    const glide = new Glide((now) => maps.push(now));
    const done = glide.run(from, to);
    glide.stop();
    await done;
    expect(maps.at(-1)).toBeNull();
  });
});
