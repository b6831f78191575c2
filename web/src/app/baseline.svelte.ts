/** The same run without edits, beside an edited one: remembered here, or by the server, or run. */

import type { TraceProps } from "../contract";
import { keptRun, run, traceSource } from "../hosts/servedPage";
import { sameRequest, withoutEdits } from "../request";
import { problemOf } from "../source";
import type { Messages, OpenRun, Runs } from "./slices";

export class Baseline {
  /** The same run without edits, where the one on screen has some. */
  run = $state.raw<OpenRun | null>(null);
  /** Whether the server does not hold that run, and the user has not asked for it. */
  isAbsent = $state(false);
  /** The last run without edits. */
  #plain: OpenRun | null = null;

  constructor(private readonly page: Runs & Messages) {}

  forget() {
    this.run = null;
  }

  /** Another run is on screen. */
  async take(openRun: OpenRun) {
    const { request, gate } = openRun;
    this.isAbsent = false;
    this.run = null;
    if (!request?.edits.length) {
      this.#plain = openRun;
      return;
    }
    const plain = withoutEdits(request);
    if (this.#plain && sameRequest(this.#plain.request, plain)) {
      this.run = this.#plain;
      return;
    }
    if (!gate) return;
    try {
      const { signal } = new AbortController();
      const id = await (gate.isOpen ? run(plain, () => {}, signal) : keptRun(plain, signal));
      if (id === null) {
        if (this.page.shown === openRun) this.isAbsent = true;
        return gate.miss("effect");
      }
      const source = traceSource(id, gate);
      const trace = (await source.part<TraceProps>("trace")).props;
      this.#plain = { request: plain, trace, source, gate };
      if (this.page.shown === openRun) this.run = this.#plain;
    } catch (thrown) {
      if (this.page.shown === openRun) this.page.say(`Nothing to compare with: ${problemOf(thrown).message}`);
    }
  }
}
