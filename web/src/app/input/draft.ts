/** The input form: what the user is writing, and how it becomes a request. */

import type { ChatMessage, ModelProps, PresetProps, RunRequest, Settings } from "../../contract";
import { requestOf, sameRequest } from "../../request";
import { summary } from "../edit/editWords";
import { MOST_WRITTEN } from "../link";
import { mediaName } from "./media";

/** As the server names what a model takes. */
export const FORMS = ["text", "pair", "source-target", "chat", "text-image", "image", "audio"] as const;
export type Form = (typeof FORMS)[number];

export interface Draft {
  model: string;
  form: Form;
  text: string;
  pair: string;
  target: string;
  turns: ChatMessage[];
  cut: boolean;
  /** How many tokens the model writes after it. */
  write: number;
  /** The picture or the sound: the id that its upload was given, or `preset:NAME`; empty without one. */
  media: string;
  /** Of a sound: its language and what is written of it; empty for what the model does by itself. */
  language: string;
  task: string;
}

export const EMPTY: Draft = {
  model: "",
  form: "text",
  text: "",
  pair: "",
  target: "",
  turns: [{ role: "user", content: "" }],
  cut: false,
  write: 0,
  media: "",
  language: "",
  task: "",
};

/** The forms that fit a model, the usual one first. What is not known before it is loaded is taken to be text. */
export function formsOf(model: ModelProps | undefined): Form[] {
  const kinds = model?.kinds ?? [];
  const forms = FORMS.filter((form) => kinds.includes(form));
  return forms.length ? forms : ["text"];
}

/** Whether the page has a form for this model. */
export function hasForm(model: ModelProps | undefined): boolean {
  return !model?.kinds.length || FORMS.some((form) => model.kinds.includes(form));
}

/** Whether a form takes a picture or a sound, and which. */
export function mediaOf(form: Form): "image" | "audio" | null {
  return form === "audio" ? "audio" : form === "image" || form === "text-image" ? "image" : null;
}

export function draftOf(request: RunRequest, forms: Form[]): Draft {
  const media =
    request.text !== null ? "text-image" : (forms.find((candidate) => mediaOf(candidate) !== null) ?? "image");
  const form: Form = request.media
    ? media
    : request.chat
      ? "chat"
      : forms.includes("source-target") || request.target !== null
        ? "source-target"
        : request.pair !== null
          ? "pair"
          : "text";
  return {
    model: request.model,
    form,
    text: request.text ?? "",
    pair: request.pair ?? "",
    target: request.target ?? "",
    turns: request.chat?.map((turn) => ({ ...turn })) ?? EMPTY.turns.map((turn) => ({ ...turn })),
    cut: request.truncate,
    write: request.generate,
    media: request.media ?? "",
    language: request.language ?? "",
    task: request.task ?? "",
  };
}

export function requestFrom(draft: Draft): RunRequest {
  const common = { model: draft.model, truncate: draft.cut, generate: canWrite(draft) ? writtenBy(draft) : 0 };
  switch (draft.form) {
    case "text":
      return requestOf({ ...common, text: draft.text });
    case "pair":
      return requestOf({ ...common, text: draft.text, pair: draft.pair });
    case "source-target":
      return requestOf({ ...common, text: draft.text, target: targetOf(draft) });
    case "text-image":
      return requestOf({ ...common, text: draft.text, media: draft.media });
    case "image":
      return requestOf({ ...common, media: draft.media, target: targetOf(draft) });
    case "audio":
      return requestOf({ ...common, media: draft.media, target: targetOf(draft), ...decodingOf(draft) });
    case "chat":
      return requestOf({
        ...common,
        chat: draft.turns.filter((turn) => turn.content.trim()).map((turn) => ({ ...turn })),
      });
  }
}

/** A target that is left empty is one that the model writes. */
const targetOf = ({ target }: Draft) => (target.trim() ? target : null);
const decodingOf = ({ language, task }: Draft) => ({ language: language || null, task: task || null });

/** How the form differs from the run on screen, in words; empty where running it would show the same. */
export function formDifference(draft: Draft, request: RunRequest | null, models: ModelProps[]): string {
  if (!request) return "";
  if (draft.model !== request.model) return `The form names ${shortName(draft.model) || "no model"}`;
  const forms = formsOf(models.find((model) => model.name === request.model));
  const ofRun = requestFrom(draftOf({ ...request, edits: [] }, forms));
  return sameRequest(requestFrom(draft), ofRun) ? "" : "The form has another input";
}

/** A target that is given is not written by the model; a pair is read by models that do not write. */
export function canWrite({ form, target }: Draft): boolean {
  return form === "text" || form === "chat" || form === "text-image" || (form === "source-target" && !target.trim());
}

/** A whole number that the server takes, whatever the field holds. */
function writtenBy({ write }: Draft): number {
  return Math.max(0, Math.min(MOST_WRITTEN, Math.round(Number(write) || 0)));
}

/** What is still to be filled in, in words; empty when it can be run. */
export function missing(draft: Draft, longest: number): string {
  if (!draft.model) return "Choose a model first.";
  const media = mediaOf(draft.form);
  if (media && !draft.media) return media === "image" ? "Choose a picture first." : "Choose a sound first.";
  if (media && draft.form !== "text-image") return "";
  const text = draft.form === "chat" ? draft.turns.map((turn) => turn.content).join("") : draft.text;
  if (!text.trim()) return draft.form === "chat" ? "Write at least one turn." : "Type a text to run.";
  if (draft.form === "pair" && !draft.pair.trim()) return "Type the second text too, or switch to one text.";
  const length =
    text.length +
    (draft.form === "pair" ? draft.pair.length : draft.form === "source-target" ? draft.target.length : 0);
  if (longest && length > longest) {
    return `This is ${length.toLocaleString("en")} characters long: the server takes ${longest.toLocaleString("en")}.`;
  }
  return "";
}

export function presetRequest(model: string, preset: PresetProps): RunRequest {
  return requestOf({ model, text: preset.text, pair: preset.pair, target: preset.target, media: preset.media });
}

/** The example that the page opens on: one that heads are ranked for, if the model has such, else its first. */
export function startPreset(model: ModelProps | undefined): PresetProps | undefined {
  return model?.presets.find((preset) => preset.sort) ?? model?.presets[0];
}

/** The runs that the page makes by itself: those of the default model that it shows where no input is asked for. */
export function startRequests(settings: Settings): RunRequest[] {
  const model = settings.models.find(({ name }) => name === settings.default_model);
  const presets = [startPreset(model), model?.presets[0]];
  return model ? presets.flatMap((preset) => (preset ? [presetRequest(model.name, preset)] : [])) : [];
}

/** A model's name where there is little room: the folder's own, without the way to it. */
export function shortName(model: string): string {
  return model.startsWith("builtin:")
    ? model.slice("builtin:".length)
    : model.replace(/^([/~.\\]|\w:).*[/\\](?=[^/\\]+$)/, "");
}

/** A run's name: of the preset it came from, or its first words; of an edited run, what was edited. */
export function nameOf(request: RunRequest, models: ModelProps[]): string {
  if (request.edits.length) return `Edited: ${summary(request.edits)}`;
  const presets = models.find((model) => model.name === request.model)?.presets ?? [];
  const preset = presets.find((candidate) => sameRequest(presetRequest(request.model, candidate), request));
  if (preset) return preset.name;
  if (request.media && request.text === null) return mediaName(request.media);
  return shortened(words(request.text) ?? request.chat?.at(-1)?.content ?? "");
}

/** A text as it reads: of a sentence pasted with its tree (CoNLL-U), the words. */
export function words(text: string | null): string | null {
  const rows = (text ?? "").split("\n").filter((line) => line.trim() && !line.startsWith("#"));
  if (!rows.length || !rows.every((line) => line.split("\t").length === 10)) return text;
  const cells = rows.map((line) => line.split("\t")).filter(([number]) => /^\d+$/.test(number ?? ""));
  return cells.map(([, form]) => form).join(" ");
}

export function shortened(text: string): string {
  const line = text.slice(0, 400).replace(/\s+/g, " ").trim();
  return line.length > 40 ? `${line.slice(0, 39).trimEnd()}…` : line;
}
