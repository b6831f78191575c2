/** Texts of tokens that stand at more than one place: alone they do not say which token is meant. */

export function repeatedTexts(texts: string[]): Set<string> {
  const seen = new Set<string>();
  return new Set(texts.filter((text) => seen.has(text) || !seen.add(text)));
}
