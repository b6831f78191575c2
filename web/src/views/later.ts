/** Work that waits until nobody asks for anything else: numbers for where the pointer rests. */

export class Later {
  private stop = new AbortController();
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** Do this after a pause, in place of what waits or is under way. It fails without a word: what is on screen stays. */
  after(pause: number, act: (signal: AbortSignal) => Promise<void>): void {
    this.cancel();
    this.stop = new AbortController();
    const { signal } = this.stop;
    this.timer = setTimeout(() => {
      act(signal).catch(() => {
        // What is drawn already is true, only less exact.
      });
    }, pause);
  }

  cancel(): void {
    clearTimeout(this.timer);
    this.stop.abort();
  }
}
