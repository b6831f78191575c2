/** The colours of a measure's scores: those of weights in the workbench, or of differences where scores have a sign. */

import { drawCells, ramp, signedRamp } from "../marks/cells";
import { Raster } from "../marks/raster";
import { css, type Theme } from "../theme";
import { make } from "./elements";
import type { Range } from "./figures";

const LEGEND = 160; // px

export class ColourScale {
  private readonly colours: Uint32Array;

  constructor(
    theme: Theme,
    private readonly range: Range,
  ) {
    this.colours = range.isSigned ? signedRamp(theme) : ramp(theme);
  }

  /** The byte of a score on the ramp; of both signs, 128 is 0. */
  byte(score: number): number {
    const { low, high, isSigned } = this.range;
    const share = Math.max(0, Math.min(1, (score - low) / (high - low || 1)));
    return isSigned ? Math.round(1 + 254 * share) : Math.round(255 * share);
  }

  css(score: number): string {
    const word = this.colours[this.byte(score)] as number;
    return css([word & 255, (word >> 8) & 255, (word >> 16) & 255]);
  }

  /** All colours from the lowest score to the highest. */
  legend(): HTMLCanvasElement {
    const { low, high } = this.range;
    const bytes = Uint8Array.from({ length: LEGEND }, (_, x) => this.byte(low + ((high - low) * x) / (LEGEND - 1)));
    return mapCanvas(bytes, 1, LEGEND, this.colours, { "aria-hidden": true });
  }
}

/** A map of bytes as a canvas, a pixel a cell. */
export function mapCanvas(
  bytes: Uint8Array,
  rows: number,
  columns: number,
  colours: Uint32Array,
  attributes: Record<string, string | boolean>,
  offset = 0,
): HTMLCanvasElement {
  const canvas = make("canvas", { width: columns, height: rows, ...attributes });
  const raster = new Raster(columns, rows);
  drawCells(raster, bytes, rows, columns, { x: 0, y: 0, width: columns, height: rows }, colours, offset);
  raster.show(canvas.getContext("2d") as CanvasRenderingContext2D);
  return canvas;
}
