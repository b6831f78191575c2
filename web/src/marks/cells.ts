/** Heat maps: cells drawn as crisp squares when there is room, as the strongest of their cells when there is not. */

import { between, type Theme } from "../theme";
import { type Raster, word } from "./raster";

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** Colours of bytes on the root scale, as pixels. */
export function ramp(theme: Theme): Uint32Array {
  const [none, half, full] = theme.ramp;
  return Uint32Array.from({ length: 256 }, (_, byte) =>
    word(byte < 128 ? between(none, half, byte / 127.5) : between(half, full, byte / 127.5 - 1)),
  );
}

/** Colours of signed bytes: 128 is nothing, 255 the largest, 1 the most negative. */
export function signedRamp(theme: Theme): Uint32Array {
  const none = theme.ramp[0];
  return Uint32Array.from({ length: 256 }, (_, byte) =>
    word(
      byte < 128
        ? between(none, theme.negative, (128 - byte) / 127)
        : between(none, theme.positive, (byte - 128) / 127),
    ),
  );
}

/** Colours of signed bytes of which none is further than `most` from 128: that one has the full colour. */
export function stretchedRamp(theme: Theme, most: number): Uint32Array {
  const plain = signedRamp(theme);
  return Uint32Array.from({ length: 256 }, (_, byte) => {
    const stretched = Math.round(((byte - 128) * 127) / Math.max(1, most));
    return plain[128 + Math.max(-127, Math.min(127, stretched))] as number;
  });
}

/** Draw a map of bytes [row, column] that starts at `offset`, over a box. Where cells share a pixel, the one furthest from
 *  `none` is seen: 0 for weights, 128 for signed ones. */
export function drawCells(
  raster: Raster,
  bytes: Uint8Array,
  rows: number,
  columns: number,
  box: Box,
  colours: Uint32Array,
  offset = 0,
  none = 0,
): void {
  const left = Math.round(box.x);
  const top = Math.round(box.y);
  const width = Math.round(box.x + box.width) - left;
  const height = Math.round(box.y + box.height) - top;
  const across = spans(columns, width);
  const down = spans(rows, height);
  const { words } = raster;
  for (let y = Math.max(0, -top); y < height && top + y < raster.height; y++) {
    const firstRow = down[2 * y] as number;
    const lastRow = down[2 * y + 1] as number;
    const line = (top + y) * raster.width + left;
    if (y > 0 && top + y > 0 && firstRow === down[2 * y - 2] && lastRow === down[2 * y - 1]) {
      words.copyWithin(line, line - raster.width, line - raster.width + Math.min(width, raster.width - left));
      continue;
    }
    for (let x = Math.max(0, -left); x < width && left + x < raster.width; x++) {
      const firstColumn = across[2 * x] as number;
      const lastColumn = across[2 * x + 1] as number;
      let most = none;
      let far = 0;
      for (let row = firstRow; row < lastRow; row++) {
        const start = offset + row * columns;
        for (let cell = start + firstColumn; cell < start + lastColumn; cell++) {
          const away = Math.abs((bytes[cell] as number) - none);
          if (away > far) {
            far = away;
            most = bytes[cell] as number;
          }
        }
      }
      words[line + x] = colours[most] as number;
    }
  }
}

/** Which cells each pixel shows, as [first, last) pairs: one each when cells are larger than pixels. */
function spans(cells: number, pixels: number): Int32Array {
  const ranges = new Int32Array(2 * pixels);
  for (let i = 0; i < pixels; i++) {
    if (cells <= pixels) {
      ranges[2 * i] = Math.floor(((i + 0.5) * cells) / pixels);
      ranges[2 * i + 1] = (ranges[2 * i] as number) + 1;
    } else {
      ranges[2 * i] = Math.floor((i * cells) / pixels);
      ranges[2 * i + 1] = Math.ceil(((i + 1) * cells) / pixels);
    }
  }
  return ranges;
}

/** Signed bytes are pooled already, so that the stronger sign wins; drawing takes the nearest. */
export function drawSigned(
  raster: Raster,
  bytes: Uint8Array,
  rows: number,
  columns: number,
  area: Box,
  colours: Uint32Array,
): void {
  const left = Math.round(area.x);
  const top = Math.round(area.y);
  const width = Math.round(area.x + area.width) - left;
  const height = Math.round(area.y + area.height) - top;
  for (let y = Math.max(0, -top); y < height && top + y < raster.height; y++) {
    const row = Math.min(rows - 1, Math.floor(((y + 0.5) * rows) / height)) * columns;
    for (let x = Math.max(0, -left); x < width && left + x < raster.width; x++) {
      const column = Math.min(columns - 1, Math.floor(((x + 0.5) * columns) / width));
      raster.words[(top + y) * raster.width + left + x] = colours[bytes[row + column] as number] as number;
    }
  }
}
