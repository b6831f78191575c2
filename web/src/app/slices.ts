/** What components use of the workbench, a concern each. The workbench is all of them; a component names those it uses. */

import type { RunRequest, SavedProps, Settings, TraceProps } from "../contract";
import type { Gate } from "../hosts/gate";
import type { OuterTheme } from "../hosts/notebookTheme";
import type { Selection } from "../selection";
import type { Source, SourceError } from "../source";
import type { Legend } from "../views/legend";
import type { Mounted } from "../views/view";
import type { AtlasBench } from "./atlas/atlasBench.svelte";
import type { Baseline } from "./baseline.svelte";
import type { Comparing } from "./compare/comparison.svelte";
import type { Edits } from "./edit/edits.svelte";
import type { Finder } from "./find/finder.svelte";
import type { InputForm } from "./input/inputForm.svelte";
import type { Link } from "./link";
import type { PageLinks } from "./pageLinks.svelte";
import type { RunMeasures } from "./runMeasures.svelte";
import type { RunRequests } from "./runRequests.svelte";
import type { Trust } from "./trust/trust.svelte";

/** What is on screen. */
export interface OpenRun {
  /** What was asked for; null in a saved file. */
  request: RunRequest | null;
  trace: TraceProps;
  source: Source;
  /** Which tasks of it may be computed; absent where there is no server. */
  gate?: Gate;
}

/** A run of this tab, to come back to. */
export interface EarlierRun {
  request: RunRequest;
  when: number;
}

/** A link that asks for something the server does not hold. It is computed after a click. */
export interface PendingLink {
  link: Link;
  /** "run" if there is nothing to show; otherwise what is missing beside the run: "compare", "effect", task names. */
  missing: string[];
}

/** Where a page lives: on a server that runs models, in a file that holds one run, or in a notebook whose kernel does. */
export type Home =
  | { kind: "page" }
  | { kind: "file"; root: HTMLElement; source: Source; opensAt: string }
  | { kind: "notebook"; source: Source; theme: OuterTheme; page(): Promise<Blob> };

export interface Place {
  readonly home: Home;
  /** What the server offers, once it has said so. */
  readonly settings: Settings | null;
}

export interface Selecting {
  readonly selection: Selection;
  /** Change the selection; what follows from the change is done too. */
  select(change: Partial<Selection>, history?: "keep" | "replace"): void;
}

export interface Runs {
  readonly shown: OpenRun | null;
  /** A second run beside the one on screen: what it is compared with. */
  other: OpenRun | null;
  /** The same run without edits, where the one on screen has some. */
  readonly baseline: Baseline;
  /** What the view draws: the run, or where it is compared the difference to the other. */
  readonly pictured: OpenRun | null;
  /** What is on screen, in a few words. */
  readonly name: string;
  readonly saved: SavedProps | null;
  readonly runs: EarlierRun[];
}

export interface Running {
  /** The form of the input. */
  readonly form: InputForm;
  /** What is asked of the server, and where that stands. */
  readonly requests: RunRequests;
  run(request: RunRequest): Promise<void>;
  /** Run what was typed. Edits of heads stay as they are; those of tokens belong to the input before, and are off. */
  runTyped(request: RunRequest): Promise<void>;
  /** Run a text with the model that is on screen, and look at it the same way. */
  open(text: string): Promise<void>;
  /** Another model: it is run at once, on what the user wrote, or else on its own first example. */
  choose(name: string): Promise<void>;
  again(): Promise<void>;
}

export interface Pending {
  /** What the address asks for, and what of it the user has to confirm. */
  readonly links: PageLinks;
}

export interface Editing {
  /** The edits of what is on screen. */
  readonly edits: Edits;
  /** Put an edit, as the Python that makes it, on top of the stack, and run. */
  edit(call: string): void;
}

export interface Compared {
  readonly comparing: Comparing;
}

export interface Searching {
  /** Looking for heads. */
  readonly finder: Finder;
  /** The use case whose evidence is on screen, by its name; empty for none. */
  useCase: string;
}

export interface Measured {
  /** Measures of the heads on screen. */
  readonly measures: RunMeasures;
}

export interface Trusting {
  /** The quick set on the run on screen. */
  readonly trust: Trust;
}

export interface Tasks {
  /** The user asks for a task of the runs on screen: it may be computed. */
  allow(task: string): void;
}

/** What a view says of its picture, and its numbers. */
export interface Telling {
  readonly view: Pick<Mounted, "numbers"> | null;
  /** What the view says it draws, and what it left out. */
  line: string;
  notes: string[];
  /** What its colours mean. */
  legend: Legend | null;
  isDrawn: boolean;
  asTable: boolean;
}

export interface Viewing extends Telling {
  view: Mounted | null;
  viewProblem: SourceError | null;
  /** The picture is complete. */
  drawn(): void;
  /** A view could not be drawn; null when it could again. */
  viewFailed(problem: SourceError | null): void;
}

/** The scale Atlas, and how it leads into the others. */
export interface Charted extends Place {
  readonly charts: AtlasBench;
  /** Whether this server runs the model of an atlas. */
  canRun(model: string): boolean;
  /** Run an example of the atlas in its model, and look at a head of it. */
  openExample(example: number, place: string): void;
}

export interface Messages {
  toast: string;
  say(text: string): void;
}

export interface Linked {
  /** The fragment that brings back what is on screen, and a comparison that is still pending. */
  readonly link: string;
  /** Write the link again: what it is compared with has changed. */
  relinked(): void;
  /** Two runs change places. */
  exchange(request: RunRequest, other: RunRequest, selection: Selection): Promise<void>;
}

/** What the workbench is. */
export type AllSlices = Place &
  Selecting &
  Runs &
  Running &
  Pending &
  Editing &
  Compared &
  Searching &
  Measured &
  Tasks &
  Trusting &
  Viewing &
  Charted &
  Messages &
  Linked;
