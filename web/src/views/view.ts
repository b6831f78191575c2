/** What a view is: a function that draws into an element and follows the selection. No framework inside. */

import type { ScoresProps, TraceProps, TrustProps } from "../contract";
import type { Relevance } from "../data/relevance";
import type { Selection, Side } from "../selection";
import type { Source } from "../source";
import type { Part } from "../wire";
import type { Legend } from "./legend";
import type { Painting } from "./painting";

/** What a view may use of the place it lives in. */
export interface Host {
  readonly source: Source;
  readonly trace: TraceProps;
  /** Measures of all heads, once they are there. */
  readonly scores: Part<ScoresProps> | null;
  /** Cells that are being painted on the matrix, if any: dragging paints then. */
  readonly painting?: Painting | null;
  /** The relevance of tokens to the answer that was chosen, once it is there. */
  readonly relevance: Relevance | null;
  /** What the quick set said of heads of this run, if any were tested. */
  readonly trust?: TrustProps | null;
  /** Change the selection: `keep` puts a step into the browser's history, `replace` (for sliders, typing) does not. */
  select(change: Partial<Selection>, history?: "keep" | "replace"): void;
  /** One line over the stage that says what is drawn: "58 of 306 lines drawn"; what is hidden, if anything; and what the
   *  colours mean. */
  say(line: string, notes?: string[], legend?: Legend | null): void;
  /** Something went wrong that the user should see; null when it is over. */
  fail(problem: Error | null): void;
  /** The pointer is on a token, as read; null when it no longer is. For whoever shows the same token elsewhere. */
  hover?(token: { side: Side; index: number } | null): void;
  /** Put an edit, as the Python that makes it, on top of the stack, and run; absent where nothing can be run. */
  edit?(call: string): void;
  /** A short text beside the pointer; null hides it. Lines are shown as plain text, never as HTML. `around` is what the
   *  text is about, on the screen: it stays uncovered. */
  tip(at: { x: number; y: number } | null, lines?: TipLine[], around?: Around | null): void;
}

/** A rectangle on the screen. */
export interface Around {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/** Where a box of a view's element is on the screen. */
export function onScreen(element: Element, box: { x: number; y: number; width: number; height: number }): Around {
  const { left, top } = element.getBoundingClientRect();
  return {
    left: left + box.x,
    top: top + box.y,
    right: left + box.x + box.width,
    bottom: top + box.y + box.height,
  };
}

/** A line of text, or one with small pictures in it. */
export type TipLine = string | (string | ImageData)[];

export interface Mounted {
  /** Draw this selection; resolves when it is on screen, with nothing still to come. A newer call overtakes an older. */
  update(selection: Selection): Promise<void>;
  /** The theme or the size of the page changed. */
  redraw(): void;
  /** What is on screen, tokens included. */
  picture(): Promise<HTMLCanvasElement>;
  /** The numbers shown, as a table: for screen readers, CSV and JSON. At most `limit` rows; `total` says how many there
   *  are, and `titles` how columns are called on screen, where that is not what files call them. */
  numbers(limit: number): { columns: string[]; titles?: string[]; rows: (string | number)[][]; total: number };
  /** A key that the app did not use itself; true when the view did. */
  key(event: KeyboardEvent): boolean;
  /** Highlight a text among the tokens and bring the next (or previous) place into view; empty clears it. `index` counts
   *  from 0 and is −1 where there is none. */
  find?(text: string, direction: 1 | -1): { index: number; total: number };
  /** The keys that the query in focus looks at most, where a view has rows to go to. */
  strongestKeys?(count: number): { key: number; weight: number }[];
  /** Bring a key's row into view. */
  goTo?(key: number): void;
  /** Show a token as if the pointer were on it; null no longer. */
  highlight?(token: { side: Side; index: number } | null): void;
  /** How many of the strongest keys of a query are known, where not all are. */
  readonly kept?: number | null;
  destroy(): void;
}

export type Mount = (element: HTMLElement, host: Host) => Mounted;
