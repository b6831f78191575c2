/** The state of the page, and everything that changes it. One per mounted page; nothing outside it remembers anything. */

import type { RunRequest, SavedProps, Settings, TraceProps } from "../contract";
import { type Address, keep, recall } from "../hosts/address";
import { savedAtlasSource } from "../hosts/atlasFile";
import { saved } from "../hosts/file";
import { requestOf, sameRequest, withoutEdits } from "../request";
import { carried, changed, cleaned, DEFAULT, fitted, opened, type Selection } from "../selection";
import { fragmentOf } from "../selectionLink";
import { problemOf, type Source, type SourceError } from "../source";
import type { Legend } from "../views/legend";
import type { Mounted } from "../views/view";
import { AtlasBench } from "./atlas/atlasBench.svelte";
import { exampleRun } from "./atlas/exampleRun";
import { Baseline } from "./baseline.svelte";
import { type ComparedRun, Comparing } from "./compare/comparison.svelte";
import { isOfModel } from "./edit/calls";
import { calls, type Edit, Edits } from "./edit/edits.svelte";
import { Finder } from "./find/finder.svelte";
import { mediaOf, missing, nameOf, presetRequest, requestFrom } from "./input/draft";
import { InputForm } from "./input/inputForm.svelte";
import { linkText, parseLink, switchedOn } from "./link";
import { PageLinks } from "./pageLinks.svelte";
import { earlierRuns, remembered, storeRuns } from "./runHistory";
import { RunMeasures } from "./runMeasures.svelte";
import { inputName } from "./runName";
import { linkOf, RunRequests, type Wanted } from "./runRequests.svelte";
import type { AllSlices, EarlierRun, Home, OpenRun } from "./slices";
import { Trust } from "./trust/trust.svelte";

export class Workbench implements AllSlices {
  settings = $state.raw<Settings | null>(null);
  readonly form = new InputForm(this);
  /** What is asked of the server. */
  readonly requests: RunRequests = new RunRequests(this);
  /** What the address asks for, and what of it the user has to confirm. */
  readonly links: PageLinks;
  shown = $state.raw<OpenRun | null>(null);
  /** A second run beside the one on screen: what it is compared with. */
  other = $state.raw<OpenRun | null>(null);
  readonly comparing: Comparing = new Comparing(this);
  /** The scale Atlas. */
  readonly charts = new AtlasBench(this);
  /** The edits of what is on screen. */
  readonly edits = new Edits((list, history) => this.#edited(list, history));
  /** The same run without them. */
  readonly baseline: Baseline = new Baseline(this);
  readonly measures: RunMeasures = new RunMeasures(this);
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
  asTable = $state(false);
  /** Looking for heads. */
  readonly finder: Finder = new Finder(this);
  readonly trust = new Trust(this);
  /** The use case whose evidence is on screen, by its name; empty for none. */
  useCase = $state("");
  toast = $state("");
  #unlisten: () => void;

  constructor(
    readonly home: Home,
    private readonly address: Address,
  ) {
    this.links = new PageLinks(this, address);
    this.#unlisten = address.listen(() => this.links.follow());
    void this.start();
  }

  destroy() {
    this.requests.cancel();
    this.links.destroy();
    this.comparing.destroy();
    this.charts.destroy();
    this.#unlisten();
  }

  /** What the view draws: the run, or where it is compared the difference to the other. */
  get pictured(): OpenRun | null {
    return (this.selection.compare === "difference" && this.comparing.difference) || this.shown;
  }

  /** What is on screen, in a few words. */
  get name(): string {
    if (!this.shown) return "";
    const { request, trace } = this.shown;
    return request ? nameOf(withoutEdits(request), this.settings?.models ?? []) : inputName(trace);
  }

  get modelOnScreen(): string {
    return this.shown?.request?.model ?? this.form.draft.model;
  }

  /** Settled: nothing is under way and what there is to see is on screen. */
  get isReady(): boolean {
    if (this.selection.scale === "atlas") return this.charts.isSettled;
    const { progress, isLookingUp, problem, wasCancelled } = this.requests;
    if (progress || isLookingUp || this.comparing.progress) return false;
    if (problem || this.viewProblem || wasCancelled) return true;
    return this.shown ? this.isDrawn : this.settings !== null;
  }

  /** The fragment that brings back what is on screen, and a comparison that is still pending. */
  get link(): string {
    const { links } = this;
    const pending = links.isMissing("compare") ? links.pending?.link : null;
    const { compare, beside } = pending?.selection ?? this.selection;
    const other = pending?.other ?? this.other?.request ?? null;
    const selection = { ...this.selection, compare, beside };
    const request = (this.shown ?? links.pending?.link)?.request ?? null;
    const text = linkText(request, selection, keep, other, this.edits.list);
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
    const wanted = open && examples && exampleRun(open.atlas, examples, example, place);
    if (wanted) void this.requests.run({ ...wanted, history: "keep", isConfirmed: true });
  }

  async start() {
    this.requests.problem = null;
    try {
      if (this.home.kind === "file") return await this.#open(this.home.source, this.home.opensAt);
      if (this.home.kind === "notebook") return await this.#open(this.home.source, "");
      this.runs = earlierRuns();
      const offer = this.requests.offer();
      // A link names its run; without one, the server's first example is run.
      const isLink = parseLink(this.address.read(), recall).request !== null;
      if (isLink) this.links.follow();
      this.settings = await offer;
      this.charts.offers = this.settings.atlases;
      if (this.selection.scale === "atlas") void this.charts.show();
      if (!isLink) this.links.follow(true);
      this.form.fit();
    } catch (thrown) {
      this.requests.problem = problemOf(thrown);
    }
  }

  /** Change the selection; what follows from the change is done too. */
  select(change: Partial<Selection>, history: "keep" | "replace" = "keep") {
    const before = this.pictured;
    if (!before) {
      if (change.scale) this.#selectScale(change.scale);
      return;
    }
    const next = changed(this.selection, change, before.trace);
    if (next.scale === "atlas" && this.selection.scale !== "atlas") this.charts.enter(this.selection);
    else if (this.selection.scale === "atlas" && next.scale !== "atlas" && !change.site) this.#leaveAtlas(next);
    if (JSON.stringify(next) === JSON.stringify(this.selection)) return;
    if (change.relevance) this.allow("relevance");
    else if (change.relevance === "") this.links.drop("relevance");
    if (next.scale !== "activations") this.links.drop("activations");
    else if (change.scale !== undefined || change.site !== undefined) this.allow("activations");
    if (
      this.selection.what === "scores" &&
      next.what !== "scores" &&
      !change.what &&
      next.site === this.selection.site
    ) {
      this.say("Scores belong to the model's own tokens, all of them: weights are shown instead.");
    }
    this.turn(next);
    if (this.pictured !== before) this.measures.own = null;
    this.address.write(this.link, history);
  }

  /** From an atlas, while the run beneath it waits for a click: it is shown at this scale then. */
  #selectScale(scale: Selection["scale"]) {
    if (scale === "atlas") this.charts.enter(this.selection);
    const selection = { ...this.selection, scale };
    this.links.look(selection);
    this.turn(selection);
    this.address.write(this.link, "keep");
  }

  /** Another model: it is run at once, on what the user wrote, or else on its own first example. */
  async choose(name: string) {
    const { form } = this;
    const { own } = form;
    form.draft.model = name;
    if (!form.model?.is_loaded && (await this.requests.load(name)) === null) return;
    form.fit();
    const preset = form.model?.presets[0];
    if (preset && !own[mediaOf(form.draft.form) ? "media" : "text"]) {
      await this.run(presetRequest(form.draft.model, preset));
    } else if (!missing(form.draft, 0)) await this.run(requestFrom(form.draft));
  }

  run(request: RunRequest) {
    return this.requests.run({ request, selection: null, history: "keep", isConfirmed: true });
  }

  /** The user asks for a task of the runs on screen: it may be computed. */
  allow(task: string) {
    this.shown?.gate?.allow(task);
    this.other?.gate?.allow(task);
    this.links.drop(task);
  }

  /** Two runs change places. */
  exchange(request: RunRequest, other: RunRequest, selection: Selection) {
    const moved = { ...selection, token: null, off: [] };
    return this.requests.run({ request, selection: moved, history: "keep", other, isConfirmed: true });
  }

  /** Write the link again: what it is compared with has changed. */
  relinked() {
    this.address.write(this.link, "replace");
  }

  /** Run what was typed. Edits of heads stay as they are; those of tokens belong to the input before, and are off. */
  runTyped(request: RunRequest) {
    const before = this.shown?.request;
    if (before?.model !== request.model || sameRequest(withoutEdits(before), request)) return this.run(request);
    const edits = this.edits.list.map((edit) => ({ ...edit, isOn: edit.isOn && isOfModel(edit.call) }));
    if (calls(edits).length < calls(this.edits.list).length) {
      this.say("Edits of single tokens are switched off: they belong to the input before.");
    }
    const edited = { ...request, edits: calls(edits) };
    return this.requests.run({ request: edited, selection: null, history: "keep", edits, isConfirmed: true });
  }

  /** Put an edit, as the Python that makes it, on top of the stack, and run. */
  edit(call: string) {
    if (this.shown?.request) this.edits.add(call);
  }

  #edited(edits: Edit[], history: "keep" | "replace") {
    const request = this.shown?.request;
    if (!request) return;
    const next = { ...request, edits: calls(edits) };
    if (!sameRequest(next, request) || this.requests.progress) {
      void this.requests.run({ request: next, selection: this.selection, history, edits, isConfirmed: true });
      return;
    }
    this.edits.settle(edits, true); // only what is off has changed
    this.address.write(this.link, history);
  }

  /** Run a text with the model that is on screen, and look at it the same way. */
  open(text: string) {
    const request = requestOf({ model: this.form.draft.model, text });
    return this.requests.run({
      request,
      selection: { ...this.selection, off: [], token: null, relevance: "" },
      history: "keep",
      isConfirmed: true,
    });
  }

  again() {
    const { last } = this.requests;
    return last && this.settings ? this.requests.run(last) : this.start();
  }

  /** A view could not be drawn; null when it could again. A trace that the server forgot is made once more, if the user
   *  asked for it. */
  viewFailed(problem: SourceError | null) {
    const request = this.shown?.request;
    const isIdle = !this.requests.progress && !this.requests.isLookingUp;
    if (problem?.error === "UnknownTrace" && request && isIdle) {
      const other = this.other?.request ?? null;
      const edits = this.edits.list;
      const isConfirmed = this.shown?.gate?.isOpen ?? false;
      void this.requests.run({ request, selection: this.selection, history: "replace", other, edits, isConfirmed });
      return;
    }
    this.viewProblem = problem;
  }

  say(text: string) {
    this.toast = text;
  }

  /** One scale down: the head in view stays in focus, where the run on screen has it. */
  #leaveAtlas(next: Selection) {
    const place = this.charts.headInView;
    if (!place || !this.shown) return;
    this.measures.openAt(""); // the head to open with was chosen here
    Object.assign(next, fitted({ ...next, ...place, heads: [place.head] }, this.shown.trace));
  }

  /** Take the picture off the screen: it belongs to another address. */
  clear() {
    this.shown = null;
    this.baseline.forget();
    this.comparing.take(null);
    this.measures.relevance = null;
    this.#forget();
  }

  /** What was measured and found belongs to the run before. */
  #forget() {
    this.isDrawn = false;
    this.viewProblem = null;
    this.line = "";
    this.notes = [];
    this.legend = null;
    this.measures.forget();
    this.finder.forget();
    this.trust.forget();
  }

  /** Look at something else. */
  turn(selection: Selection) {
    if (JSON.stringify(selection) === JSON.stringify(this.selection)) return;
    this.selection = selection;
    this.isDrawn = false;
  }

  /** A run has come. `isOfShown`: of the input that is on screen already. */
  arrive(openRun: OpenRun, compared: ComparedRun | null, wanted: Wanted, isOfShown: boolean) {
    const { request, history, edits, selection } = wanted;
    const before = history === "replace" && isOfShown ? (this.shown?.request ?? null) : null;
    this.edits.settle(edits ?? switchedOn(request), isOfShown);
    this.comparing.take(compared);
    this.#show(openRun, selection);
    if (compared?.isAbsent) this.links.miss("compare", linkOf(wanted));
    this.address.write(this.link, history);
    this.runs = remembered(this.runs, { request, when: Date.now() }, before);
    storeRuns(this.runs);
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
    void this.baseline.take(openRun);
  }

  /** The picture is complete. */
  drawn() {
    this.isDrawn = true;
    const { pictured } = this;
    // All activations that the address asks for are there: the next ones, the user scrolls to.
    if (this.selection.scale === "activations" && !this.viewProblem) pictured?.gate?.allow("activations");
    if (pictured) void this.measures.learn(pictured);
  }
}
