/** The runs of this tab, to come back to: the latest first. */

import type { RunRequest } from "../contract";
import { sameRequest } from "../request";
import type { EarlierRun } from "./slices";

const KEY = "headscope:runs";
const MOST = 12;

export function earlierRuns(): EarlierRun[] {
  try {
    return JSON.parse(sessionStorage.getItem(KEY) ?? "[]");
  } catch {
    return [];
  }
}

export function storeRuns(runs: EarlierRun[]): void {
  try {
    sessionStorage.setItem(KEY, JSON.stringify(runs));
  } catch {
    // Too long for this tab's store: the list then lasts until the page is reloaded.
  }
}

/** The runs after another one. `before` is a run that this one takes the place of: where a slider was on its way. */
export function remembered(runs: EarlierRun[], run: EarlierRun, before: RunRequest | null): EarlierRun[] {
  const gone = before?.edits.length ? [run.request, before] : [run.request];
  const others = runs.filter((earlier) => !gone.some((request) => sameRequest(earlier.request, request)));
  return [run, ...others].slice(0, MOST);
}
