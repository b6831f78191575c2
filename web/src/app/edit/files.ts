/** Edits as files, and as models. Each says what it did, or why it could not. */

import { editsFile, readEdits, saveModel } from "../../hosts/servedPage";
import { attempt, download } from "../save/saving";
import type { Editing, Messages, Runs } from "../slices";

export function saveEdits(bench: Runs & Messages) {
  return attempt(bench, async () => {
    if (!bench.shown) return;
    const { file, name } = await editsFile(bench.shown.trace.id);
    download(file, name);
    const what = name.endsWith(".zip")
      ? "edits.json and the numbers of the other run lie in it"
      : "the edits that are on";
    bench.say(`Saved ${name}: ${what}. In Python: hs.load_interventions("edits.json")`);
  });
}

export function loadEdits(bench: Editing & Messages, input: HTMLInputElement) {
  return attempt(bench, async () => {
    const file = input.files?.[0];
    input.value = ""; // the same file may be chosen again
    if (!file) return;
    if (file.size > 1e6) throw new Error(`${file.name} is too large for a file of edits.`);
    bench.edits.replace(await readEdits(await file.text()));
  });
}

export function bakeModel(bench: Runs & Messages, name: string) {
  return attempt(bench, async () => {
    if (!bench.shown) return;
    bench.say("Writing the model …");
    bench.say(`Written to ${await saveModel(bench.shown.trace.id, name.trim())}`);
  });
}
