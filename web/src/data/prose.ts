/** The texts of a run as running text: source and translation, or a prompt and what the model wrote after it. */

import type { StackProps, TraceProps } from "../contract";
import { writtenFrom } from "./steps";

/** A text under its name; `written` is what the model wrote itself, after `prompt`. */
export interface Prose {
  name: string;
  prompt: string;
  written: string;
}

/** The texts worth reading as prose: of runs with two texts, or with text that the model wrote. */
export function proseOf(trace: TraceProps): Prose[] {
  const { text, target, steps, difference } = trace;
  if (difference) return [];
  const isWritten = steps !== null;
  if (target !== null) {
    const name = isWritten ? (isTranslation(trace) ? "Translation" : "Written by the model") : "Target";
    const output = isWritten
      ? { name, prompt: "", written: target.trim() }
      : { name, prompt: target.trim(), written: "" };
    return text === null ? [output] : [{ name: "Source", prompt: text.trim(), written: "" }, output];
  }
  const stack = trace.stacks.find(({ name, kind }) => kind === "text" && writtenFrom(trace, name) !== null);
  if (!stack) return [];
  const first = writtenFrom(trace, stack.name) ?? 0;
  return [{ name: "Text", ...split(text, stack, first) }];
}

/** Whether the model translates, by its name: others write summaries and answers. */
function isTranslation({ model }: TraceProps): boolean {
  return /translat|opus-mt|marian|nllb|m2m|mbart|wmt|madlad/i.test(model);
}

/** The text as the tokens say where the model began to write. */
function split(text: string | null, stack: StackProps, first: number): Pick<Prose, "prompt" | "written"> {
  const written = joined(stack, first, stack.texts.length).trimStart();
  if (text && written && text.endsWith(written)) {
    const at = text.length - written.length;
    return { prompt: text.slice(0, at), written: text.slice(at) };
  }
  return { prompt: `${joined(stack, 0, first)} `, written };
}

function joined(stack: StackProps, from: number, to: number): string {
  const spaces = new Set(stack.spaces);
  const special = new Set(stack.special);
  let text = "";
  for (let position = from; position < to; position++) {
    if (special.has(position)) continue;
    text += `${spaces.has(position) && text ? " " : ""}${stack.texts[position] ?? ""}`;
  }
  return text.replaceAll("⏎", "\n"); // as tokens are shown
}
