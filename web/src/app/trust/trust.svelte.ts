/** The quick set on the run on screen: where a test stands, and the badges of the heads that were tested. */

import type { BadgeProps, RunEvent, TrustProps } from "../../contract";
import { badgeOf, joinTrust } from "../../data/trust";
import { requestOf } from "../../request";
import { isAborted, problemOf, type SourceError } from "../../source";
import { QUEUED } from "../progress";
import type { OpenRun, Runs, Tasks } from "../slices";

/** Runs whose badges are remembered: whoever undoes an edit sees those of the run before again. */
const MOST_RUNS = 20;

export class Trust {
  tested = $state.raw<TrustProps | null>(null);
  progress = $state.raw<RunEvent | null>(null);
  problem = $state.raw<SourceError | null>(null);
  wasStopped = $state(false);
  #stop: AbortController | null = null;
  readonly #earlier = new Map<string, TrustProps>();

  constructor(private readonly bench: Runs & Tasks) {}

  badge(head: string): BadgeProps | undefined {
    return badgeOf(this.tested, head);
  }

  /** Test a head, or with no name all heads. Only ever on a click: no link asks for it. */
  async test(head = "") {
    const run = this.bench.shown;
    if (!run?.source.task || this.progress) return;
    this.bench.allow("trust");
    const stop = new AbortController();
    this.#stop = stop;
    this.problem = null;
    this.wasStopped = false;
    this.progress = QUEUED;
    try {
      const hear = (event: RunEvent) => {
        if (this.#stop === stop) this.progress = event;
      };
      const part = await run.source.task<TrustProps>("trust", { head }, hear, stop.signal);
      if (this.#stop !== stop) return;
      this.tested = joinTrust(this.tested, part.props);
      this.#remember(run, this.tested);
    } catch (thrown) {
      if (this.#stop !== stop) return;
      if (isAborted(thrown)) this.wasStopped = true;
      else this.problem = problemOf(thrown);
    } finally {
      if (this.#stop === stop) this.progress = null;
    }
  }

  cancel() {
    this.#stop?.abort();
  }

  /** Another run is on screen: badges belong to a run with its edits. A saved page holds its own. */
  async take(run: OpenRun) {
    this.forget();
    this.tested = this.#earlier.get(keyOf(run)) ?? null;
    if (!run.source.has?.("trust")) return;
    const { props } = await run.source.part<TrustProps>("trust");
    if (this.bench.shown === run) this.tested = props;
  }

  /** Nothing is on screen. */
  forget() {
    this.#stop?.abort();
    this.#stop = null;
    this.tested = null;
    this.progress = null;
    this.problem = null;
    this.wasStopped = false;
  }

  #remember(run: OpenRun, tested: TrustProps) {
    const key = keyOf(run);
    if (!key) return;
    this.#earlier.delete(key);
    this.#earlier.set(key, tested);
    const [oldest] = this.#earlier.keys();
    if (this.#earlier.size > MOST_RUNS && oldest !== undefined) this.#earlier.delete(oldest);
  }
}

function keyOf({ request }: OpenRun): string {
  return request ? JSON.stringify(requestOf(request)) : "";
}
