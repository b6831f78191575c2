/** Small choices of how the page is arranged, kept from visit to visit where the browser lets us. */

const PREFIX = "headscope:";

export function preference(name: string): string | null {
  try {
    return localStorage.getItem(PREFIX + name);
  } catch {
    return null;
  }
}

export function setPreference(name: string, value: string): void {
  try {
    localStorage.setItem(PREFIX + name, value);
  } catch {
    // It holds for this visit then.
  }
}
