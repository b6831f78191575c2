/** What is asked of the server: runs and models, where that stands, and what went wrong. */

import type { RunEvent, RunRequest, Settings, TraceProps } from "../contract";
import { layerKey } from "../data/load";
import { Gate } from "../hosts/gate";
import { keptRun, load, run, settings, traceSource } from "../hosts/servedPage";
import { sameRequest, withoutEdits } from "../request";
import { DEFAULT, type Selection } from "../selection";
import { isAborted, problemOf, type Source, type SourceError } from "../source";
import type { ComparedRun, Comparing } from "./compare/comparison.svelte";
import type { Edit, Edits } from "./edit/edits.svelte";
import { requestFrom, startRequests } from "./input/draft";
import type { InputForm } from "./input/inputForm.svelte";
import { type Link, switchedOn } from "./link";
import type { PageLinks } from "./pageLinks.svelte";
import { QUEUED } from "./progress";
import type { OpenRun, Runs } from "./slices";

export type Wanted = {
  request: RunRequest;
  /** Whether the user asked for it. If only the address did, the run is shown when the server holds it; else it waits. */
  isConfirmed: boolean;
  selection: Selection | null;
  history: "keep" | "replace";
  /** What it is compared with; as it was where nothing is said. */
  other?: RunRequest | null;
  /** The whole stack, also what is switched off; without it, the request's edits are all there are. */
  edits?: Edit[];
};

/** What requests use of the page around them. */
interface Page extends Runs {
  settings: Settings | null;
  readonly form: InputForm;
  readonly edits: Edits;
  readonly comparing: Comparing;
  readonly links: PageLinks;
  /** A run has come. `isOfShown`: of the input that is on screen already. */
  arrive(openRun: OpenRun, compared: ComparedRun | null, wanted: Wanted, isOfShown: boolean): void;
  /** Take the picture off the screen. */
  clear(): void;
}

export class RunRequests {
  /** Where the run stands that is under way. */
  progress = $state.raw<RunEvent | null>(null);
  problem = $state.raw<SourceError | null>(null);
  wasCancelled = $state(false);
  /** Whether the server is being asked for a run that it may hold. */
  isLookingUp = $state(false);
  /** The last run that was wanted. */
  last: Wanted | null = null;
  #stop: AbortController | null = null;
  /** The request for the settings. */
  #offer: Promise<Settings> | null = null;

  constructor(private readonly page: Page) {}

  cancel() {
    this.#stop?.abort();
  }

  /** Stop what is under way, without a word: the address has changed. */
  halt() {
    this.cancel();
    this.#stop = null;
    this.#settle();
  }

  /** What the server offers, asked for anew. */
  offer(): Promise<Settings> {
    this.#offer = settings();
    return this.#offer;
  }

  /** Load a model: which inputs it takes is known afterwards. The name that the server has it under; null if it failed. */
  async load(name: string): Promise<string | null> {
    const { page } = this;
    const stop = this.#begin();
    this.progress = { ...QUEUED, state: "loading" };
    try {
      const model = await load(name, stop.signal);
      page.settings = await settings(stop.signal);
      if (page.form.draft.model === name) page.form.draft.model = model.name; // a folder has one name only
      return this.#stop === stop ? model.name : null;
    } catch (thrown) {
      if (this.#stop === stop && !isAborted(thrown)) this.problem = problemOf(thrown);
      return null;
    } finally {
      if (this.#stop === stop) this.progress = null;
    }
  }

  async run(wanted: Wanted) {
    const { page } = this;
    const { request, isConfirmed } = wanted;
    const stop = this.#begin();
    this.last = wanted;
    const plain = withoutEdits(request);
    const isOfShown = !!page.shown?.request && sameRequest(plain, withoutEdits(page.shown.request));
    if (!isOfShown && !sameRequest(requestFrom(page.form.draft), plain)) page.form.fill(request);
    this.progress = isConfirmed ? QUEUED : null;
    this.isLookingUp = !isConfirmed;
    try {
      const id = await this.#trace(wanted, stop);
      if (id === null) {
        if (this.#stop === stop) page.links.wait(linkOf(wanted));
        return;
      }
      const openRun = await this.#opened(id, wanted, stop.signal);
      const compared = await page.comparing.prepare(openRun, wanted.other, stop.signal);
      if (this.#stop !== stop) return;
      page.arrive(openRun, compared, wanted, isOfShown);
      this.progress = null;
      this.isLookingUp = false;
      await this.#learn(stop.signal);
    } catch (thrown) {
      if (this.#stop !== stop) return;
      page.edits.revert();
      const wasRunning = this.progress !== null;
      if (!isAborted(thrown)) {
        this.problem = problemOf(thrown);
        if (!isConfirmed) page.clear();
      } else if (wasRunning) this.wasCancelled = true;
      // What the model takes is known by now: the form offers it, to try again. Where nobody answers, that was said.
      await this.#learn(stop.signal).catch(() => {});
    } finally {
      if (this.#stop === stop) {
        this.progress = null;
        this.isLookingUp = false;
      }
    }
  }

  /** In place of what is under way. */
  #begin(): AbortController {
    this.cancel();
    this.#settle();
    this.#stop = new AbortController();
    return this.#stop;
  }

  #settle() {
    this.page.links.set(null);
    this.problem = null;
    this.progress = null;
    this.isLookingUp = false;
    this.wasCancelled = false;
  }

  async #opened(id: string, wanted: Wanted, signal: AbortSignal): Promise<OpenRun> {
    const { page } = this;
    const gate: Gate = new Gate(wanted.isConfirmed, (task) => {
      // What is on screen may ask once more while the run that the user has confirmed is under way.
      const isOnScreen = page.shown?.gate === gate || page.other?.gate === gate;
      if (isOnScreen && !this.progress) page.links.miss(task, linkOf(wanted));
    });
    const source = traceSource(id, gate);
    warm(source, wanted.selection, signal);
    const trace = (await source.part<TraceProps>("trace", signal)).props;
    return { request: wanted.request, trace, source, gate };
  }

  /** The id of the run's trace, held by the server or computed. Null if the user has to confirm it first. */
  async #trace({ request, isConfirmed }: Wanted, stop: AbortController): Promise<string | null> {
    const { page } = this;
    const hear = (event: RunEvent) => {
      if (this.#stop === stop && event.state !== "done") this.progress = event;
    };
    const compute = () => run(request, hear, stop.signal);
    if (isConfirmed) return compute();
    const kept = await keptRun(request, stop.signal);
    if (kept !== null) return kept;
    page.settings ??= await (this.#offer ?? this.offer());
    // The page computes by itself only what it shows without a link, or for a link without an input.
    const isStart = startRequests(page.settings).some((start) => sameRequest(request, start));
    if (!isStart || this.#stop !== stop) return null;
    this.progress = QUEUED;
    return compute();
  }

  /** A model that a run has loaded tells more of itself. */
  async #learn(signal: AbortSignal) {
    const { page } = this;
    if (!page.settings || page.form.model?.is_loaded) return;
    page.settings = await settings(signal);
    page.form.fit();
  }
}

/** What a link shows first is asked for beside the trace, not after it. */
function warm(source: Source, selection: Selection | null, signal: AbortSignal) {
  if (selection?.scale !== "head" || !selection.site) return;
  // A link may name a layer that is not there: then another is shown, and this is of no matter.
  source.part(layerKey(selection.site, selection.what), signal).catch(() => undefined);
}

export function linkOf({ request, selection, other, edits }: Wanted): Link {
  return {
    model: request.model,
    request,
    edits: edits ?? switchedOn(request),
    selection: selection ?? DEFAULT,
    other: other ?? null,
    kept: "",
  };
}
