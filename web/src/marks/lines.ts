/** Curved lines between two columns (or rows) of tokens, anti-aliased and blended: many times faster than canvas strokes. */

import type { Rgb } from "../theme";
import type { Raster } from "./raster";

const DASH = 7;
const GAP = 5;

/** Lines that run from `start` to `end` of a picture: across it, or down it. They leave and arrive level, as a cubic
 *  Bézier curve with both handles half-way does.
 *
 *  Lines of one colour are gathered as what they let through, one number a pixel, and laid on the picture together: that
 *  is what painting them one after the other gives, whatever their order, and faint ones are not lost to rounding.
 */
export class Curves {
  private readonly first: number;
  private readonly count: number;
  private readonly size: number;
  private readonly share: Float64Array;
  private readonly slope: Float64Array;
  /** What is let through, [step along the line, place aside]. */
  private readonly through: Float32Array;

  constructor(
    private readonly raster: Raster,
    start: number,
    end: number,
    private readonly direction: "across" | "down" = "across",
    /** Aside: the part of the picture that lines may touch. */
    private readonly from = 0,
    to = direction === "across" ? raster.height : raster.width,
  ) {
    const limit = direction === "across" ? raster.width : raster.height;
    this.first = Math.max(0, Math.round(start));
    this.count = Math.max(0, Math.min(limit, Math.round(end)) - this.first);
    this.from = Math.max(0, Math.round(from));
    this.size = Math.max(
      0,
      Math.min(direction === "across" ? raster.height : raster.width, Math.round(to)) - this.from,
    );
    this.share = new Float64Array(this.count);
    this.slope = new Float64Array(this.count);
    for (let i = 0; i < this.count; i++) {
      const u = parameterAt((i + 0.5) / this.count);
      this.share[i] = u * u * (3 - 2 * u);
      this.slope[i] = (6 * u * (1 - u)) / (1.5 - 3 * u + 3 * u * u) / this.count;
    }
    this.through = new Float32Array(this.count * this.size).fill(1);
  }

  draw(from: number, to: number, alpha: number, width: number, dashed = false): void {
    const { share, slope, size, through, count } = this;
    const half = width / 2 + 0.5;
    const rise = to - from;
    const origin = from - this.from - 0.5;
    if (Math.min(origin, origin + rise) > size + half || Math.max(origin, origin + rise) < -half) return;
    for (let i = 0; i < count; i++) {
      if (dashed && i % (DASH + GAP) >= DASH) continue;
      const centre = origin + rise * (share[i] as number);
      const tilt = rise * (slope[i] as number);
      // The distance to the line is what covers a pixel, not the distance straight up: so steep lines stay even.
      const stretch = Math.sqrt(1 + tilt * tilt);
      const reach = half * stretch;
      if (centre + reach < 0 || centre - reach > size - 1) continue;
      const low = centre - reach < 0 ? 0 : Math.ceil(centre - reach);
      const high = centre + reach > size - 1 ? size - 1 : Math.floor(centre + reach);
      const shrink = 1 / stretch;
      const row = i * size;
      for (let p = low; p <= high; p++) {
        const off = p - centre;
        const cover = half - (off < 0 ? -off : off) * shrink;
        through[row + p] = (through[row + p] as number) * (1 - (cover < 1 ? alpha * cover : alpha));
      }
    }
  }

  /** Lay what was gathered on the picture, and begin again. */
  flush(colour: Rgb): void {
    const { through, size, count } = this;
    const { pixels, width } = this.raster;
    const [red, green, blue] = colour;
    const isAcross = this.direction === "across";
    const aside = isAcross ? width * 4 : 4;
    for (let i = 0; i < count; i++) {
      let at = isAcross ? (this.from * width + this.first + i) * 4 : ((this.first + i) * width + this.from) * 4;
      for (let p = i * size; p < (i + 1) * size; p++, at += aside) {
        const keep = through[p] as number;
        if (keep === 1) continue;
        pixels[at] = red + ((pixels[at] as number) - red) * keep;
        pixels[at + 1] = green + ((pixels[at + 1] as number) - green) * keep;
        pixels[at + 2] = blue + ((pixels[at + 2] as number) - blue) * keep;
      }
    }
    through.fill(1);
  }
}

/** Where on the curve x = 1.5u(1 − u) + u³ the abscissa t lies. */
function parameterAt(t: number): number {
  let low = 0;
  let high = 1;
  for (let step = 0; step < 30; step++) {
    const u = (low + high) / 2;
    if (1.5 * u * (1 - u) + u * u * u < t) low = u;
    else high = u;
  }
  return (low + high) / 2;
}
