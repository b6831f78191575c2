/** A message with code in backticks, in pieces: text and code by turns, text first. */
export function coded(text: string): string[] {
  return text.split(/`([^`]+)`/);
}
