/** A link in words: what it asks to compute. */

import type { ModelProps, RunRequest } from "../../contract";
import type { Link } from "../link";
import { shortened, shortName, words } from "./draft";
import { languageName } from "./languages";
import { mediaName } from "./media";

/** One line of the summary; several texts stand below each other. */
export interface Row {
  label: string;
  texts: string[];
  isCode?: boolean;
  note?: string;
}

const NAMES: Record<string, string> = {
  compare: "the comparison with another run",
  effect: "the effect of the edits",
  relevance: "the relevance of the input to a prediction",
  find: "a search for heads",
  activations: "activations",
  examples: "examples from the corpus",
};

/** "This link asks to run builtin:gpt with 2 edits." */
export function headingOf({ model, request }: Link): string {
  const name = shortened(model.startsWith("builtin:") ? model : shortName(model));
  if (!request) return `This link asks to load ${name}.`;
  const count = request.edits.length;
  const edits = count ? ` with ${count} ${count === 1 ? "edit" : "edits"}` : "";
  return `This link asks to run ${name}${edits}.`;
}

/** The names of what is missing beside the run: "activations and a search for heads". */
export function missingNames(missing: string[]): string {
  const names = missing.map((task) => NAMES[task] ?? task);
  const last = names.at(-1) ?? "";
  return names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${last}` : last;
}

/** What would be computed: model, input, edits, other run, tasks. */
export function rowsOf({ model, request, other, selection }: Link, models: ModelProps[]): Row[] {
  const isLoaded = models.some(({ name, is_loaded }) => name === model && is_loaded);
  const rows: Row[] = [{ label: "Model", texts: [model], note: isLoaded ? "" : "Not loaded yet." }];
  if (!request) return [...rows, { label: "Input", texts: ["The model's first example"] }];
  rows.push(...inputRows(request));
  if (other) rows.push({ label: "Compare with", texts: comparedWith(request, other) });
  const tasks = [
    ...(selection.scale === "activations" ? ["activations"] : []),
    ...(selection.relevance ? ["relevance"] : []),
    ...(selection.find ? ["find"] : []),
  ];
  if (tasks.length) rows.push({ label: "Analyses", texts: [capitalised(missingNames(tasks))] });
  return rows;
}

function inputRows(request: RunRequest): Row[] {
  const { text, pair, target, chat, media, language, task, generate, edits } = request;
  const rows: Row[] = [];
  if (media) rows.push({ label: "Media", texts: [mediaName(media)] });
  if (language) rows.push({ label: "Language", texts: [languageName(language)] });
  if (task) rows.push({ label: "Task", texts: [task] });
  if (text !== null) rows.push({ label: "Text", texts: [words(text) ?? text] });
  if (pair !== null) rows.push({ label: "Second text", texts: [pair] });
  if (target !== null) rows.push({ label: "Target", texts: [target] });
  if (chat) rows.push({ label: "Chat", texts: chat.map(({ role, content }) => `${role}: ${content}`) });
  if (generate) rows.push({ label: "New tokens", texts: [String(generate)] });
  if (edits.length) rows.push({ label: "Edits", texts: edits, isCode: true });
  return rows;
}

/** How the other run differs. */
function comparedWith(request: RunRequest, other: RunRequest): string[] {
  const [input, otherInput] = [request, other].map((run) => inputRows({ ...run, edits: [] })) as [Row[], Row[]];
  const texts = other.model === request.model ? [] : [other.model];
  for (const { label, texts: own } of otherInput) {
    const before = input.find((row) => row.label === label)?.texts;
    if (JSON.stringify(own) !== JSON.stringify(before)) texts.push(...own);
  }
  if (!texts.length) texts.push("The same input");
  if (other.edits.length) texts.push(...other.edits);
  else if (request.edits.length) texts.push("Original: not edited");
  return texts;
}

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
