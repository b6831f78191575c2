/** Tokens that stand twice in a text: what induction heads follow. */

import type { StackProps } from "../contract";

export interface Repeat {
  /** The later one, and the token after the earlier one, by position. */
  query: number;
  key: number;
  text: string;
  next: string;
}

/** The last word that stood there before, with what came after it then; null where no word does. */
export function repeatedToken({ texts, special }: Pick<StackProps, "texts" | "special">): Repeat | null {
  const isWord = (place: number) => !special.includes(place) && /\p{L}/u.test(texts[place] ?? "");
  for (let query = texts.length - 1; query > 1; query--) {
    if (!isWord(query)) continue;
    const earlier = texts.lastIndexOf(texts[query] as string, query - 2);
    const key = earlier + 1;
    if (earlier >= 0) return { query, key, text: texts[query]?.trim() ?? "", next: texts[key]?.trim() ?? "" };
  }
  return null;
}
