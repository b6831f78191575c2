/** The state of the page, and everything that changes it. One per mounted page; nothing outside it remembers anything. */

import type {
  EvidenceProps,
  ModelProps,
  RunEvent,
  RunRequest,
  SavedProps,
  ScoresProps,
  Settings,
  TraceProps,
} from "../contract";
import { layerKey } from "../data/load";
import { joined, Measures, strongestHead } from "../data/measures";
import { RELEVANCE, type Relevance } from "../data/relevance";
import { type Report, reportOf } from "../data/report";
import { headName } from "../data/trace";
import { type Address, keep, recall } from "../hosts/address";
import { savedAtlasSource } from "../hosts/atlasFile";
import { saved } from "../hosts/file";
import { Gate } from "../hosts/gate";
import { keptRun, load, run, settings, traceSource } from "../hosts/servedPage";
import { requestOf, sameRequest } from "../request";
import { carried, changed, cleaned, DEFAULT, fitted, opened, type Selection } from "../selection";
import { fragmentOf } from "../selectionLink";
import { isAborted, problemOf, type Source, SourceError } from "../source";
import type { Legend } from "../views/legend";
import type { Mounted } from "../views/view";
import type { Part } from "../wire";
import { AtlasBench } from "./atlas/atlasBench.svelte";
import { exampleRequest } from "./atlas/exampleRequest";
import { Comparing } from "./compare/comparison.svelte";
import { isOfModel } from "./edit/calls";
import { calls, type Edit, Edits } from "./edit/edits.svelte";
import { Finder, measureOf } from "./find/finder.svelte";
import {
  type Draft,
  draftOf,
  EMPTY,
  formsOf,
  mediaOf,
  missing,
  nameOf,
  presetRequest,
  requestFrom,
  startPreset,
  startRequests,
} from "./input/draft";
import { type Link, linkText, parseLink, switchedOn } from "./link";
import { QUEUED } from "./progress";
import { earlierRuns, remembered, storeRuns } from "./runHistory";
import { inputName } from "./runName";
import type {
  Charted,
  Compared,
  EarlierRun,
  Editing,
  Home,
  Linked,
  Measured,
  Messages,
  OpenRun,
  Pending,
  PendingLink,
  Place,
  Running,
  Runs,
  Searching,
  Selecting,
  Tasks,
  Trusting,
  Viewing,
} from "./slices";
import { Trust } from "./trust/trust.svelte";

/** Delay in ms before Run can be clicked, so that a click meant for the previous page does not confirm. */
const CLICK_DELAY = 500;

type Wanted = {
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

export class Workbench
  implements
    Place,
    Selecting,
    Runs,
    Running,
    Pending,
    Editing,
    Compared,
    Searching,
    Measured,
    Tasks,
    Trusting,
    Viewing,
    Charted,
    Messages,
    Linked
{
  settings = $state.raw<Settings | null>(null);
  draft = $state<Draft>(structuredClone(EMPTY));
  /** Where the run stands that is under way. */
  progress = $state.raw<RunEvent | null>(null);
  problem = $state.raw<SourceError | null>(null);
  wasCancelled = $state(false);
  /** Whether the server is being asked for a run that it may hold. */
  isLookingUp = $state(false);
  /** What the address asks for and the user has not confirmed yet. */
  pending = $state.raw<PendingLink | null>(null);
  /** Whether a click on Run confirms it. */
  canConfirm = $state(false);
  shown = $state.raw<OpenRun | null>(null);
  /** A second run beside the one on screen: what it is compared with. */
  other = $state.raw<OpenRun | null>(null);
  readonly comparing = new Comparing(this);
  /** The scale Atlas. */
  readonly charts = new AtlasBench(this);
  /** The edits of what is on screen. */
  readonly edits = new Edits((list, history) => this.#edited(list, history));
  /** The same run without edits, where the one on screen has some. */
  base = $state.raw<OpenRun | null>(null);
  /** Whether the server does not hold that run, and the user has not asked for it. */
  isBaseAbsent = $state(false);
  /** Measures of this input. */
  measured = $state.raw<Part<ScoresProps> | null>(null);
  /** Where the answer that was chosen came from. */
  relevance = $state.raw<Relevance | null>(null);
  /** What a report over a corpus says of this model's heads. */
  report = $state.raw<Report | null>(null);
  /** Measures from elsewhere, the latest first: what was looked for, what a use case found, relevance, a report. */
  extra = $state.raw<Record<string, Part<ScoresProps>>>({});
  /** All of them, to look up, sort and colour by. */
  scores = $derived(joined([...Object.values(this.extra), this.measured]));
  saved = $state.raw<SavedProps | null>(null);
  selection = $state.raw<Selection>(DEFAULT);
  runs = $state.raw<EarlierRun[]>([]);
  /** What the view says it draws, and what it left out. */
  line = $state("");
  notes = $state.raw<string[]>([]);
  legend = $state.raw<Legend | null>(null);
  viewProblem = $state.raw<SourceError | null>(null);
  view = $state.raw<Mounted | null>(null);
  isDrawn = $state(false);
  /** The run whose measures were asked for. */
  #measured: OpenRun | null = null;
  /** The measure whose strongest head is put into focus once it is known: the page was opened without a link. */
  #opening = "";
  /** The last run without edits. */
  #plain: OpenRun | null = null;
  asTable = $state(false);
  /** Looking for heads. */
  readonly finder = new Finder(this);
  readonly trust = new Trust(this);
  /** The use case whose evidence is on screen, by its name; empty for none. */
  useCase = $state("");
  toast = $state("");

  #stop: AbortController | null = null;
  #wanted: Wanted | null = null;
  /** The request for the settings. */
  #offer: Promise<Settings> | null = null;
  /** The form as the pending link filled it in. */
  #linkedDraft = "";
  #clickTimer: ReturnType<typeof setTimeout> | undefined;
  #unlisten: () => void;

  constructor(
    readonly home: Home,
    private readonly address: Address,
  ) {
    this.#unlisten = address.listen(() => this.#follow());
    void this.start();
  }

  destroy() {
    this.#stop?.abort();
    clearTimeout(this.#clickTimer);
    this.comparing.destroy();
    this.charts.destroy();
    this.#unlisten();
  }

  /** What the view draws: the run, or where it is compared the difference to the other. */
  get pictured(): OpenRun | null {
    return (this.selection.compare === "difference" && this.comparing.difference) || this.shown;
  }

  get model(): ModelProps | undefined {
    return this.settings?.models.find((model) => model.name === this.draft.model);
  }

  /** What is on screen, in a few words. */
  get name(): string {
    if (!this.shown) return "";
    const { request, trace } = this.shown;
    return request ? nameOf(plain(request), this.settings?.models ?? []) : inputName(trace);
  }

  get modelOnScreen(): string {
    return this.shown?.request?.model ?? this.draft.model;
  }

  /** Settled: nothing is under way and what there is to see is on screen. */
  get isReady(): boolean {
    if (this.selection.scale === "atlas") return this.charts.isSettled;
    if (this.progress || this.isLookingUp || this.comparing.progress) return false;
    if (this.problem || this.viewProblem || this.wasCancelled) return true;
    return this.shown ? this.isDrawn : this.settings !== null;
  }

  /** The fragment that brings back what is on screen, and a comparison that is still pending. */
  get link(): string {
    const asked = this.pending?.missing.includes("compare") ? this.pending.link : null;
    const { compare, beside } = asked?.selection ?? this.selection;
    const other = asked?.other ?? this.other?.request ?? null;
    const selection = { ...this.selection, compare, beside };
    const text = linkText(this.shown?.request ?? null, selection, keep, other, this.edits.list);
    if (this.selection.scale !== "atlas") return text;
    return fragmentOf(new URLSearchParams([...new URLSearchParams(text), ...Object.entries(this.charts.params)]));
  }

  relink(history: "keep" | "replace") {
    if (this.selection.scale === "atlas") this.address.write(this.link, history);
  }

  canRun(model: string): boolean {
    return this.home.kind === "page" && model !== "";
  }

  /** Run an example of the atlas in its model, and look at a head of it. */
  openExample(example: number, place: string) {
    const { open, examples } = this.charts;
    const at = open?.atlas.places.find(({ address }) => address === place);
    const request = open && examples && exampleRequest(open.atlas, examples, example);
    if (!request) return;
    const head = at?.head ?? 0;
    const selection: Selection = { ...DEFAULT, scale: "head", site: at?.site ?? "", head, heads: [head] };
    void this.#run({ request, selection, history: "keep", isConfirmed: true });
  }

  /** Whether the form is as the pending link filled it in. */
  get isFormOfLink(): boolean {
    return this.pending !== null && !this.shown && JSON.stringify(this.draft) === this.#linkedDraft;
  }

  async start() {
    this.problem = null;
    try {
      if (this.home.kind === "file") return await this.#open(this.home.source, this.home.opensAt);
      if (this.home.kind === "notebook") return await this.#open(this.home.source, "");
      this.runs = earlierRuns();
      this.#offer = settings();
      // A link names its run; without one, the server's first example is run.
      const isLink = parseLink(this.address.read(), recall).request !== null;
      if (isLink) this.#follow();
      this.settings = await this.#offer;
      this.charts.offers = this.settings.atlases;
      if (this.selection.scale === "atlas") void this.charts.show();
      if (!isLink) this.#follow(true);
      this.#fitForm();
    } catch (thrown) {
      this.problem = problemOf(thrown);
    }
  }

  /** Change the selection; what follows from the change is done too. */
  select(change: Partial<Selection>, history: "keep" | "replace" = "keep") {
    const before = this.pictured;
    if (!before) return;
    const next = changed(this.selection, change, before.trace);
    if (next.scale === "atlas" && this.selection.scale !== "atlas") this.#enterAtlas();
    else if (this.selection.scale === "atlas" && next.scale !== "atlas" && !change.site) this.#leaveAtlas(next);
    if (JSON.stringify(next) === JSON.stringify(this.selection)) return;
    if (change.relevance) this.allow("relevance");
    else if (change.relevance === "") this.#drop("relevance");
    if (next.scale !== "activations") this.#drop("activations");
    else if (change.scale !== undefined || change.site !== undefined) this.allow("activations");
    if (
      this.selection.what === "scores" &&
      next.what !== "scores" &&
      !change.what &&
      next.site === this.selection.site
    ) {
      this.say("Scores belong to the model's own tokens, all of them: weights are shown instead.");
    }
    this.#turn(next);
    if (this.pictured !== before) this.measured = null;
    this.address.write(this.link, history);
  }

  /** A measure of the heads on screen beside those of the trace: it can be sorted and coloured by. */
  addMeasure(part: Part<ScoresProps>) {
    const name = part.props.methods[0]?.name ?? "";
    const { [name]: _, ...others } = this.extra;
    this.extra = { [name]: part, ...others };
  }

  /** Another model: it is run at once, on what the user wrote, or else on its own first example. */
  async choose(name: string) {
    const isTyped = !!this.draft.text.trim() && !presetOf(this.draft.text, this.settings?.models ?? []);
    const isChosen = !!this.draft.media && !this.draft.media.startsWith("preset:");
    this.draft.model = name;
    if (!this.model?.is_loaded && (await this.#load(name)) === null) return;
    this.#fitForm();
    const media = mediaOf(this.draft.form);
    const isOwn = media ? isChosen : isTyped;
    const preset = this.model?.presets[0];
    if (preset && !isOwn) await this.run(presetRequest(this.draft.model, preset));
    else if (!missing(this.draft, 0)) await this.run(requestFrom(this.draft));
  }

  run(request: RunRequest) {
    return this.#run({ request, selection: null, history: "keep", isConfirmed: true });
  }

  /** The user has seen what the address asks for, and wants it computed. */
  confirm() {
    if (!this.pending || !this.canConfirm) return;
    const { link, missing } = this.pending;
    const { request } = link;
    if (!request) return this.#begin(link, true);
    if (!this.shown) {
      const { selection, other, edits } = link;
      return void this.#run({ request, selection, history: "replace", other, edits, isConfirmed: true });
    }
    const isCompared = missing.includes("compare");
    const { compare, beside } = isCompared ? link.selection : this.selection;
    const selection = { ...this.selection, compare, beside };
    const other = isCompared ? link.other : (this.other?.request ?? null);
    return void this.#run({ request, selection, history: "replace", other, edits: this.edits.list, isConfirmed: true });
  }

  /** What is missing beside the run is not computed, and the address no longer asks for it. */
  dismiss() {
    const missing = this.pending?.missing ?? [];
    this.#setPending(null);
    this.select(
      {
        ...(missing.includes("activations") ? { scale: "model" } : {}),
        ...(missing.includes("relevance") ? { relevance: "" } : {}),
        ...(missing.includes("find") ? { find: "" } : {}),
      },
      "replace",
    );
    if (missing.includes("find") && this.measured) this.#dropUnknownMeasures();
    this.relinked();
  }

  /** The user asks for a task of the runs on screen: it may be computed. */
  allow(task: string) {
    this.shown?.gate?.allow(task);
    this.other?.gate?.allow(task);
    this.#drop(task);
  }

  /** Two runs change places. */
  exchange(request: RunRequest, other: RunRequest, selection: Selection) {
    const moved = { ...selection, token: null, off: [] };
    return this.#run({ request, selection: moved, history: "keep", other, isConfirmed: true });
  }

  /** Write the link again: what it is compared with has changed. */
  relinked() {
    this.address.write(this.link, "replace");
  }

  /** Run what was typed. Edits of heads stay as they are; those of tokens belong to the input before, and are off. */
  runTyped(request: RunRequest) {
    const before = this.shown?.request;
    if (before?.model !== request.model || sameRequest(plain(before), request)) return this.run(request);
    const edits = this.edits.list.map((edit) => ({ ...edit, isOn: edit.isOn && isOfModel(edit.call) }));
    if (calls(edits).length < calls(this.edits.list).length) {
      this.say("Edits of single tokens are switched off: they belong to the input before.");
    }
    const edited = { ...request, edits: calls(edits) };
    return this.#run({ request: edited, selection: null, history: "keep", edits, isConfirmed: true });
  }

  /** Put an edit, as the Python that makes it, on top of the stack, and run. */
  edit(call: string) {
    if (this.shown?.request) this.edits.add(call);
  }

  #edited(edits: Edit[], history: "keep" | "replace") {
    const request = this.shown?.request;
    if (!request) return;
    const next = { ...request, edits: calls(edits) };
    if (!sameRequest(next, request) || this.progress) {
      void this.#run({ request: next, selection: this.selection, history, edits, isConfirmed: true });
      return;
    }
    this.edits.settle(edits, true); // only what is off has changed
    this.address.write(this.link, history);
  }

  /** Run a text with the model that is on screen, and look at it the same way. */
  open(text: string) {
    const request = requestOf({ model: this.draft.model, text });
    return this.#run({
      request,
      selection: { ...this.selection, off: [], token: null, relevance: "" },
      history: "keep",
      isConfirmed: true,
    });
  }

  again() {
    return this.#wanted && this.settings ? this.#run(this.#wanted) : this.start();
  }

  cancel() {
    this.#stop?.abort();
  }

  /** A view could not be drawn; null when it could again. A trace that the server forgot is made once more, if the user
   *  asked for it. */
  viewFailed(problem: SourceError | null) {
    const request = this.shown?.request;
    if (problem?.error === "UnknownTrace" && request && !this.progress && !this.isLookingUp) {
      const other = this.other?.request ?? null;
      const edits = this.edits.list;
      const isConfirmed = this.shown?.gate?.isOpen ?? false;
      void this.#run({ request, selection: this.selection, history: "replace", other, edits, isConfirmed });
      return;
    }
    this.viewProblem = problem;
  }

  say(text: string) {
    this.toast = text;
  }

  /** One scale up: the atlas of this model, at the head in focus where a single head was looked at. */
  #enterAtlas() {
    const { scale, site, head } = this.selection;
    const place = scale === "head" || scale === "neuron" ? headName(site, head) : "";
    this.charts.enter(place);
  }

  /** One scale down: the head in view stays in focus, where the run on screen has it. */
  #leaveAtlas(next: Selection) {
    const { open, selection } = this.charts;
    const at = open?.atlas.places.find(({ address }) => address === selection.place);
    if (!at || at.head === null || open?.atlas.model !== this.modelOnScreen || !this.shown) return;
    this.#opening = ""; // the head to open with was chosen here
    Object.assign(next, fitted({ ...next, site: at.site, head: at.head, heads: [at.head] }, this.shown.trace));
  }

  /** Go where the address says: after going back, by a link, or at the start. */
  #follow(isStart = false) {
    const link = parseLink(this.address.read(), recall);
    if (link.selection.scale === "atlas" && this.home.kind === "page") this.#followAtlas();
    if (this.home.kind !== "page") {
      if (this.saved?.view === "atlas") this.charts.follow(new URLSearchParams(this.address.read().replace(/^#/, "")));
      if (this.shown) this.#turn(fitted(link.selection, this.shown.trace));
      return;
    }
    const isSame = link.request && this.shown && sameRequest(link.request, this.shown.request);
    if (isSame && this.shown && !this.pending && sameRequest(link.other, this.other?.request ?? null)) {
      this.#stop?.abort();
      this.edits.settle(link.edits, true);
      const selection = fitted(link.selection, (this.comparing.difference ?? this.shown).trace);
      if (JSON.stringify(selection) === JSON.stringify(this.selection)) return;
      this.shown.gate?.close();
      this.other?.gate?.close();
      this.#turn(selection);
      return;
    }
    if (link.request) {
      const { request, selection, other, edits } = link;
      void this.#run({ request, selection, history: "replace", other, edits, isConfirmed: false });
      return;
    }
    if (link.kept) {
      this.#halt();
      this.#clear();
      this.draft.model = link.model || this.draft.model;
      this.problem = new SourceError(
        "This link belongs to an input that is too long for a link.",
        "It was kept in the tab that made the link. Paste the text here and run it again.",
        "InputNotInLink",
      );
      return;
    }
    if (isStart || link.model) this.#begin(link, false, isStart && !link.model);
  }

  /** The atlas is shown whatever becomes of the run beneath it. */
  #followAtlas() {
    this.charts.follow(new URLSearchParams(this.address.read().replace(/^#/, "")));
    if (this.selection.scale !== "atlas") this.#turn({ ...this.selection, scale: "atlas" });
    void this.charts.show();
  }

  /** No input was asked for, but perhaps a model: its first example. `isStart`: nothing was, so the page opens on the
   *  example that shows most, sorted by the measure that shows it. */
  #begin(link: Link, isConfirmed: boolean, isStart = false) {
    const defaultModel = this.settings?.default_model ?? "";
    const model = link.model || defaultModel;
    const { other } = link;
    this.#halt();
    this.draft.model = model;
    const preset = isStart ? startPreset(this.model) : this.model?.presets[0];
    if (preset) {
      this.#opening = isStart ? preset.sort : "";
      const selection = this.#opening ? { ...link.selection, sort: this.#opening } : link.selection;
      const request = presetRequest(model, preset);
      void this.#run({ request, selection, history: "replace", other, isConfirmed });
    } else if (this.model?.is_loaded) {
      this.#clear();
      this.draft.form = formsOf(this.model)[0] ?? "text";
    } else if (isConfirmed || model === defaultModel) {
      // Which inputs a model takes is known once it is loaded, and under which name the server has it.
      void this.#load(model).then((name) => {
        if (name !== null) this.#begin({ ...link, model: name }, isConfirmed, isStart);
      });
    } else this.#ask({ ...link, model });
  }

  /** Stop what is under way, without a word: the address has changed. */
  #halt() {
    this.#stop?.abort();
    this.#stop = null;
    this.#setPending(null);
    this.problem = null;
    this.progress = null;
    this.isLookingUp = false;
    this.wasCancelled = false;
  }

  /** The server does not hold what the address asks for: show what that is, and wait for the user. */
  #ask(link: Link) {
    this.#clear();
    this.edits.settle(link.edits, false);
    this.selection = link.selection;
    this.#fitForm();
    this.#linkedDraft = JSON.stringify(this.draft);
    this.#setPending({ link, missing: ["run"] });
  }

  #setPending(pending: PendingLink | null) {
    const isUpdate = pending !== null && this.pending !== null;
    this.pending = pending;
    if (isUpdate) return;
    clearTimeout(this.#clickTimer);
    this.canConfirm = false;
    if (!pending) return;
    this.#clickTimer = setTimeout(() => {
      this.canConfirm = true;
    }, CLICK_DELAY);
  }

  /** The server does not hold something that the address asks for beside the run. */
  #miss(what: string, wanted: Wanted) {
    const missing = this.pending?.missing ?? [];
    if (!missing.includes(what)) this.#setPending({ link: linkOf(wanted), missing: [...missing, what] });
  }

  /** The user has asked for it, or it is no longer needed. */
  #drop(what: string) {
    if (!this.pending?.missing.includes(what)) return;
    const missing = this.pending.missing.filter((name) => name !== what);
    this.#setPending(missing.length ? { ...this.pending, missing } : null);
  }

  /** Take the picture off the screen: it belongs to another address. */
  #clear() {
    this.shown = null;
    this.base = null;
    this.comparing.take(null);
    this.relevance = null;
    this.#forget();
  }

  /** What was measured and found belongs to the run before. */
  #forget() {
    this.isDrawn = false;
    this.viewProblem = null;
    this.line = "";
    this.notes = [];
    this.legend = null;
    this.measured = null;
    this.report = null;
    this.extra = {};
    this.finder.forget();
    this.trust.forget();
  }

  /** The form of the input is one that the model takes, once that is known. */
  #fitForm() {
    const forms = formsOf(this.model);
    if (this.model?.kinds.length && !forms.includes(this.draft.form)) this.draft.form = forms[0] ?? "text";
    if (!this.model?.kinds.length) return;
    if (!this.model.languages.includes(this.draft.language)) this.draft.language = "";
    if (!this.model.tasks.includes(this.draft.task)) this.draft.task = "";
  }

  #turn(selection: Selection) {
    if (JSON.stringify(selection) === JSON.stringify(this.selection)) return;
    this.selection = selection;
    this.isDrawn = false;
  }

  /** Load a model: which inputs it takes is known afterwards. The name that the server has it under; null if it failed. */
  async #load(name: string): Promise<string | null> {
    this.#stop?.abort();
    const stop = new AbortController();
    this.#stop = stop;
    this.#setPending(null);
    this.problem = null;
    this.wasCancelled = false;
    this.isLookingUp = false;
    this.progress = { ...QUEUED, state: "loading" };
    try {
      const model = await load(name, stop.signal);
      this.settings = await settings(stop.signal);
      if (this.draft.model === name) this.draft.model = model.name; // a folder has one name only
      return this.#stop === stop ? model.name : null;
    } catch (thrown) {
      if (this.#stop === stop && !isAborted(thrown)) this.problem = problemOf(thrown);
      return null;
    } finally {
      if (this.#stop === stop) this.progress = null;
    }
  }

  /** What a link shows first is asked for beside the trace, not after it. */
  #warm(source: Source, selection: Selection | null, signal: AbortSignal) {
    if (selection?.scale !== "head" || !selection.site) return;
    // A link may name a layer that is not there: then another is shown, and this is of no matter.
    source.part(layerKey(selection.site, selection.what), signal).catch(() => undefined);
  }

  async #run(wanted: Wanted) {
    this.#stop?.abort();
    const stop = new AbortController();
    this.#stop = stop;
    this.#wanted = wanted;
    const { request, isConfirmed } = wanted;
    this.#setPending(null);
    this.problem = null;
    this.wasCancelled = false;
    const isOfShown = !!this.shown?.request && sameRequest(plain(request), plain(this.shown.request));
    if (!isOfShown && !sameRequest(requestFrom(this.draft), plain(request))) {
      this.draft = draftOf(request, formsOf(this.settings?.models.find((model) => model.name === request.model)));
    }
    this.progress = isConfirmed ? QUEUED : null;
    this.isLookingUp = !isConfirmed;
    try {
      const id = await this.#trace(wanted, stop);
      if (id === null) {
        if (this.#stop === stop) this.#ask(linkOf(wanted));
        return;
      }
      const gate: Gate = new Gate(isConfirmed, (task) => {
        if (this.shown?.gate === gate || this.other?.gate === gate) this.#miss(task, wanted);
      });
      const source = traceSource(id, gate);
      this.#warm(source, wanted.selection, stop.signal);
      const trace = (await source.part<TraceProps>("trace", stop.signal)).props;
      const openRun = { request, trace, source, gate };
      const compared = await this.comparing.prepare(openRun, wanted.other, stop.signal);
      if (this.#stop !== stop) return;
      const before = wanted.history === "replace" && isOfShown ? (this.shown?.request ?? null) : null;
      this.edits.settle(wanted.edits ?? switchedOn(request), isOfShown);
      this.comparing.take(compared);
      this.#show(openRun, wanted.selection);
      if (compared?.isAbsent) this.#miss("compare", wanted);
      this.address.write(this.link, wanted.history);
      this.runs = remembered(this.runs, { request, when: Date.now() }, before);
      storeRuns(this.runs);
      this.progress = null;
      this.isLookingUp = false;
      await this.#learn(stop.signal);
    } catch (thrown) {
      if (this.#stop !== stop) return;
      this.edits.revert();
      const wasRunning = this.progress !== null;
      if (!isAborted(thrown)) {
        this.problem = problemOf(thrown);
        if (!isConfirmed) this.#clear();
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

  /** The id of the run's trace, held by the server or computed. Null if the user has to confirm it first. */
  async #trace({ request, isConfirmed }: Wanted, stop: AbortController): Promise<string | null> {
    const compute = () => run(request, (event) => this.#stop === stop && this.#hear(event), stop.signal);
    if (isConfirmed) return compute();
    const kept = await keptRun(request, stop.signal);
    if (kept !== null) return kept;
    this.#offer ??= settings();
    this.settings ??= await this.#offer;
    // The page computes by itself only what it shows without a link, or for a link without an input.
    const isStart = startRequests(this.settings).some((start) => sameRequest(request, start));
    if (!isStart || this.#stop !== stop) return null;
    this.progress = QUEUED;
    return compute();
  }

  /** A model that a run has loaded tells more of itself. */
  async #learn(signal: AbortSignal) {
    if (!this.settings || this.model?.is_loaded) return;
    this.settings = await settings(signal);
    this.#fitForm();
  }

  /** What an edited run is compared with: remembered here, or by the server, or run. */
  async #compare(openRun: OpenRun) {
    const { request } = openRun;
    this.isBaseAbsent = false;
    if (!request?.edits.length) {
      this.base = null;
      this.#plain = openRun;
      return;
    }
    if (this.#plain && sameRequest(this.#plain.request, plain(request))) {
      this.base = this.#plain;
      return;
    }
    this.base = null;
    const { gate } = openRun;
    if (!gate) return;
    try {
      const { signal } = new AbortController();
      const id = await (gate.isOpen ? run(plain(request), () => {}, signal) : keptRun(plain(request), signal));
      if (id === null) {
        if (this.shown === openRun) this.isBaseAbsent = true;
        return gate.miss("effect");
      }
      const source = traceSource(id, gate);
      const trace = (await source.part<TraceProps>("trace")).props;
      this.#plain = { request: plain(request), trace, source, gate };
      if (this.shown === openRun) this.base = this.#plain;
    } catch (thrown) {
      if (this.shown === openRun) this.say(`Nothing to compare with: ${problemOf(thrown).message}`);
    }
  }

  #hear(event: RunEvent) {
    if (event.state !== "done") this.progress = event;
  }

  async #open(source: Source, opensAt: string) {
    this.saved = await saved(source);
    if (this.saved.view === "atlas") return this.#openAtlas(source, opensAt);
    const trace = (await source.part<TraceProps>("trace")).props;
    const fragment = this.address.read().replace(/^#/, "") || opensAt;
    const selection = fragment ? parseLink(fragment, recall).selection : cleaned(this.saved.selection);
    this.#show({ request: null, trace, source }, selection);
  }

  /** A saved page or a notebook that holds an atlas, and no run. */
  async #openAtlas(source: Source, opensAt: string) {
    const fragment = this.address.read().replace(/^#/, "") || opensAt;
    this.selection = { ...DEFAULT, scale: "atlas" };
    await this.charts.openSaved(
      this.home.kind === "file" ? savedAtlasSource(source) : source,
      this.saved?.selection ?? {},
      fragment,
    );
  }

  #show(openRun: OpenRun, selection: Selection | null) {
    this.#forget();
    const placed = this.comparing.fitted(selection ?? this.selection);
    const { trace } = (placed.compare === "difference" && this.comparing.difference) || openRun;
    const wanted = this.home.kind === "page" ? opened(placed, trace) : placed;
    this.selection = selection ? fitted(wanted, trace) : carried(wanted, trace);
    this.shown = openRun;
    void this.trust.take(openRun);
    this.#measured = null;
    void this.#compare(openRun);
  }

  /** The picture is complete. */
  drawn() {
    this.isDrawn = true;
    const { pictured } = this;
    // All activations that the address asks for are there: the next ones, the user scrolls to.
    if (this.selection.scale === "activations" && !this.viewProblem) pictured?.gate?.allow("activations");
    if (!pictured || (this.#measured === pictured && this.measured)) return;
    this.#measured = pictured;
    void this.#measure(pictured);
  }

  /** Measures come after the first picture: nobody waits for them, and they take the server some work. */
  async #measure(openRun: OpenRun) {
    try {
      const own = this.shown?.source ?? openRun.source;
      const [scores, report] = await Promise.all([openRun.source.part<ScoresProps>("scores"), reportOf(own)]);
      if (this.pictured !== openRun) return;
      this.report = report;
      if (report) this.extra = { ...this.extra, report: report.scores };
      this.measured = scores;
      if (own.has?.("evidence")) this.addMeasure(measureOf(await own.part<EvidenceProps>("evidence")));
      await this.finder.restore(this.selection.find);
      if (this.pictured !== openRun) return;
      if (!this.pending?.missing.includes("find")) this.#dropUnknownMeasures();
      if (this.#opening) this.focusStrongest(this.#opening, "replace");
      this.#opening = "";
    } catch {
      // A file saved without measures, or a trace that allows none: the page then offers nothing that needs them.
    }
  }

  /** Put the head that a measure ranks first into focus. */
  focusStrongest(measure: string, history: "keep" | "replace" = "keep", change: Partial<Selection> = {}) {
    const head = this.shown && strongestHead(this.shown.trace, new Measures(this.scores), measure);
    if (head) this.select({ ...change, ...head }, history);
  }

  /** Sort and colour only by measures that are there. */
  #dropUnknownMeasures() {
    const known = new Set(this.scores?.props.methods.map((method) => method.name));
    const { sort, colour, relevance } = this.selection;
    if (relevance) known.add(RELEVANCE); // it may still come
    this.select({ sort: known.has(sort) ? sort : "", colour: known.has(colour) ? colour : "" }, "replace");
  }
}

/** The same without edits. */
function plain(request: RunRequest): RunRequest {
  return { ...request, edits: [] };
}

function linkOf({ request, selection, other, edits }: Wanted): Link {
  return {
    model: request.model,
    request,
    edits: edits ?? switchedOn(request),
    selection: selection ?? DEFAULT,
    other: other ?? null,
    kept: "",
  };
}

function presetOf(text: string, models: ModelProps[]) {
  return models.flatMap((model) => model.presets).find((preset) => preset.text === text);
}
