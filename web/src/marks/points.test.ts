/** Golden images of clouds of points, and that the quick paths draw what they should. */

import { describe, expect, it } from "vitest";
import type { Rgb } from "../theme";
import { ascii, fingerprint } from "./ascii";
import { ballOf, drawSolid, seenAt, seenFrom } from "./orbit";
import { drawPoints, FULL, Inks, packed } from "./points";
import { Raster } from "./raster";

const WHITE: Rgb = [255, 255, 255];
const BLACK: Rgb = [0, 0, 0];
const GREEN: Rgb = [95, 185, 108];
const PINK: Rgb = [227, 55, 143];
const paper = (width: number, height: number) => new Raster(width, height).fill(WHITE);
const whole = ({ width, height }: Raster) => ({ x: 0, y: 0, width, height });
const at = (x: number, y: number) => packed(Math.round(x * FULL), Math.round(y * FULL));
const cloud = (places: number[], colours = places.map(() => 0)) => ({
  places: Uint32Array.from(places),
  colours: Uint8Array.from(colours),
});

/** Points without order, the same in every run. */
function scattered(count: number): ReturnType<typeof cloud> {
  let state = 9;
  const next = () => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return state >>> 16;
  };
  return cloud(
    Array.from({ length: count }, () => packed(next(), next())),
    Array.from({ length: count }, () => next() % 2),
  );
}

describe("points", () => {
  it("are one pixel, four, or round, as large as they are asked to be", () => {
    const raster = paper(24, 9);
    for (const [index, diameter] of [1, 2, 5].entries()) {
      const box = { x: 8 * index, y: 0, width: 8, height: 9 };
      drawPoints(raster, cloud([at(0.55, 0.5)]), box, whole(raster), new Inks([BLACK], 1), diameter);
    }
    expect(ascii(raster)).toMatchInlineSnapshot(`
      "
      ........................
      ........................
      ..................3bea..
      ..................d###a.
      ....#......##....2####e.
      ...........##.....f###b.
      ..................6f#d3.
      ....................2...
      ........................
      "
    `);
  });

  it("let what is below them through, and darken where they pile up", () => {
    const raster = paper(3, 1);
    const inks = new Inks([BLACK], 0.5);
    const box = { x: 0, y: 0, width: 3, height: 1 };
    drawPoints(raster, cloud([at(0.1, 0.5), at(0.5, 0.5), at(0.5, 0.5)]), box, whole(raster), inks, 1);
    expect([0, 4, 8].map((pixel) => raster.pixels[pixel])).toEqual([128, 64, 255]);
  });

  it("come to their own colour where there are many: nothing is lost to rounding", () => {
    const raster = paper(1, 1);
    const inks = new Inks([GREEN, PINK], 0.22);
    const many = cloud(
      Array.from({ length: 400 }, () => at(0.5, 0.5)),
      new Array(400).fill(1),
    );
    drawPoints(raster, many, whole(raster), whole(raster), inks, 1);
    for (const [index, channel] of PINK.entries())
      expect(Math.abs((raster.pixels[index] as number) - channel)).toBeLessThanOrEqual(3);
  });

  it("stay within their clip, whole dots and cut ones", () => {
    const clip = { x: 3, y: 2, width: 8, height: 5 };
    for (const diameter of [1, 2, 6]) {
      const raster = paper(14, 9);
      drawPoints(
        raster,
        scattered(4000),
        { x: -4, y: -4, width: 22, height: 17 },
        clip,
        new Inks([BLACK, BLACK], 1),
        diameter,
      );
      for (let y = 0; y < 9; y++) {
        for (let x = 0; x < 14; x++) {
          const isInside = x >= 3 && x < 11 && y >= 2 && y < 7;
          expect(raster.pixels[4 * (y * 14 + x)], `${diameter}: ${x}, ${y}`).toBe(isInside ? 0 : 255);
        }
      }
    }
  });

  it("are drawn in the order asked for, those left out not at all", () => {
    const raster = paper(1, 1);
    const inks = new Inks([GREEN, PINK], 1);
    const two = cloud([at(0.5, 0.5), at(0.5, 0.5)], [0, 1]);
    drawPoints(raster, { ...two, order: Int32Array.of(1, 0) }, whole(raster), whole(raster), inks, 1);
    expect([...raster.pixels.subarray(0, 3)]).toEqual([...GREEN]);
    drawPoints(raster, { ...two, order: Int32Array.of(1) }, whole(raster), whole(raster), inks, 1);
    expect([...raster.pixels.subarray(0, 3)]).toEqual([...PINK]);
  });

  it("may each have their own size; none for a size of nothing", () => {
    const raster = paper(24, 9);
    const three = cloud([at(0.2, 0.5), at(0.5, 0.5), at(0.8, 0.5)]);
    const sizes = Uint8Array.of(64, 0, 128);
    drawPoints(raster, { ...three, sizes }, whole(raster), whole(raster), new Inks([BLACK], 1), 3);
    expect(ascii(raster)).toMatchInlineSnapshot(`
      "
      ........................
      ..................561...
      ................2d###5..
      ...4db..........a####e..
      ...a##6.........e#####2.
      ...6#f2.........c#####..
      ....1...........4####8..
      .................39a5...
      ........................
      "
    `);
  });

  it("of a whole cloud look as they did", () => {
    const raster = paper(90, 60);
    const inks = new Inks([GREEN, PINK], 0.5);
    [1, 2, 3.5].forEach((diameter, index) => {
      drawPoints(raster, scattered(300), { x: 30 * index, y: 5, width: 30, height: 50 }, whole(raster), inks, diameter);
    });
    expect(fingerprint(raster)).toMatchInlineSnapshot(`"dc756ade"`);
  });
});

describe("a solid", () => {
  const corner = [FULL, 0, FULL];
  const middle = [FULL / 2, FULL / 2, FULL / 2].map(Math.round);

  it("turns about its middle, which stays where it is", () => {
    const solid = Uint16Array.from([...corner, ...middle]);
    const seen = seenFrom(solid, { around: 0.7, up: 0.3 });
    const place = seen.places[1] as number;
    expect([place & FULL, place >>> 16]).toEqual([32767, 32767]);
    const expected = seenAt([1, 0, 1], { around: 0.7, up: 0.3 });
    const first = seen.places[0] as number;
    expect((first & FULL) / FULL).toBeCloseTo(expected.x, 3);
    expect((first >>> 16) / FULL).toBeCloseTo(expected.y, 3);
  });

  it("keeps all its points within the box, however it is turned", () => {
    const solid = Uint16Array.from([0, 0, 0, FULL, FULL, FULL, FULL, 0, FULL, 0, FULL, 0]);
    for (let around = 0; around < 7; around += 0.5)
      for (const up of [-1.5, -0.6, 0, 0.6, 1.5])
        for (const place of seenFrom(solid, { around, up }).places) {
          expect(place & FULL).toBeGreaterThan(0);
          expect(place >>> 16).toBeGreaterThan(0);
        }
  });

  it("is drawn from far to near", () => {
    const solid = Uint16Array.from([32768, 32768, FULL, 32768, 32768, 0]);
    expect([...seenFrom(solid, { around: 0, up: 0 }).order]).toEqual([0, 1]);
    expect([...seenFrom(solid, { around: Math.PI, up: 0 }).order]).toEqual([1, 0]);
    const raster = paper(9, 9);
    const seen = seenFrom(solid, { around: 0, up: 0 });
    const inks = (alpha: number) => new Inks([GREEN, PINK], alpha);
    drawSolid(raster, seen, { colours: Uint8Array.of(0, 1) }, whole(raster), whole(raster), inks, 0.8, 3);
    const [red, green] = raster.pixels.subarray(4 * (4 * 9 + 4));
    expect(red).toBeGreaterThan(green as number);
  });

  it("fits a ball about its middle", () => {
    const [left, top, right, bottom] = ballOf(Uint16Array.from([32768, 32768, 32768, FULL, 32768, 32768]));
    expect(right - left).toBeCloseTo(1 / Math.sqrt(3), 3);
    expect([top, bottom]).toEqual([left, right]);
  });

  it("may leave points out", () => {
    const solid = Uint16Array.from([32768, 32768, FULL, 32768, 32768, 0]);
    const raster = paper(9, 9);
    const seen = seenFrom(solid, { around: 0, up: 0 });
    const inks = (alpha: number) => new Inks([BLACK], alpha);
    drawSolid(
      raster,
      seen,
      { colours: new Uint8Array(2) },
      whole(raster),
      whole(raster),
      inks,
      1,
      3,
      new Uint8Array(2),
    );
    expect(raster.words).toEqual(paper(9, 9).words);
  });
});
