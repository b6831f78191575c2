/** The state of the scale Atlas: which atlas is open, what of it is looked at, what was searched, what is being made. */

import { atlasFrom, atlasParams, cleanedAtlas } from "../../atlasSelection";
import {
  type AtlasAnomaliesProps,
  type AtlasBuildRequest,
  type AtlasCloudProps,
  type AtlasExamplesProps,
  type AtlasMapProps,
  type AtlasOffer,
  type AtlasProps,
  type AtlasScoresProps,
  type AtlasSearchProps,
  type AtlasSelection,
  type AtlasTaskRequest,
  DEFAULT_ATLASSELECTION as DEFAULT,
  type RunEvent,
} from "../../contract";
import { headName } from "../../data/trace";
import { atlasOffers, atlasSource, buildAtlas, makeOfAtlas } from "../../hosts/atlasServer";
import type { Selection } from "../../selection";
import { isAborted, problemOf, type Source, type SourceError } from "../../source";
import type { AtlasMounted, PickedPoints } from "../../views/atlasHost";
import type { Legend } from "../../views/legend";
import type { Part } from "../../wire";
import { QUEUED } from "../progress";

/** An atlas on screen. */
export interface OpenAtlas {
  atlas: AtlasProps;
  source: Source;
}

/** What the bench of atlases uses of the page around it. */
export interface AtlasPage {
  /** The model of the run on screen, if any. */
  readonly modelOnScreen: string;
  /** Write what is on screen into the address. */
  relink(history: "keep" | "replace"): void;
  say(text: string): void;
}

export class AtlasBench {
  offers = $state.raw<AtlasOffer[]>([]);
  selection = $state.raw<AtlasSelection>(DEFAULT);
  open = $state.raw<OpenAtlas | null>(null);
  problem = $state.raw<SourceError | null>(null);
  /** What is being made, and where that stands. */
  progress = $state.raw<RunEvent | null>(null);
  making = $state<"map" | "scores" | "atlas" | "">("");
  /** What went wrong when something was made. */
  makeProblem = $state.raw<SourceError | null>(null);
  scores = $state.raw<Part<AtlasScoresProps> | null>(null);
  anomalies = $state.raw<AtlasAnomaliesProps | null>(null);
  /** What the atlas was made from. */
  inputs = $state.raw<Part<AtlasExamplesProps> | null>(null);
  /** Rows that the search hit, by stack. */
  hits = $state.raw<Record<string, Int32Array> | null>(null);
  /** The heads that gather them, once they are ranked. */
  ranking = $state.raw<AtlasSearchProps | null>(null);
  isRanking = $state(false);
  /** From a search to its ranking. */
  #isSearching = $state(false);
  searchProblem = $state.raw<SourceError | null>(null);
  picked = $state.raw<PickedPoints[]>([]);
  view = $state.raw<AtlasMounted | null>(null);
  viewProblem = $state.raw<SourceError | null>(null);
  line = $state("");
  notes = $state.raw<string[]>([]);
  legend = $state.raw<Legend | null>(null);
  isDrawn = $state(false);
  asTable = $state(false);
  #stop: AbortController | null = null;
  #searching: AbortController | null = null;
  #searched = "";
  /** The atlas that is open or on its way, by its id. */
  #opening = $state("");

  constructor(private readonly page: AtlasPage) {}

  /** Whether there is an atlas to look at. */
  get isOffered(): boolean {
    return this.offers.length > 0 || this.open !== null;
  }

  get params(): Record<string, string> {
    return atlasParams(this.selection);
  }

  get examples(): AtlasExamplesProps | null {
    return this.inputs?.props ?? null;
  }

  /** Of how many heads the map that is selected is made. */
  get madeHeads(): number {
    const { method, dims, coordinates } = this.selection;
    const isJoint = this.open?.atlas.space === "query_key";
    const fits = (map: AtlasMapProps) => map.coordinates === (isJoint ? coordinates : "raw");
    const maps = this.open?.atlas.maps ?? [];
    return maps.find((map) => map.method === method && map.dims === dims && fits(map))?.n_heads ?? 0;
  }

  /** Whether no head has the map that is selected. */
  get isMapAbsent(): boolean {
    return this.open !== null && this.madeHeads === 0;
  }

  /** What would make the map of the heads that lack it; null where none does. */
  get missingMap(): AtlasTaskRequest | null {
    const { method, dims, coordinates } = this.selection;
    const isWhole = !this.open || this.madeHeads >= this.open.atlas.places.length;
    return isWhole ? null : { task: "map", method, dims, coordinates };
  }

  /** The example of the point in focus, by its number; −1 for none. */
  get exampleInFocus(): number {
    const { token } = this.selection;
    const starts = this.#starts(token?.role);
    return token && starts ? starts.findLastIndex((start) => start <= token.row) : -1;
  }

  /** Put an example into focus: its first token, in the head in view. */
  focusExample(index: number) {
    const role = this.#cloud()?.role ?? "query";
    const row = this.#starts(role)?.[index];
    if (row !== undefined) this.select({ token: { role, row }, sentence: this.open?.atlas.has_vectors ?? false });
  }

  /** Nothing is under way, and what there is to see is on screen. */
  get isSettled(): boolean {
    if (this.progress || this.#isSearching || this.#opening !== (this.open?.atlas.id ?? "")) return false;
    return (
      this.problem !== null || this.isMapAbsent || this.viewProblem !== null || (this.open !== null && this.isDrawn)
    );
  }

  /** The head in view, where it is one of the model on screen. */
  get headInView(): { site: string; head: number } | null {
    const { open } = this;
    const at = open?.atlas.places.find(({ address }) => address === this.selection.place);
    if (!at || at.head === null || open?.atlas.model !== this.page.modelOnScreen) return null;
    return { site: at.site, head: at.head };
  }

  /** From another scale: the atlas of the model on screen, at the head in focus where a single head was looked at. */
  enter({ scale, site, head }: Selection) {
    const place = scale === "head" || scale === "neuron" ? headName(site, head) : "";
    const isOther = this.open && this.page.modelOnScreen && this.open.atlas.model !== this.page.modelOnScreen;
    const own = this.offers.find(({ model }) => model === this.page.modelOnScreen);
    const atlas = isOther && own ? own.name : this.selection.atlas;
    const isThere = !this.open || isOther || this.open.atlas.places.some(({ address }) => address === place);
    const isSame = place === this.selection.place && atlas === this.selection.atlas;
    if (!isSame) this.#turn({ ...this.selection, atlas, place: isThere ? place : "", token: null, sentence: false });
    void this.show();
  }

  /** Where the address says. */
  follow(params: URLSearchParams) {
    const next = atlasFrom(params);
    if (JSON.stringify(next) !== JSON.stringify(this.selection)) this.#turn(next);
  }

  /** Open the atlas that is selected, or the first of the model on screen. */
  async show() {
    const offer = this.#wanted();
    if (!offer || offer.id === this.#opening) return;
    this.#opening = offer.id;
    this.problem = null;
    try {
      const source = atlasSource(offer.id);
      const { props } = await source.part<AtlasProps>("atlas");
      if (this.#opening === offer.id) this.#take({ atlas: props, source });
    } catch (thrown) {
      if (this.#opening !== offer.id) return;
      this.#opening = "";
      this.open = null;
      this.problem = problemOf(thrown);
    }
  }

  /** An atlas that lies in a saved page or a notebook. */
  async openSaved(source: Source, selection: Record<string, unknown>, fragment: string) {
    this.selection = fragment ? atlasFrom(new URLSearchParams(fragment)) : cleanedAtlas(selection);
    this.#take({ atlas: (await source.part<AtlasProps>("atlas")).props, source });
  }

  select(change: Partial<AtlasSelection>, history: "keep" | "replace" = "keep") {
    const next = { ...this.selection, ...change };
    if (change.atlas !== undefined && change.atlas !== this.selection.atlas) {
      Object.assign(next, { place: "", token: null, sentence: false });
    }
    if (JSON.stringify(next) === JSON.stringify(this.selection)) return;
    this.#turn(next);
    this.page.relink(history);
    void this.show();
  }

  async make(wanted: AtlasTaskRequest) {
    const { open } = this;
    if (open) await this.#make(wanted.task, (hear, signal) => makeOfAtlas(open.atlas.id, wanted, hear, signal));
  }

  async build(wanted: AtlasBuildRequest) {
    await this.#make(
      "atlas",
      (hear, signal) => buildAtlas(wanted, hear, signal),
      (id) => {
        const offer = this.offers.find((candidate) => candidate.id === id);
        if (offer) this.select({ atlas: offer.name });
      },
    );
  }

  cancel() {
    this.#stop?.abort();
  }

  /** The picture is complete. */
  drawn() {
    this.isDrawn = true;
    this.viewProblem = null;
  }

  destroy() {
    this.#stop?.abort();
    this.#searching?.abort();
  }

  // Inside

  /** The first cloud of the head in view, or the one of a role. */
  #cloud(role?: string): AtlasCloudProps | undefined {
    const places = this.open?.atlas.places ?? [];
    const place = places.find(({ address }) => address === this.selection.place) ?? places[0];
    return place?.clouds.find((cloud) => !role || cloud.role === role);
  }

  /** Where each example begins among the tokens of a role. */
  #starts(role?: string): Int32Array | undefined {
    const stack = this.#cloud(role)?.stack;
    return this.inputs?.arrays[`starts:${stack}`]?.values.slice(0, -1) as Int32Array | undefined;
  }

  #wanted(): AtlasOffer | undefined {
    const { atlas } = this.selection;
    if (atlas) {
      const offer = this.offers.find(({ name }) => name === atlas);
      if (offer) return offer;
      if (this.offers.length) this.page.say(`There is no atlas ${atlas} here (any more).`);
    }
    return this.offers.find(({ model }) => model === this.page.modelOnScreen) ?? this.offers[0];
  }

  #take(open: OpenAtlas) {
    const isOther = this.open?.atlas.name !== open.atlas.name;
    this.open = open;
    this.#opening = open.atlas.id;
    this.scores = null;
    this.anomalies = null;
    if (isOther) {
      this.hits = null;
      this.ranking = null;
      this.#searched = "";
      this.inputs = null;
      this.picked = [];
    }
    const isThere = open.atlas.places.some(({ address }) => address === this.selection.place);
    const fitting = { ...this.selection, atlas: open.atlas.name, place: isThere ? this.selection.place : "" };
    this.#turn(this.#withMap(fitting, open.atlas));
    this.page.relink("replace");
    void this.#learn(open);
  }

  /** A map that is there, where the one by default is not: nobody has asked for another. */
  #withMap(selection: AtlasSelection, { maps, space, has_vectors }: AtlasProps): AtlasSelection {
    const isJoint = space === "query_key";
    const has = ({ method, dims, coordinates }: AtlasSelection) =>
      maps.some((map) => map.method === method && map.dims === dims && map.coordinates === coordinates);
    const joint = isJoint ? selection : { ...selection, coordinates: "raw" as const };
    const first = maps[0];
    const isDefault = selection.method === DEFAULT.method && selection.dims === DEFAULT.dims;
    if (has(joint) || !first || (has_vectors && !isDefault)) return joint;
    return { ...joint, method: first.method, dims: first.dims, coordinates: first.coordinates };
  }

  #turn(selection: AtlasSelection) {
    this.selection = selection;
    this.isDrawn = false;
    void this.#search();
  }

  /** What panels show, as far as it is there. */
  async #learn(open: OpenAtlas) {
    const { source, atlas } = open;
    const part = <Props>(key: string) => source.part<Props>(key).catch(() => null);
    const [scores, anomalies, inputs] = await Promise.all([
      atlas.has_scores ? part<AtlasScoresProps>("scores") : null,
      atlas.has_scores ? part<AtlasAnomaliesProps>("anomalies") : null,
      part<AtlasExamplesProps>("examples"),
    ]);
    if (this.open !== open) return;
    this.scores = scores;
    this.anomalies = anomalies?.props ?? null;
    this.inputs = inputs;
    void this.#search();
  }

  /** Light what is searched for at once, then rank heads by it. */
  async #search() {
    const { open } = this;
    const { search, regex, ignore_case } = this.selection;
    const query = new URLSearchParams({ text: search, regex: regex ? "1" : "0", ignore_case: ignore_case ? "1" : "0" });
    const wanted = search.trim() && open ? `${open.atlas.id} ${query}` : "";
    if (wanted === this.#searched) return;
    this.#searching?.abort();
    this.#searched = wanted;
    this.searchProblem = null;
    this.ranking = null;
    this.isRanking = false;
    this.#isSearching = wanted !== "";
    if (!wanted || !open) {
      this.hits = null;
      return;
    }
    const stop = new AbortController();
    this.#searching = stop;
    try {
      const hits = await open.source.part<AtlasSearchProps>(`hits?${query}`, stop.signal);
      if (this.#searching !== stop) return;
      this.hits = rowsOf(hits);
      this.isRanking = true;
      const ranking = await open.source.part<AtlasSearchProps>(`search?${query}`, stop.signal);
      if (this.#searching === stop) this.ranking = ranking.props;
    } catch (thrown) {
      if (this.#searching !== stop || isAborted(thrown)) return;
      this.hits = null;
      this.searchProblem = problemOf(thrown);
    } finally {
      if (this.#searching === stop) {
        this.isRanking = false;
        this.#isSearching = false;
      }
    }
  }

  async #make(
    what: "map" | "scores" | "atlas",
    work: (hear: (event: RunEvent) => void, signal: AbortSignal) => Promise<string>,
    finish: (id: string) => void = () => {},
  ) {
    this.#stop?.abort();
    const stop = new AbortController();
    this.#stop = stop;
    this.making = what;
    this.progress = QUEUED;
    this.makeProblem = null;
    let id = "";
    try {
      id = await work((event) => {
        if (this.#stop === stop) this.progress = event;
      }, stop.signal);
    } catch (thrown) {
      if (this.#stop === stop && !isAborted(thrown)) this.makeProblem = problemOf(thrown);
    }
    await this.#refresh();
    if (id) finish(id);
    if (this.#stop !== stop) return;
    this.making = "";
    this.progress = null;
  }

  /** What was made has other ids: also what is done of something that was stopped. */
  async #refresh() {
    try {
      this.offers = await atlasOffers();
    } catch (thrown) {
      this.makeProblem ??= problemOf(thrown);
    }
    await this.show();
  }
}

function rowsOf(part: Part<AtlasSearchProps>): Record<string, Int32Array> {
  const rows: Record<string, Int32Array> = {};
  for (const [name, { values }] of Object.entries(part.arrays)) {
    if (name.startsWith("hits:")) rows[name.slice("hits:".length)] = values as Int32Array;
  }
  return rows;
}
