/** Find in text: where a text occurs among tokens, even across several of them. */

import type { Reading } from "./reading";

/** The tokens of each place where the text occurs, upper and lower case alike. */
export function occurrences(reading: Reading, text: string): number[][] {
  const wanted = text.toLocaleLowerCase();
  if (!wanted.trim()) return [];
  const parts: string[] = [];
  const starts: number[] = [];
  const ends: number[] = [];
  let length = 0;
  reading.texts.forEach((token, index) => {
    const space = index > 0 && reading.isSpaced[index] ? " " : "";
    const name = token.toLocaleLowerCase();
    parts.push(space, name);
    starts.push(length + space.length);
    length += space.length + name.length;
    ends.push(length);
  });
  const whole = parts.join("");
  const places: number[][] = [];
  let first = 0; // tokens before it end before the place: places come in order, so each token is passed once
  for (let at = whole.indexOf(wanted); at >= 0; at = whole.indexOf(wanted, at + wanted.length)) {
    while (first < ends.length && (ends[first] as number) <= at) first++;
    const tokens: number[] = [];
    for (let token = first; (starts[token] ?? Number.POSITIVE_INFINITY) < at + wanted.length; token++) {
      if ((ends[token] as number) > at) tokens.push(token);
    }
    if (tokens.length) places.push(tokens);
  }
  return places;
}
