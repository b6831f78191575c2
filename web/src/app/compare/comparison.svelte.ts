/** Two runs: what the one on screen is compared with, how their tokens correspond, and the difference between them. */

import type { AlignmentProps, RunEvent, RunRequest, TraceProps } from "../../contract";
import { Aligned, type Run } from "../../data/aligned";
import { Gate } from "../../hosts/gate";
import { differenceSource, keptRun, minus, run, traceSource } from "../../hosts/servedPage";
import { fitted, type Selection, type Side } from "../../selection";
import { isAborted, problemOf, type SourceError } from "../../source";
import type { Mounted } from "../../views/view";
import { QUEUED } from "../progress";
import type { Linked, Measured, OpenRun, Place, Runs, Selecting, Tasks, Viewing } from "../slices";

/** The other run, once it is there. */
export interface ComparedRun {
  /** Null where it could not be run. */
  other: OpenRun | null;
  aligned: Aligned | null;
  difference: OpenRun | null;
  /** Why there is no other run, or why the two cannot be aligned. */
  problem: SourceError | null;
  /** Whether the server holds no such run, and the user has not asked for it. */
  isAbsent?: boolean;
}

type Token = { side: Side; index: number };

export class Comparing {
  /** Where the other run stands, while it is under way. */
  progress = $state.raw<RunEvent | null>(null);
  /** Why there is no other run, or why its tokens cannot be aligned with those on screen. */
  problem = $state.raw<SourceError | null>(null);
  aligned = $state.raw<Aligned | null>(null);
  /** The run on screen minus the other, as if it were a run. */
  difference = $state.raw<OpenRun | null>(null);
  /** The view of the other run, where it stands beside. */
  beside: Mounted | null = null;
  #stop: AbortController | null = null;

  constructor(private readonly bench: Place & Selecting & Runs & Measured & Tasks & Viewing & Linked) {}

  destroy() {
    this.#stop?.abort();
  }

  get isOn(): boolean {
    return this.bench.other !== null && this.bench.selection.compare !== "off";
  }

  /** Run something, and compare what is on screen with it. */
  async with(request: RunRequest, mode?: Selection["compare"]) {
    const { shown: run } = this.bench;
    if (!run) return;
    this.#stop?.abort();
    const stop = new AbortController();
    this.#stop = stop;
    this.problem = null;
    this.progress = QUEUED;
    try {
      const compared = await this.#compared(run, request, stop.signal, true);
      if (this.#stop !== stop || this.bench.shown !== run) return;
      this.take(compared);
      this.bench.allow("compare");
      this.#turn(mode ?? (compared.difference ? "difference" : "side"));
    } catch (thrown) {
      if (this.#stop === stop && !isAborted(thrown)) this.problem = problemOf(thrown);
    } finally {
      if (this.#stop === stop) this.progress = null;
    }
  }

  /** For a run that is about to be shown: what it is compared with; null for nothing. */
  async prepare(run: OpenRun, other: RunRequest | null | undefined, signal: AbortSignal): Promise<ComparedRun | null> {
    const request = other === undefined ? this.bench.other?.request : other;
    if (!request || this.bench.home.kind !== "page") return null;
    const known = this.bench.other;
    if (other === undefined && known) return this.#aligned(run, known, signal);
    try {
      return await this.#compared(run, request, signal, run.gate?.isOpen ?? false);
    } catch (thrown) {
      if (isAborted(thrown)) throw thrown;
      return { other: null, aligned: null, difference: null, problem: problemOf(thrown) };
    }
  }

  take(compared: ComparedRun | null) {
    this.bench.other = compared?.other ?? null;
    this.aligned = compared?.aligned ?? null;
    this.difference = compared?.difference ?? null;
    this.problem = compared?.problem ?? null;
  }

  /** Side by side, or the difference. */
  as(mode: "side" | "difference") {
    this.#turn(mode);
  }

  /** The other run on screen, compared with this one. */
  swap() {
    const { shown: run, other, selection } = this.bench;
    if (run?.request && other?.request) void this.bench.exchange(other.request, run.request, selection);
  }

  leave() {
    this.#stop?.abort();
    this.progress = null;
    if (!this.bench.other && !this.problem) return;
    const isWhole = this.aligned?.isWhole ?? false;
    // First, so that the link that is written no longer has it.
    this.take(null);
    this.bench.measures.scores = null;
    this.bench.select({ compare: "off", beside: "", ...(isWhole ? {} : { token: null, off: [] }) });
  }

  /** A selection as it can be shown with what there is to compare. */
  fitted(selection: Selection): Selection {
    if (this.bench.home.kind !== "page") return selection;
    if (!this.bench.other) return { ...selection, compare: "off", beside: "" };
    const compare = selection.compare === "difference" && !this.difference ? "side" : selection.compare;
    return { ...selection, compare: compare === "off" ? (this.difference ? "difference" : "side") : compare };
  }

  /** The selection, as the other run shows it: the same head, or the one chosen for it, and the tokens that correspond. */
  selectionBeside(selection: Selection): Selection {
    const { shown: run, other } = this.bench;
    if (!run || !other) return selection;
    const own = /^(.*L\d+)H(\d+)$/.exec(selection.beside);
    const place = own ? { site: own[1] ?? "", head: Number(own[2]), heads: [Number(own[2])] } : {};
    const plain = { ...selection, ...place, token: null, off: this.aligned?.off("a", selection.off) ?? [] };
    const next = fitted(plain, other.trace);
    if (!selection.token || !this.aligned) return next;
    const traces = { a: run.trace, b: other.trace };
    const token = this.aligned.token("a", selection.token, traces, { a: selection, b: next });
    return { ...next, token };
  }

  /** A change that was made in the view of the other run, as a change here. */
  changeFromBeside(change: Partial<Selection>): Partial<Selection> {
    const { shown: run, other, selection } = this.bench;
    if (!run || !other) return {};
    const { site, head, heads, token, off, ...rest } = change;
    const changes: Partial<Selection> = rest;
    const own = this.selectionBeside(selection);
    if (site !== undefined || head !== undefined) {
      const isSame = !this.aligned?.props.no_difference;
      if (isSame)
        Object.assign(changes, { site: site ?? own.site, head: head ?? own.head, ...(heads ? { heads } : {}) });
      else changes.beside = `${site ?? own.site}H${head ?? own.head}`;
    }
    if (token !== undefined) {
      const traces = { a: run.trace, b: other.trace };
      changes.token = token && (this.aligned?.token("b", token, traces, { a: selection, b: own }) ?? null);
    }
    if (off !== undefined) changes.off = this.aligned?.off("b", off) ?? [];
    return changes;
  }

  /** The pointer is on a token of one run: show its partner in the other. */
  point(from: Run, token: Token | null) {
    const { shown: run, other, selection, view } = this.bench;
    if (!run || !other || selection.compare !== "side" || !/^(head|activations)$/.test(selection.scale)) return;
    const target = from === "a" ? this.beside : view;
    const how = { a: selection, b: this.selectionBeside(selection) };
    const traces = { a: run.trace, b: other.trace };
    target?.highlight?.(token && (this.aligned?.token(from, token, traces, how) ?? null));
  }

  #turn(compare: Selection["compare"]) {
    const isMoved = compare !== this.bench.selection.compare && !this.aligned?.isWhole;
    this.bench.select({ compare, ...(isMoved ? { token: null, off: [] } : {}) });
    this.bench.relinked();
  }

  async #compared(
    openRun: OpenRun,
    request: RunRequest,
    signal: AbortSignal,
    isConfirmed: boolean,
  ): Promise<ComparedRun> {
    const id = await (isConfirmed ? run(request, (event) => this.#hear(event), signal) : keptRun(request, signal));
    if (id === null) return { other: null, aligned: null, difference: null, problem: null, isAbsent: true };
    const gate = new Gate(isConfirmed, (task) => openRun.gate?.miss(task));
    const source = traceSource(id, gate);
    const trace = (await source.part<TraceProps>("trace", signal)).props;
    return this.#aligned(openRun, { request, trace, source, gate }, signal);
  }

  #hear(event: RunEvent) {
    if (this.progress && event.state !== "done") this.progress = event;
  }

  async #aligned(run: OpenRun, other: OpenRun, signal: AbortSignal): Promise<ComparedRun> {
    const { id } = other.trace;
    try {
      const aligned = new Aligned(await run.source.part<AlignmentProps>(minus("alignment", id), signal));
      if (aligned.props.no_difference) return { other, aligned, difference: null, problem: null };
      const source = differenceSource(run.source, id);
      const trace = (await source.part<TraceProps>("trace", signal)).props;
      const difference: OpenRun = { request: run.request, trace, source };
      if (run.gate) difference.gate = run.gate;
      return { other, aligned, difference, problem: null };
    } catch (thrown) {
      if (isAborted(thrown)) throw thrown;
      return { other, aligned: null, difference: null, problem: problemOf(thrown) };
    }
  }
}
