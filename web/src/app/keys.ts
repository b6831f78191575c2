/** Keys, wherever the focus is: those of the whole page, then those of the view, then moves between scales. */

import { stepsOf, stepTo } from "../data/steps";
import type { Scale } from "../selection";
import type {
  Charted,
  Compared,
  Editing,
  Messages,
  Pending,
  Place,
  Runs,
  Searching,
  Selecting,
  Viewing,
} from "./slices";

export function pressed(
  event: KeyboardEvent,
  bench: Charted & Place & Selecting & Runs & Pending & Editing & Compared & Searching & Viewing & Messages,
  root: HTMLElement,
  showKeys: () => void,
) {
  if (event.defaultPrevented || event.isComposing) return;
  const target = event.target as HTMLElement;
  // A key held down since the previous page or address confirms no link.
  if (event.repeat && bench.links.pending && /^(Enter| )$/.test(event.key) && !target.closest("textarea")) {
    event.preventDefault();
    return;
  }
  if ((event.ctrlKey || event.metaKey) && event.key === "Enter") {
    if (event.repeat) return;
    root.querySelector<HTMLFormElement>("aside form[aria-label='Input']")?.requestSubmit();
    return;
  }
  if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "z") {
    // In a box that is typed into, it is the box that undoes.
    if (target.closest("input:not([type=range], [type=checkbox], [type=radio]), textarea, [contenteditable]")) return;
    event.preventDefault();
    if (event.shiftKey) bench.edits.redo();
    else bench.edits.undo();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  // Whatever lies on top has the keys.
  if (root.querySelector("dialog[open], [popover]:popover-open")) return;
  if (target.closest("input:not([type=range]), textarea, select, [contenteditable]")) return;
  // A slider has the keys that move it.
  if (target.closest("input") && /^(Arrow|Page|Home|End)/.test(event.key)) return;
  // On a button, Enter and the space bar are the button's.
  if ((event.key === "Enter" || event.key === " ") && target.closest("button, a, summary")) return;
  if (event.key === "?") {
    event.preventDefault();
    showKeys();
  } else if (
    bench.selection.scale === "atlas" ? ofAtlas(event, bench, root) : bench.shown && ofPage(event, bench, root)
  ) {
    event.preventDefault();
  }
}

const SCALES: Record<string, Scale> = { 1: "model", 2: "head", 3: "neuron", 4: "activations" };

function ofAtlas(event: KeyboardEvent, { charts, select }: Charted & Selecting, root: HTMLElement): boolean {
  const scale = SCALES[event.key];
  if (scale) {
    select({ scale });
    return true;
  }
  if (event.key === "t") {
    charts.asTable = !charts.asTable;
    return true;
  }
  if (event.key === "/") {
    const box = root.querySelector<HTMLInputElement>("[data-find]");
    box?.focus();
    return box !== null;
  }
  if (event.key === "Escape" && charts.asTable) {
    charts.asTable = false;
    return true;
  }
  if (charts.asTable) return false;
  if (charts.view?.key(event)) return true;
  if (event.key !== "Escape" || !charts.selection.place) return false;
  charts.select({ place: "" });
  return true;
}

function ofPage(
  event: KeyboardEvent,
  bench: Charted & Selecting & Runs & Compared & Searching & Viewing & Messages,
  root: HTMLElement,
): boolean {
  switch (event.key) {
    case "0":
      if (bench.charts.isOffered) bench.select({ scale: "atlas" });
      return true;
    case "1":
      bench.select({ scale: "model" });
      return true;
    case "2":
      bench.select({ scale: "head" });
      return true;
    case "3":
      bench.select({ scale: "neuron", every: null });
      return true;
    case "4":
      bench.select({ scale: "activations" });
      return true;
    case ",":
    case ".":
      return stepped(event.key === "." ? 1 : -1, bench);
    case "f":
      if (bench.home.kind === "page" || bench.finder.found) bench.finder.toggle();
      return true;
    case "t":
      bench.asTable = !bench.asTable;
      return true;
    case "/": {
      if (bench.selection.scale === "model") bench.select({ scale: "head" });
      const focus = () => {
        const box = root.querySelector<HTMLInputElement>("[data-find]");
        if (box?.disabled) bench.say(box.title);
        else box?.focus();
        return box !== null;
      };
      // At once, or what is typed next is lost; the box is there as soon as the head view's controls are.
      if (!focus()) requestAnimationFrame(focus);
      return true;
    }
    case "Escape":
      if (bench.asTable) {
        bench.asTable = false;
        return true;
      }
  }
  if (bench.asTable) return false;
  return bench.view?.key(event) || moved(event, bench);
}

/** A step of the text that the model wrote, back or forth. */
function stepped(by: 1 | -1, bench: Selecting & Runs): boolean {
  const trace = bench.shown?.trace;
  const steps = trace && stepsOf(trace);
  if (!trace || !steps) return false;
  const { step } = bench.selection;
  const next = step === null ? (by > 0 ? 0 : steps.queries.length - 1) : step + by;
  if (next >= 0 && next < steps.queries.length) bench.select(stepTo(trace, bench.selection, next), "replace");
  return true;
}

/** Between scales, where the view itself had no use for the key. */
function moved(event: KeyboardEvent, bench: Selecting & Runs & Compared): boolean {
  const { selection } = bench;
  if (event.key === "Enter" && selection.scale === "model") {
    bench.select({ scale: "head", heads: [selection.head] });
    return true;
  }
  if (event.key === "Enter" && selection.scale === "head") {
    bench.select({ scale: "neuron" });
    return true;
  }
  if (event.key === "Escape" && selection.relevance) {
    bench.select({ relevance: "" });
    return true;
  }
  if (event.key === "Escape" && selection.scale !== "model") {
    bench.select({ scale: selection.scale === "neuron" ? "head" : "model" });
    return true;
  }
  if (event.key === "Escape" && bench.other) {
    bench.comparing.leave();
    return true;
  }
  return false;
}
