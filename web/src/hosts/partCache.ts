/** Parts that were asked for before: given again at once, within a limit of bytes; asked for once when asked for twice. */

import type { Part } from "../wire";

const LIMIT = 128 * 2 ** 20;

type Load = (key: string, signal: AbortSignal) => Promise<Part<unknown>>;

interface Entry {
  part: Promise<Part<unknown>>;
  bytes: number;
  waiting: number;
  stop: AbortController;
}

export function partCache(load: Load, limit = LIMIT) {
  const entries = new Map<string, Entry>(); // oldest first

  function begin(key: string): Entry {
    const stop = new AbortController();
    const entry: Entry = { part: load(key, stop.signal), bytes: 0, waiting: 0, stop };
    entries.set(key, entry);
    entry.part.then(
      (part) => {
        entry.bytes = Object.values(part.arrays).reduce((sum, one) => sum + one.values.byteLength, 0);
        forget();
      },
      () => entries.get(key) === entry && entries.delete(key),
    );
    return entry;
  }

  function forget() {
    let total = [...entries.values()].reduce((sum, one) => sum + one.bytes, 0);
    for (const [key, entry] of entries) {
      if (total <= limit) return;
      if (!entry.bytes) continue;
      total -= entry.bytes;
      entries.delete(key);
    }
  }

  return async <Props>(key: string, signal?: AbortSignal): Promise<Part<Props>> => {
    signal?.throwIfAborted();
    const entry = entries.get(key) ?? begin(key);
    entries.delete(key);
    entries.set(key, entry); // now the newest
    entry.waiting++;
    try {
      return (await (signal ? Promise.race([entry.part, aborted(signal)]) : entry.part)) as Part<Props>;
    } finally {
      entry.waiting--;
      // Whoever came last and left takes the request along; what has arrived stays.
      if (signal?.aborted && !entry.waiting && !entry.bytes) {
        if (entries.get(key) === entry) entries.delete(key);
        entry.stop.abort();
      }
    }
  };
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(new DOMException("no longer wanted", "AbortError")), { once: true });
  });
}
