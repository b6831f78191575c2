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
    const cached: Entry = { part: load(key, stop.signal), bytes: 0, waiting: 0, stop };
    entries.set(key, cached);
    cached.part.then(
      (part) => {
        cached.bytes = Object.values(part.arrays).reduce((sum, array) => sum + array.values.byteLength, 0);
        forget();
      },
      () => entries.get(key) === cached && entries.delete(key),
    );
    return cached;
  }

  function forget() {
    let total = [...entries.values()].reduce((sum, cached) => sum + cached.bytes, 0);
    for (const [key, cached] of entries) {
      if (total <= limit) return;
      if (!cached.bytes) continue;
      total -= cached.bytes;
      entries.delete(key);
    }
  }

  return async <Props>(key: string, signal?: AbortSignal): Promise<Part<Props>> => {
    signal?.throwIfAborted();
    const cached = entries.get(key) ?? begin(key);
    entries.delete(key);
    entries.set(key, cached); // now the newest
    cached.waiting++;
    try {
      return (await (signal ? Promise.race([cached.part, aborted(signal)]) : cached.part)) as Part<Props>;
    } finally {
      cached.waiting--;
      // Whoever came last and left takes the request along; what has arrived stays.
      if (signal?.aborted && !cached.waiting && !cached.bytes) {
        if (entries.get(key) === cached) entries.delete(key);
        cached.stop.abort();
      }
    }
  };
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(new DOMException("no longer wanted", "AbortError")), { once: true });
  });
}
