/** Tables as files. */

export interface Sheet {
  columns: string[];
  rows: (string | number)[][];
}

/** RFC 4180: quoted where a comma, a quote or a line break is inside. */
export function csv({ columns, rows }: Sheet): string {
  const cell = (value: string | number) => {
    const text = String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return `${[columns, ...rows].map((row) => row.map(cell).join(",")).join("\r\n")}\r\n`;
}

/** One object a row; numbers that JSON cannot hold (−∞, NaN) as null. */
export function json({ columns, rows }: Sheet): string {
  const value = (cell: string | number | undefined) =>
    typeof cell === "number" && !Number.isFinite(cell) ? null : (cell ?? null);
  const objects = rows.map((row) => Object.fromEntries(columns.map((name, index) => [name, value(row[index])])));
  return `[\n${objects.map((row) => `  ${JSON.stringify(row)}`).join(",\n")}\n]\n`;
}
