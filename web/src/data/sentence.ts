/** A message of the server as a sentence: Python's begin small, and may end without a stop. What begins with code stays. */
export function sentence(text: string): string {
  const start = /^[a-z]+[ ,]/.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text;
  return /[.!?]$/.test(start) ? start : `${start}.`;
}
