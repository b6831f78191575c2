/** What the view of an atlas may use of the place it lives in, and what that place may ask of it. */

import type { AtlasProps, AtlasSelection } from "../contract";
import type { Source } from "../source";
import type { Legend } from "./legend";
import type { Around, TipLine } from "./view";

/** Points that are selected: rows of a stack, in one role. */
export interface PickedPoints {
  role: string;
  stack: string;
  rows: Int32Array;
}

export interface AtlasHost {
  /** The parts of this atlas; another atlas, or one with new maps, is another host. */
  readonly source: Source;
  readonly atlas: AtlasProps;
  /** Rows that the search hit, by stack; null without a search. An update follows when they change. */
  readonly hits: Record<string, Int32Array> | null;
  select(change: Partial<AtlasSelection>, history?: "keep" | "replace"): void;
  say(line: string, notes?: string[], legend?: Legend | null): void;
  fail(problem: Error | null): void;
  tip(at: { x: number; y: number } | null, lines?: TipLine[], around?: Around | null): void;
  /** What the lasso or the box selected; empty for nothing. */
  picked(points: PickedPoints[]): void;
  /** Run an example in the model and look at a head of it; absent where nothing can be run. */
  open?(example: number, place: string): void;
}

export interface AtlasMounted {
  /** Draw this selection; resolves when it is on screen. A newer call overtakes an older. */
  update(selection: AtlasSelection): Promise<void>;
  redraw(): void;
  picture(): Promise<HTMLCanvasElement>;
  numbers(limit: number): { columns: string[]; rows: (string | number)[][]; total: number };
  /** A key that the app did not use itself; true when the view did. */
  key(event: KeyboardEvent): boolean;
  destroy(): void;
}

export type MountAtlas = (element: HTMLElement, host: AtlasHost) => AtlasMounted;
