/** Runs in a few words, where several are named. */

import type { ModelProps, StackProps, TraceProps } from "../contract";
import { changes, inputLine } from "../data/caption";
import { nameOf, shortened, shortName } from "./input/draft";
import type { OpenRun } from "./slices";

/** `gpt (edited, 2 changes): “The doctor asked the nurse.”`: two texts that begin alike are told apart by the whole. */
export function runName({ request, trace }: OpenRun, models: ModelProps[]): string {
  const name =
    trace.text !== null ? inputLine(trace) : request ? nameOf({ ...request, edits: [] }, models) : inputName(trace);
  const edits = trace.edits.length ? ` (edited, ${changes(trace.edits.length)})` : "";
  return `${shortName(trace.model)}${edits}: ${name}`;
}

/** The input of a trace in a few words: its text, or what was seen or heard, with what was written of it. */
export function inputName({ text, target, stacks }: Pick<TraceProps, "text" | "target" | "stacks">): string {
  if (text) return shortened(text);
  const [first] = stacks;
  if (!first) return "";
  if (first.kind === "text") return shortened(first.texts.join(" "));
  const written = target?.trim() ? `: ${shortened(target.trim())}` : "";
  if (first.kind === "patches") return `picture${written}`;
  return written ? `sound${written}` : `sound${duration(first)}`;
}

/** `, 2.1 s`: frames are named by the second at which they begin. */
function duration({ texts }: StackProps): string {
  const [first, second, last] = [texts[0], texts[1], texts.at(-1)].map((time) => Number.parseFloat(time ?? ""));
  const seconds = Number(last) + Number(second) - Number(first);
  return Number.isFinite(seconds) ? `, ${seconds.toFixed(1)} s` : "";
}
