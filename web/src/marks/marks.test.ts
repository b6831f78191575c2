/** Golden images: every mark as it is drawn, pixel for pixel. A change here is a change that users see. */

import { describe, expect, it } from "vitest";
import { DARK, LIGHT, type Rgb } from "../theme";
import { ascii, fingerprint } from "./ascii";
import { fillBox, frame, roundBox } from "./boxes";
import { drawCells, ramp, signedRamp, stretchedRamp } from "./cells";
import { Curves } from "./lines";
import { Raster, word } from "./raster";
import { drawStrip } from "./strip";

const WHITE: Rgb = [255, 255, 255];
const BLACK: Rgb = [0, 0, 0];
const paper = (width: number, height: number) => new Raster(width, height).fill(WHITE);

describe("lines", () => {
  it("run level at both ends, and are even where they are steep", () => {
    const raster = paper(32, 16);
    const curves = new Curves(raster, 0, 32);
    curves.draw(2.5, 13.5, 1, 1);
    curves.flush(BLACK);
    expect(ascii(raster)).toMatchInlineSnapshot(`
      "
      ................................
      ................................
      #fedb851........................
      .12358c#b5......................
      .......16ce7....................
      ..........4bd5..................
      ............5ea1................
      ..............9e5...............
      ...............5e9..............
      ................1ae5............
      ..................5db4..........
      ....................7ec61.......
      ......................5b#c85321.
      ........................158bdef#
      ................................
      ................................
      "
    `);
  });

  it("run down as they run across", () => {
    const across = paper(24, 24);
    const down = paper(24, 24);
    for (const [raster, direction] of [
      [across, "across"],
      [down, "down"],
    ] as const) {
      const curves = new Curves(raster, 0, 24, direction);
      curves.draw(3, 19, 0.7, 1.5);
      curves.flush([180, 20, 90]);
    }
    for (let y = 0; y < 24; y++) {
      for (let x = 0; x < 24; x++) expect(across.words[y * 24 + x]).toBe(down.words[x * 24 + y]);
    }
  });

  it("are dashed where colours repeat", () => {
    const raster = paper(32, 3);
    const curves = new Curves(raster, 0, 32);
    curves.draw(1.5, 1.5, 1, 1, true);
    curves.flush(BLACK);
    expect(ascii(raster)).toMatchInlineSnapshot(`
      "
      ................................
      #######.....#######.....#######.
      ................................
      "
    `);
  });

  it("blend in any order to the same picture", () => {
    const lines = [
      [1, 9, 0.3],
      [9, 1, 0.6],
      [5, 5, 0.05],
    ] as const;
    const prints = [lines, [...lines].reverse()].map((some) => {
      const raster = paper(40, 10);
      const curves = new Curves(raster, 2, 38);
      for (const [from, to, alpha] of some) curves.draw(from, to, alpha, 1.5);
      curves.flush(LIGHT.heads[2] as Rgb);
      return fingerprint(raster);
    });
    expect(prints[0]).toBe(prints[1]);
    expect(prints[0]).toMatchInlineSnapshot(`"e3747ce5"`);
  });

  it("let through what painting one after the other does", () => {
    const raster = paper(4, 1);
    const curves = new Curves(raster, 0, 4);
    curves.draw(0.5, 0.5, 0.5, 1);
    curves.draw(0.5, 0.5, 0.5, 1);
    curves.flush(BLACK);
    expect(raster.pixels[0]).toBe(64);
  });

  it("stay inside the picture when their ends do not", () => {
    const raster = paper(16, 8);
    const curves = new Curves(raster, -3, 99);
    curves.draw(-500, 4, 1, 1);
    curves.draw(4, 9000, 1, 1);
    curves.draw(-50, -20, 1, 1);
    curves.flush(BLACK);
    expect(fingerprint(raster)).toMatchInlineSnapshot(`"60089a08"`);
  });

  it("touch only the part of the picture they are given", () => {
    const raster = paper(8, 8);
    const curves = new Curves(raster, 0, 8, "across", 2, 6);
    curves.draw(-10, 18, 1, 3);
    curves.flush(BLACK);
    expect(ascii(raster)).toMatchInlineSnapshot(`
      "
      ........
      ........
      ..6##...
      ..2##...
      ...##2..
      ...##6..
      ........
      ........
      "
    `);
  });
});

describe("cells", () => {
  const bytes = Uint8Array.from([0, 64, 128, 192, 255, 32]);

  it("are crisp squares when there is room", () => {
    const raster = paper(14, 8);
    drawCells(raster, bytes, 2, 3, { x: 1, y: 1, width: 12, height: 6 }, ramp(LIGHT));
    expect(ascii(raster)).toMatchInlineSnapshot(`
      "
      ..............
      .....22224444.
      .....22224444.
      .....22224444.
      .8888cccc1111.
      .8888cccc1111.
      .8888cccc1111.
      ..............
      "
    `);
  });

  it("are the strongest of their neighbours when there is none", () => {
    const raster = paper(2, 2);
    const many = new Uint8Array(36);
    many[7] = 255;
    many[35] = 128;
    drawCells(raster, many, 6, 6, { x: 0, y: 0, width: 2, height: 2 }, ramp(LIGHT));
    expect([...raster.words]).toEqual([word([18, 48, 107]), word(WHITE), word(WHITE), ramp(LIGHT)[128]]);
  });

  it("show the largest difference of either sign, the furthest in its full colour", () => {
    const signed = Uint8Array.of(128, 100, 128, 150, 128, 128, 128, 128);
    const raster = paper(2, 1);
    drawCells(raster, signed, 2, 4, { x: 0, y: 0, width: 2, height: 1 }, stretchedRamp(LIGHT, 28), 0, 128);
    expect([...raster.words]).toEqual([word(LIGHT.negative), stretchedRamp(LIGHT, 28)[150]]);
    expect(stretchedRamp(LIGHT, 28)[156]).toBe(word(LIGHT.positive));
    expect(stretchedRamp(LIGHT, 28)[128]).toBe(word(WHITE));
  });

  it("may hang over the edges", () => {
    const raster = paper(6, 4);
    drawCells(raster, bytes, 2, 3, { x: -2, y: -1, width: 12, height: 8 }, ramp(LIGHT));
    expect(ascii(raster)).toMatchInlineSnapshot(`
      "
      ..2222
      ....22
      ......
      88cccc
      "
    `);
  });

  it("have the colours of the theme at nothing, half and all", () => {
    for (const theme of [LIGHT, DARK]) {
      const colours = ramp(theme);
      expect([colours[0], colours[255]]).toEqual([word(theme.ramp[0]), word(theme.ramp[2])]);
      const signed = signedRamp(theme);
      expect([signed[1], signed[128], signed[255]]).toEqual([theme.negative, theme.ramp[0], theme.positive].map(word));
    }
  });
});

describe("boxes", () => {
  it("blend where they end between pixels", () => {
    const raster = paper(6, 3);
    fillBox(raster, { x: 1.5, y: 0.5, width: 3, height: 2 }, BLACK);
    expect(ascii(raster)).toMatchInlineSnapshot(`
      "
      .4884.
      .8##8.
      .4884.
      "
    `);
  });

  it("have frames inside them, and round corners", () => {
    const raster = paper(16, 8);
    frame(raster, { x: 0, y: 0, width: 7, height: 8 }, BLACK);
    roundBox(raster, { x: 8, y: 0, width: 8, height: 8 }, 3, BLACK, 0.8);
    expect(ascii(raster)).toMatchInlineSnapshot(`
      "
      #######..7cddc7.
      #.....#.7dddddd7
      #.....#.cddddddc
      #.....#.dddddddd
      #.....#.dddddddd
      #.....#.cddddddc
      #.....#.7dddddd7
      #######..7cddc7.
      "
    `);
  });
});

describe("a raster", () => {
  it("fades towards a colour", () => {
    const raster = paper(1, 1);
    const faded = new Raster(1, 1).fadedFrom(raster, [55, 105, 255], 0.5);
    expect([...faded.pixels]).toEqual([155, 180, 255, 255]);
  });
});

describe("a strip of signed cells", () => {
  const colours = signedRamp(LIGHT);
  const strip = (values: number[], width: number, order: number[] | null = null) => {
    const raster = new Raster(width, 2).fill([0, 0, 0]);
    const places = order && Int32Array.from(order);
    drawStrip(raster, Float32Array.from(values), places, { x: 0, y: 0, width, height: 2 }, colours, 2);
    return Array.from(raster.words, (pixel) => colours.indexOf(pixel));
  };

  it("has every value in its colour, in order, full from a size on", () => {
    expect(strip([2, 0, -1, -9], 4)).toEqual(
      [255, 128, 65, 1, 255, 128, 65, 1].map((byte) => colours.indexOf(colours[byte] as number)),
    );
    expect(strip([2, -2], 2, [1, 0]).slice(0, 2)).toEqual(
      [1, 255].map((byte) => colours.indexOf(colours[byte] as number)),
    );
  });

  it("shows the strongest where there is no room for all", () => {
    const [left, right] = strip([0.1, -2, 0, 2], 2);
    expect([left, right]).toEqual([1, 255]);
  });
});
