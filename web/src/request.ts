/** What a run is asked for: a model, an input, edits. */

import type { RunRequest } from "./contract";

/** A request with what it does not name as by default. */
export function requestOf(given: Partial<RunRequest> & { model: string }): RunRequest {
  return {
    text: null,
    pair: null,
    target: null,
    chat: null,
    truncate: false,
    record: null,
    edits: [],
    generate: 0,
    media: null,
    ...given,
  };
}

export function sameRequest(one: RunRequest | null, other: RunRequest | null): boolean {
  return JSON.stringify(one && requestOf(one)) === JSON.stringify(other && requestOf(other));
}
