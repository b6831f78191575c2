/** The strongest dots of a head's map: what a head is doing, in a few pairs. */

export interface Dot {
  row: number;
  column: number;
  weight: number;
}

/** At most one dot a row, so that one query does not fill the list; the first column only where there is nothing else, as
 *  heads park there what they do not use. */
export function strongestCells(
  bytes: Uint8Array,
  offset: number,
  rows: number,
  columns: number,
  count: number,
  isSigned = false,
): Dot[] {
  const apart = strongestOf(bytes, offset, rows, columns, Math.min(1, columns - 1), isSigned);
  const cells = apart.length ? apart : strongestOf(bytes, offset, rows, columns, 0, isSigned);
  return cells.sort((a, b) => Math.abs(b.weight) - Math.abs(a.weight) || a.row - b.row).slice(0, count);
}

function strongestOf(
  bytes: Uint8Array,
  offset: number,
  rows: number,
  columns: number,
  first: number,
  isSigned: boolean,
): Dot[] {
  const [none, full] = isSigned ? [128, 127] : [0, 255];
  const best: Dot[] = [];
  for (let row = 0; row < rows; row++) {
    let most = 0;
    let place = 0;
    for (let column = first; column < columns; column++) {
      const byte = (bytes[offset + row * columns + column] as number) - none;
      if (Math.abs(byte) > Math.abs(most)) [most, place] = [byte, column];
    }
    if (most) best.push({ row, column: place, weight: Math.sign(most) * (most / full) ** 2 });
  }
  return best;
}
