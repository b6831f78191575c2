/** What a run is asked for: a model, an input, edits. */

import type { RunRequest } from "./contract";

/** A request with what it does not name as by default. */
export function requestOf(fields: Partial<RunRequest> & { model: string }): RunRequest {
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
    language: null,
    task: null,
    ...fields,
  };
}

export function sameRequest(request: RunRequest | null, other: RunRequest | null): boolean {
  return JSON.stringify(request && requestOf(request)) === JSON.stringify(other && requestOf(other));
}

export function withoutEdits(request: RunRequest): RunRequest {
  return { ...request, edits: [] };
}
