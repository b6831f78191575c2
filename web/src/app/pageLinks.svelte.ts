/** What the address asks for: it is followed, and what the server does not hold of it waits until the user confirms it. */

import { type Address, recall } from "../hosts/address";
import { sameRequest } from "../request";
import { fitted, type Selection } from "../selection";
import { SourceError } from "../source";
import type { AtlasBench } from "./atlas/atlasBench.svelte";
import type { Comparing } from "./compare/comparison.svelte";
import type { Edits } from "./edit/edits.svelte";
import { formsOf, presetRequest, startPreset } from "./input/draft";
import type { InputForm } from "./input/inputForm.svelte";
import { type Link, parseLink } from "./link";
import type { RunMeasures } from "./runMeasures.svelte";
import type { RunRequests } from "./runRequests.svelte";
import type { Linked, PendingLink, Place, Runs, Selecting } from "./slices";

/** Delay in ms before Run can be clicked, so that a click meant for the previous page does not confirm. */
const CLICK_DELAY = 500;

/** What links use of the page around them. */
interface Page extends Place, Runs, Selecting, Linked {
  readonly form: InputForm;
  readonly requests: RunRequests;
  readonly measures: RunMeasures;
  readonly comparing: Comparing;
  readonly edits: Edits;
  readonly charts: AtlasBench;
  /** Look at something else. */
  turn(selection: Selection): void;
  /** Take the picture off the screen. */
  clear(): void;
}

export class PageLinks {
  /** What the address asks for and the user has not confirmed yet. */
  pending = $state.raw<PendingLink | null>(null);
  /** Whether a click on Run confirms it. */
  canConfirm = $state(false);
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly page: Page,
    private readonly address: Address,
  ) {}

  destroy() {
    clearTimeout(this.#timer);
  }

  /** Whether the form is as the pending link filled it in. */
  get isInForm(): boolean {
    return this.pending !== null && !this.page.shown && this.page.form.isAsLinked;
  }

  isMissing(what: string): boolean {
    return this.pending?.missing.includes(what) ?? false;
  }

  /** What waits for the user; null: nothing any more. */
  set(pending: PendingLink | null) {
    const isUpdate = pending !== null && this.pending !== null;
    this.pending = pending;
    if (isUpdate) return;
    clearTimeout(this.#timer);
    this.canConfirm = false;
    if (!pending) return;
    this.#timer = setTimeout(() => {
      this.canConfirm = true;
    }, CLICK_DELAY);
  }

  /** What waits is looked at so, once it is there. */
  look(selection: Selection) {
    if (this.pending) this.set({ ...this.pending, link: { ...this.pending.link, selection } });
  }

  /** The server does not hold something that the address asks for beside the run. */
  miss(what: string, link: Link) {
    if (!this.isMissing(what)) this.set({ link, missing: [...(this.pending?.missing ?? []), what] });
  }

  /** The user has asked for it, or it is no longer needed. */
  drop(what: string) {
    if (!this.pending || !this.isMissing(what)) return;
    const missing = this.pending.missing.filter((name) => name !== what);
    this.set(missing.length ? { ...this.pending, missing } : null);
  }

  /** The server does not hold the run that the address asks for: show what that is, and wait for the user. */
  wait(link: Link) {
    const { page } = this;
    page.clear();
    page.edits.settle(link.edits, false);
    page.turn(link.selection);
    page.form.fit();
    page.form.markLinked();
    this.set({ link, missing: ["run"] });
  }

  /** The user has seen what the address asks for, and wants it computed. */
  confirm() {
    const { pending, page } = this;
    if (!pending || !this.canConfirm) return;
    const { link } = pending;
    const { request } = link;
    if (!request) return this.#begin(link, true);
    const wanted = { request, history: "replace", isConfirmed: true } as const;
    if (!page.shown) {
      const { selection, other, edits } = link;
      return void page.requests.run({ ...wanted, selection, other, edits });
    }
    const isCompared = pending.missing.includes("compare");
    const { compare, beside } = isCompared ? link.selection : page.selection;
    const selection = { ...page.selection, compare, beside };
    const other = isCompared ? link.other : (page.other?.request ?? null);
    return void page.requests.run({ ...wanted, selection, other, edits: page.edits.list });
  }

  /** What is missing beside the run is not computed, and the address no longer asks for it. */
  dismiss() {
    const { page } = this;
    const missing = this.pending?.missing ?? [];
    this.set(null);
    page.select(
      {
        ...(missing.includes("activations") ? { scale: "model" } : {}),
        ...(missing.includes("relevance") ? { relevance: "" } : {}),
        ...(missing.includes("find") ? { find: "" } : {}),
      },
      "replace",
    );
    if (missing.includes("find") && page.measures.own) page.measures.dropUnknown();
    page.relinked();
  }

  /** Go where the address says: after going back, by a link, or at the start. */
  follow(isStart = false) {
    const { page } = this;
    const link = parseLink(this.address.read(), recall);
    if (page.home.kind !== "page") return this.#followWithin(link);
    if (link.selection.scale === "atlas") this.#followAtlas();
    const { request, selection, other, edits } = link;
    const isSame = request && sameRequest(request, page.shown?.request ?? null);
    if (isSame && !this.pending && sameRequest(other, page.other?.request ?? null)) return this.#turnTo(link);
    if (request) {
      void page.requests.run({ request, selection, history: "replace", other, edits, isConfirmed: false });
    } else if (link.kept) this.#lack(link);
    else if (isStart || link.model) this.#begin(link, false, isStart && !link.model);
  }

  /** In a file or a notebook, which hold what they hold. */
  #followWithin(link: Link) {
    const { page } = this;
    if (page.saved?.view === "atlas") page.charts.follow(this.#params());
    if (page.shown) page.turn(fitted(link.selection, page.shown.trace));
  }

  /** The atlas is shown whatever becomes of the run beneath it. */
  #followAtlas() {
    const { page } = this;
    page.charts.follow(this.#params());
    if (page.selection.scale !== "atlas") page.turn({ ...page.selection, scale: "atlas" });
    void page.charts.show();
  }

  /** The run is on screen: look at it as the link does. */
  #turnTo(link: Link) {
    const { page } = this;
    const openRun = page.comparing.difference ?? page.shown;
    if (!openRun) return;
    page.requests.cancel();
    page.edits.settle(link.edits, true);
    const selection = fitted(link.selection, openRun.trace);
    if (JSON.stringify(selection) === JSON.stringify(page.selection)) return;
    page.shown?.gate?.close();
    page.other?.gate?.close();
    page.turn(selection);
  }

  /** The input is neither in the link nor in this tab. */
  #lack(link: Link) {
    const { page } = this;
    const { requests, form } = page;
    requests.halt();
    page.clear();
    form.draft.model = link.model || form.draft.model;
    requests.problem = new SourceError(
      "This link belongs to an input that is too long for a link.",
      "It was kept in the tab that made the link. Paste the text here and run it again.",
      "InputNotInLink",
    );
  }

  /** No input was asked for, but perhaps a model: its first example. `isStart`: nothing was, so the page opens on the
   *  example that shows most, sorted by the measure that shows it. */
  #begin(link: Link, isConfirmed: boolean, isStart = false) {
    const { page } = this;
    const { form, requests } = page;
    const defaultModel = page.settings?.default_model ?? "";
    const model = link.model || defaultModel;
    requests.halt();
    form.draft.model = model;
    const preset = isStart ? startPreset(form.model) : form.model?.presets[0];
    if (preset) {
      const sort = isStart ? preset.sort : "";
      page.measures.openAt(sort);
      const selection = sort ? { ...link.selection, sort } : link.selection;
      const request = presetRequest(model, preset);
      void requests.run({ request, selection, history: "replace", other: link.other, isConfirmed });
    } else if (form.model?.is_loaded) {
      page.clear();
      form.draft.form = formsOf(form.model)[0] ?? "text";
    } else if (isConfirmed || model === defaultModel) {
      // Which inputs a model takes is known once it is loaded, and under which name the server has it.
      void requests.load(model).then((name) => {
        if (name !== null) this.#begin({ ...link, model: name }, isConfirmed, isStart);
      });
    } else this.wait({ ...link, model });
  }

  #params(): URLSearchParams {
    return new URLSearchParams(this.address.read().replace(/^#/, ""));
  }
}
