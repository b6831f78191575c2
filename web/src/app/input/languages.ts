/** Languages by name: models know them by their codes. */

const NAMES = new Intl.DisplayNames(["en"], { type: "language" });

/** `French` for `fr`; a code that nobody knows stays as it is. */
export function languageName(code: string): string {
  try {
    return NAMES.of(code) ?? code;
  } catch {
    return code; // not written as a code of a language
  }
}

/** Codes in the order of their names. */
export function byName(codes: string[]): string[] {
  return [...codes].sort((a, b) => languageName(a).localeCompare(languageName(b), "en"));
}
