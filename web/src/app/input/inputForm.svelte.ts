/** The form of the input: what the user typed or chose, and the model that it is for. */

import type { ModelProps, RunRequest, Settings } from "../../contract";
import { type Draft, draftOf, EMPTY, formsOf } from "./draft";

export class InputForm {
  draft = $state<Draft>(structuredClone(EMPTY));
  /** The form as the pending link filled it in. */
  #linked = "";

  constructor(private readonly page: { readonly settings: Settings | null }) {}

  /** The model of the form. */
  get model(): ModelProps | undefined {
    return this.#models.find((model) => model.name === this.draft.model);
  }

  /** Whether its text, and its picture or sound, come from the user and not from an example. */
  get own(): { text: boolean; media: boolean } {
    const { text, media } = this.draft;
    const isPreset = this.#models.some((model) => model.presets.some((preset) => preset.text === text));
    return { text: !!text.trim() && !isPreset, media: !!media && !media.startsWith("preset:") };
  }

  /** Whether it is as the pending link filled it in. */
  get isAsLinked(): boolean {
    return JSON.stringify(this.draft) === this.#linked;
  }

  markLinked() {
    this.#linked = JSON.stringify(this.draft);
  }

  fill(request: RunRequest) {
    this.draft = draftOf(request, formsOf(this.#models.find((model) => model.name === request.model)));
  }

  /** The kind of input, language and task are such that the model takes, once that is known. */
  fit() {
    const { model, draft } = this;
    if (!model?.kinds.length) return;
    const forms = formsOf(model);
    if (!forms.includes(draft.form)) draft.form = forms[0] ?? "text";
    if (!model.languages.includes(draft.language)) draft.language = "";
    if (!model.tasks.includes(draft.task)) draft.task = "";
  }

  get #models(): ModelProps[] {
    return this.page.settings?.models ?? [];
  }
}
