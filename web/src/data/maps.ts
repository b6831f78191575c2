/** The strongest dots of a head's map: what a head is doing, in a few pairs. */

export interface Dot {
  row: number;
  column: number;
  weight: number;
}

/** At most one dot a row, so that one query does not fill the list; the first column only where there is nothing else, as
 *  heads park there what they do not use. */
export function strongestCells(bytes: Uint8Array, offset: number, rows: number, columns: number, count: number): Dot[] {
  const apart = strongestOf(bytes, offset, rows, columns, Math.min(1, columns - 1));
  const found = apart.length ? apart : strongestOf(bytes, offset, rows, columns, 0);
  return found.sort((a, b) => b.weight - a.weight || a.row - b.row).slice(0, count);
}

function strongestOf(bytes: Uint8Array, offset: number, rows: number, columns: number, first: number): Dot[] {
  const best: Dot[] = [];
  for (let row = 0; row < rows; row++) {
    let most = 0;
    let place = 0;
    for (let column = first; column < columns; column++) {
      const byte = bytes[offset + row * columns + column] as number;
      if (byte > most) [most, place] = [byte, column];
    }
    if (most > 0) best.push({ row, column: place, weight: (most / 255) ** 2 });
  }
  return best;
}
