/** Find in text: where a text occurs among tokens, even across several of them. */

import type { Reading } from "./reading";

/** The tokens of each place where the text occurs, upper and lower case alike. */
export function occurrences(reading: Reading, text: string): number[][] {
  const wanted = text.toLocaleLowerCase();
  if (!wanted.trim()) return [];
  let whole = "";
  const starts: number[] = [];
  reading.texts.forEach((token, index) => {
    if (index > 0 && reading.isSpaced[index]) whole += " ";
    starts.push(whole.length);
    whole += token.toLocaleLowerCase();
  });
  const places: number[][] = [];
  for (let at = whole.indexOf(wanted); at >= 0; at = whole.indexOf(wanted, at + wanted.length)) {
    const tokens = reading.texts.flatMap((token, index) => {
      const start = starts[index] as number;
      return start < at + wanted.length && start + token.length > at ? [index] : [];
    });
    if (tokens.length) places.push(tokens);
  }
  return places;
}
