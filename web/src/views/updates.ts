/** The protocol of `Mounted.update`, once for all views: a newer update overtakes an older one, and the promise of either
 *  resolves when the newest is on screen. */

import { isAborted, problemOf } from "../source";

export class Updates {
  private stop = new AbortController();
  private latest: Promise<void> = Promise.resolve();

  /** `fail` hears of what went wrong in the newest update; of an older one nobody does. */
  constructor(private readonly fail: (problem: Error) => void) {}

  /** Of the newest update: aborted once another overtakes it, or the view is gone. */
  get signal(): AbortSignal {
    return this.stop.signal;
  }

  /** Begin an update, in place of the one that is under way. Never rejects. */
  begin(show: (signal: AbortSignal) => Promise<void>): Promise<void> {
    this.end();
    this.stop = new AbortController();
    const { signal } = this;
    const update: Promise<void> = show(signal)
      .catch((problem) => {
        if (!isAborted(problem) && !signal.aborted) this.fail(problemOf(problem));
      })
      .then(() => (update === this.latest ? undefined : this.latest));
    this.latest = update;
    return update;
  }

  /** The view is gone: what is under way has nobody to draw for. */
  end(): void {
    this.stop.abort();
  }
}
