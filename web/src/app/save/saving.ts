/** Taking things away: files, links, code. Each says what it did, or why it could not. */

import type { SiteProps } from "../../contract";
import { differencesOf } from "../../data/activationDifferences";
import { activationsOf } from "../../data/activations";
import { changes } from "../../data/caption";
import { headName, siteOf, stackOf } from "../../data/trace";
import { copyOfPage } from "../../hosts/file";
import { savedPage, table } from "../../hosts/servedPage";
import type { Selection } from "../../selection";
import { isAborted, problemOf } from "../../source";
import { queryOf } from "../../views/neuron";
import { shortName } from "../input/draft";
import { TOO_LONG } from "../link";
import type {
  Compared,
  Linked,
  Measured,
  Messages,
  OpenRun,
  Place,
  Runs,
  Searching,
  Selecting,
  Tasks,
  Telling,
  Viewing,
} from "../slices";
import { pythonOfTwo } from "./comparedPython";
import { type Elsewhere, namesFile, python, setup } from "./python";
import { csv, json } from "./tableFiles";

/** More than this would not fit into a page's memory. */
const MOST_ROWS = 1_000_000;

export function savePage(bench: Place & Selecting & Runs & Tasks & Messages & Linked) {
  return attempt(bench, async () => {
    const { shown: run, selection } = bench;
    if (!run) return;
    if (selection.scale === "activations" && run.source.task) await readAll(bench, bench.pictured ?? run);
    const page = await pageOf(bench, run.trace.id);
    download(page, `${fileName(bench)}.html`);
    bench.say(`Saved ${fileName(bench)}.html (${fileSize(page)}). It opens without a server.`);
  });
}

/** A saved page cannot ask for more: what single tokens have is read of all of them first. */
async function readAll(bench: Selecting & Tasks & Messages, { source, trace }: OpenRun): Promise<void> {
  const { stack } = siteOf(trace, bench.selection.site);
  const count = stackOf(trace, stack).texts.length;
  const of = trace.difference ? differencesOf(source, stack) : activationsOf(source, stack);
  bench.allow("activations");
  await of.whole(count, (done) => {
    if (done) bench.say(`Reading all tokens, ${done.toLocaleString("en")} of ${count.toLocaleString("en")} …`);
  });
}

function pageOf(bench: Place & Selecting & Runs & Linked, id: string): Blob | Promise<Blob> {
  const { home, link, selection } = bench;
  if (home.kind === "file") return copyOfPage(home.root, link);
  return home.kind === "notebook" ? home.page() : savedPage(id, selection, subtracted(bench));
}

export function savePicture(bench: Selecting & Runs & Viewing & Messages) {
  return attempt(bench, async () => {
    const picture = await bench.view?.picture();
    if (!picture) return;
    const file = await new Promise<Blob | null>((done) => picture.toBlob(done, "image/png"));
    if (!file) throw new Error("The picture is too large for this browser.");
    download(file, `${fileName(bench)}.png`);
    bench.say(`Saved ${fileName(bench)}.png, ${picture.width} × ${picture.height} pixels.`);
  });
}

/** Every number that is drawn, as the page has it. */
export function saveNumbers(bench: Selecting & Runs & Viewing & Messages, format: "csv" | "json") {
  return attempt(bench, async () => savedNumbers(bench, bench, fileName(bench), format));
}

/** Save the numbers of what is on screen, and say so. */
export function savedNumbers(messages: Messages, { view }: Telling, name: string, format: "csv" | "json") {
  const sheet = view?.numbers(MOST_ROWS);
  if (!sheet) return;
  // Spreadsheets take a file without a byte order mark for one in their own old encoding.
  const file = new Blob([format === "csv" ? `\ufeff${csv(sheet)}` : json(sheet)], {
    type: format === "csv" ? "text/csv" : "application/json",
  });
  download(file, `${name}.${format}`);
  const count = (value: number) => value.toLocaleString("en");
  const rows =
    sheet.total > sheet.rows.length
      ? `the first ${count(sheet.rows.length)} of ${count(sheet.total)}`
      : count(sheet.total);
  messages.say(`Saved ${rows} rows as ${name}.${format}.`);
}

/** Every number there is, from the server. */
export function saveTable(bench: Selecting & Runs & Messages, format: "csv" | "parquet" | "json") {
  return attempt(bench, async () => {
    const { shown: run, selection } = bench;
    if (!run) return;
    const heads = selection.scale === "head" ? selection.heads : [selection.head];
    const ofHeads = {
      format,
      heads: heads.map((head) => headName(selection.site, head)).join(","),
      what: selection.what,
      by: selection.by,
      hide: selection.hide.join(","),
      off: selection.off.join(","),
      minus: subtracted(bench),
    };
    const ofNeurons = {
      format,
      minus: subtracted(bench),
      ...neuronOptions(selection, siteOf(run.trace, selection.site)),
    };
    const options = selection.scale === "neuron" ? ofNeurons : ofHeads;
    bench.say("Collecting the numbers …");
    let kept = "all";
    let file: Blob;
    try {
      file = await table(run.trace.id, options);
    } catch (thrown) {
      // All are too many: those that pass the filter may not be.
      if (problemOf(thrown).error !== "TooManyNumbersError" || selection.filter === "all") throw thrown;
      file = await table(run.trace.id, { ...options, ...lineFilter(selection) });
      kept = "filtered";
    }
    download(file, `${fileName(bench)}-${kept}.${format}`);
    bench.say(`Saved ${fileName(bench)}-${kept}.${format} (${fileSize(file)}).`);
  });
}

function neuronOptions(selection: Selection, site: SiteProps): Record<string, string> {
  const { head, every } = selection;
  const query = String(queryOf(selection, site));
  return { view: "neuron", heads: headName(site.site, head), query, ...(every ? { every } : {}) };
}

/** The run that is subtracted from the one on screen, where that is what is drawn. */
function subtracted(bench: Runs): string {
  return bench.pictured !== bench.shown ? (bench.other?.trace.id ?? "") : "";
}

/** The filter of lines, which makes a long input's table small enough. */
function lineFilter({ filter, threshold, mass, top }: Selection): Record<string, string> {
  if (filter === "all") return {};
  return { filter, [filter]: String({ threshold, mass, top }[filter]) };
}

/** In a notebook there is no address that could be passed on. */
export function hasLink({ home }: Place): boolean {
  return home.kind !== "notebook" && location.protocol !== "about:";
}

export function copyLink(bench: Runs & Messages & Linked) {
  return attempt(bench, async () => {
    const edits = bench.shown?.trace.edits.length ?? 0;
    await copy(`${location.href.split("#")[0]}#${bench.link}`);
    bench.say(
      new URLSearchParams(bench.link).has("kept")
        ? TOO_LONG
        : `Link copied: it opens this view of this input${edits ? `, edited (${changes(edits)})` : ""}.`,
    );
  });
}

export function copyPython(bench: Selecting & Runs & Compared & Searching & Measured & Messages) {
  return attempt(bench, async () => {
    if (!bench.shown) return;
    const { shown: run, other, selection, comparing } = bench;
    const isTwo = comparing.isOn && other;
    const code = isTwo
      ? pythonOfTwo(run, other, comparing.difference?.trace ?? null, selection)
      : python(run.trace, run.request, selection, elsewhere(bench));
    await copy(code);
    const isTold = [run, ...(isTwo ? [other] : [])].some((side) => namesFile(side.trace, side.request));
    bench.say(isTold ? "Python copied: it names your file, give its folder too." : "Python copied: it runs as pasted.");
  });
}

/** Measures that the run itself does not have, and the Python of what was looked for. */
function elsewhere({ measures, finder }: Searching & Measured): Elsewhere {
  const names = Object.values(measures.extra).flatMap((part) => part.props.methods.map((method) => method.name));
  const search = finder.found?.props;
  const own = search ? { [search.method.name]: { code: search.python, name: "scores" } } : {};
  return { ...Object.fromEntries(names.map((name) => [name, null])), ...own };
}

/** Lines that go on from the run on screen. */
export function copyCode(bench: Runs & Messages, code: string) {
  return bench.shown ? copyText(bench, `${setup(bench.shown.trace, bench.shown.request)}${code}`) : undefined;
}

export function copyText(bench: Messages, text: string) {
  return attempt(bench, async () => {
    await copy(text);
    bench.say("Python copied: it runs as pasted.");
  });
}

export async function attempt(bench: Messages, act: () => Promise<void>) {
  try {
    await act();
  } catch (thrown) {
    if (isAborted(thrown)) return;
    const { message, hint } = problemOf(thrown);
    bench.say(`${message} ${hint}`.trim());
  }
}

function fileName(bench: Selecting & Runs): string {
  const { shown: run, selection } = bench;
  const model = shortName(run?.trace.model ?? "");
  const place = selection.scale !== "model" ? `-${headName(selection.site, selection.head)}` : "";
  return `headscope-${model}${place}`.replace(/[^\w.-]+/g, "-");
}

/** How large a file is, in words. */
export function fileSize(file: Blob): string {
  return file.size < 1e6 ? `${Math.ceil(file.size / 1e3)} kB` : `${(file.size / 1e6).toFixed(1)} MB`;
}

export function download(file: Blob, name: string) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

export async function copy(text: string) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Pages that are not served securely have no clipboard of their own: the old way still works there.
    const box = document.createElement("textarea");
    box.value = text;
    document.body.append(box);
    box.select();
    const isDone = document.execCommand("copy");
    box.remove();
    if (!isDone) throw new Error("This browser does not let the page copy.");
  }
}
