/** Where parts come from: a server, a saved file or a notebook. The keys are listed in Python's `views/contract/`. */

import type { RunEvent } from "./contract";
import type { Part } from "./wire";

export interface Source {
  /** One part of the current trace, by its key: `trace`, `maps?size=96`, `layer/L3?what=pattern`, …
   *  Rejects with a SourceError whose message can be shown. */
  part<Props>(key: string, signal?: AbortSignal): Promise<Part<Props>>;
  /** Whether it can be asked for anything (a server), or holds only what was saved. */
  readonly isLive: boolean;
  /** Has something worked out that needs the model; absent where there is none to ask. Aborting the signal stops it. */
  task?<Props>(
    name: string,
    options: Record<string, unknown>,
    hear: (event: RunEvent) => void,
    signal: AbortSignal,
  ): Promise<Part<Props>>;
  /** Whether it holds a part, where it can be asked for nothing else. */
  has?(key: string): boolean;
}

export class SourceError extends Error {
  constructor(
    message: string,
    readonly hint = "",
    readonly error = "Error",
    /** The HTTP status, 0 where there was no answer at all. */
    readonly status = 0,
    /** Seconds until it makes sense to ask again, where the server said so. */
    readonly wait = 0,
    /** What an input that is too long can be cut to: `512 tokens`. */
    readonly cutTo = "",
  ) {
    super(message);
  }
}

/** The words of anything thrown, as something that can be shown. */
export function problemOf(thrown: unknown): SourceError {
  if (thrown instanceof SourceError) return thrown;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new SourceError(message, "Reload the page; if it happens again, please report it.", "PageError");
}

/** The server holds no result, and the user has not asked for one. */
export function notComputed(): SourceError {
  return new SourceError("Not computed yet.", "", "NotComputed");
}

export function isNotComputed(thrown: unknown): boolean {
  return thrown instanceof SourceError && thrown.error === "NotComputed";
}

/** Whether something was only stopped, by us or by the user. */
export function isAborted(thrown: unknown): boolean {
  return thrown instanceof DOMException && thrown.name === "AbortError";
}
