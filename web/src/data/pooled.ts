/** A rectangle of a plane as bytes for a picture: the strongest of the cells that share a dot. */

import type { Plane } from "./plane";

/** Rows and columns, each [first, last). */
export interface Region {
  rows: [number, number];
  columns: [number, number];
}

/** At most `tall` × `wide` dots: one a cell while there are fewer cells than that. */
export function pooled(
  plane: Plane,
  region: Region,
  tall: number,
  wide: number,
  isSigned: boolean,
  isRoot = !isSigned,
) {
  const [top, bottom] = region.rows;
  const [left, right] = region.columns;
  const rows = Math.max(1, Math.min(bottom - top, Math.floor(tall)));
  const columns = Math.max(1, Math.min(right - left, Math.floor(wide)));
  const most = new Float32Array(rows * columns);
  const { strength, values, keys, width } = plane;
  const columnOf = new Int32Array(plane.nKeys).fill(-1);
  for (let key = left; key < right; key++) columnOf[key] = Math.floor(((key - left) * columns) / (right - left));
  for (let query = top; query < bottom; query++) {
    const line = Math.floor(((query - top) * rows) / (bottom - top)) * columns;
    const start = query * width;
    const [from, to] = keys ? [0, width] : [left, right];
    for (let r = from; r < to; r++) {
      const key = keys ? (keys[start + r] as number) : r;
      const column = key < 0 ? -1 : (columnOf[key] as number);
      if (column < 0) continue;
      const weight = strength[start + r] as number;
      if (weight > Math.abs(most[line + column] as number)) {
        most[line + column] = isSigned && (values[start + r] as number) < 0 ? -weight : weight;
      }
    }
  }
  return { rows, columns, bytes: coded(most, isSigned, isRoot) };
}

/** Strength as a byte on the root scale; signed ones around 128, linear unless told. */
export function coded(strength: Float32Array, isSigned: boolean, isRoot = !isSigned): Uint8Array {
  const bytes = new Uint8Array(strength.length);
  for (let i = 0; i < bytes.length; i++) {
    const weight = strength[i] as number;
    const share = Math.min(1, Math.abs(weight));
    const size = isRoot ? Math.sqrt(share) : share;
    bytes[i] = isSigned ? Math.round(128 + 127 * (weight < 0 ? -size : size)) : Math.round(255 * size);
  }
  return bytes;
}
