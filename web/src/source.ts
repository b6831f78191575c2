/** Where parts come from: a server, a saved file or a notebook. The keys are listed in Python's `views/contract.py`. */

import type { Part } from "./wire";

export interface Source {
  /** One part of the current trace, by its key: `trace`, `maps?size=96`, `layer/L3?what=pattern`, …
   *  Rejects with a SourceError whose message can be shown. */
  part<Props>(key: string, signal?: AbortSignal): Promise<Part<Props>>;
  /** Whether it can be asked for anything (a server), or holds only what was saved. */
  readonly isLive: boolean;
}

export class SourceError extends Error {
  constructor(
    message: string,
    readonly hint = "",
    readonly error = "Error",
  ) {
    super(message);
  }
}
