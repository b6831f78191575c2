/** Code that gives what is on screen. */

import type { RunRequest, TraceProps } from "../../contract";
import { hiddenPositions, offPositions, positionOf } from "../../data/reading";
import { parseRelevance, RELEVANCE } from "../../data/relevance";
import { headName, siteOf, stackOf } from "../../data/trace";
import { DEFAULT, type Selection } from "../../selection";
import { queryOf } from "../../views/neuron";
import { isPreset as isShipped, mediaName } from "../input/media";

/** JSON's strings, numbers and lists are Python's too. */
type Value = string | number | string[] | number[];
export const literal = (value: Value): string =>
  Array.isArray(value) ? `[${value.map((one) => JSON.stringify(one)).join(", ")}]` : JSON.stringify(value);

/** A measure that is not the run's own: lines that give it, and the variable that it is then in. */
export interface Given {
  code: string;
  name: string;
}

/** Measures from elsewhere, by their names; null where no few lines give them: a use case, a report. */
export type Elsewhere = Record<string, Given | null>;

const VIEWS = { model: modelView, head: headView, neuron: neuronView, activations: activationsView };

/** The call that gives the view on screen. */
export function viewOf(trace: TraceProps, selection: Selection, elsewhere: Elsewhere = {}): string {
  return VIEWS[selection.scale](trace, selection, elsewhere);
}

export function python(
  trace: TraceProps,
  request: RunRequest | null,
  selection: Selection,
  elsewhere: Elsewhere = {},
): string {
  const relevance = explained(trace, selection);
  const known: Elsewhere = { ...elsewhere };
  if (relevance) known[RELEVANCE] = { code: relevance, name: "found.heads" };
  const used = selection.scale === "model" ? [...new Set([selection.sort, selection.colour])] : [];
  const lines = [
    setup(trace, request).trimEnd(),
    ...(selection.scale === "head" ? numbers(trace, selection) : []),
    ...used.flatMap((name) => known[name]?.code.trimEnd() ?? []),
    `view = ${viewOf(trace, selection, known)}`,
    `view.save("${selection.scale}.html")`,
    ...(relevance && !used.includes(RELEVANCE) ? [relevance] : []),
  ];
  return `${lines.join("\n")}\n`;
}

/** The run itself: the lines that everything else begins with. */
export function setup(trace: TraceProps, request: RunRequest | null): string {
  const model = `model = hs.load(${literal(trace.model)})`;
  return `${imports(request)}\n\n${model}\ntrace = ${run(trace, request)}\n`;
}

export function imports(...requests: (RunRequest | null)[]): string {
  const isPreset = requests.some((one) => one?.media && isShipped(one.media));
  return `import headscope as hs${isPreset ? "\nfrom headscope.server.media import preset" : ""}`;
}

/** Whether the code names a file whose folder the page does not know. */
export function namesFile(trace: TraceProps, request: RunRequest | null): boolean {
  return hasMedia(trace, request) && !(request?.media && isShipped(request.media));
}

function hasMedia(trace: TraceProps, request: RunRequest | null): boolean {
  if (request?.chat) return false;
  return (request?.text ?? trace.text) === null || !!request?.media || trace.input_kind === "multimodal";
}

/** The picture or the sound: one that comes with Headscope, or a file by its name as far as that is known here. */
function mediaOf(trace: TraceProps, request: RunRequest | null): string {
  const isSound = trace.stacks.some((one) => one.looks === "sound");
  const name = request?.media ? mediaName(request.media) : "path/to/file";
  if (request?.media && isShipped(request.media))
    return isSound ? `audio=preset(${literal(name)}).sound()` : `image=preset(${literal(name)}).picture()`;
  return `${isSound ? "audio" : "image"}=${literal(name)}`;
}

/** Where the answer that was chosen came from. */
function explained(trace: TraceProps, selection: Selection): string {
  const one = parseRelevance(selection.relevance);
  if (!one) return "";
  const given = [`target=${one.other === null ? one.target : `(${one.target}, ${one.other})`}`];
  if (one.position >= 0) given.push(`position=${one.position}`);
  if (one.rule !== "cp") given.push(`rule=${literal(one.rule)}`);
  if (trace.edits.length) given.push(`interventions=[${trace.edits.join(", ")}]`);
  return [
    `found = hs.relevance(model, trace.inputs, ${given.join(", ")})`,
    "found.token_relevance()  # [token]; found.heads, found.bias_share",
  ].join("\n");
}

export function run(trace: TraceProps, request: RunRequest | null): string {
  const given: string[] = [];
  if (request?.chat) {
    const turns = request.chat.map((one) => `{"role": ${literal(one.role)}, "content": ${literal(one.content)}}`);
    given.push(`[${turns.join(", ")}]`);
  } else {
    const text = request?.text ?? trace.text;
    if (text !== null) given.push(literal(text));
    if (hasMedia(trace, request)) given.push(mediaOf(trace, request));
  }
  if (trace.edits.length) given.push(`interventions=[${trace.edits.join(", ")}]`);
  const pair = request ? request.pair : trace.pair;
  const target = request ? request.target : trace.target;
  if (pair !== null) given.push(`pair=${literal(pair)}`);
  if (target !== null) given.push(`target=${literal(target)}`);
  if (request?.truncate) given.push("truncate=True");
  if (request?.generate) return `model.generate(${given.join(", ")}, max_new_tokens=${request.generate}).trace`;
  return `model.run(${given.join(", ")})`;
}

/** The weights themselves. */
function numbers(trace: TraceProps, selection: Selection): string[] {
  const steps = reading(trace, selection);
  if (steps === null) return [];
  const heads = selection.shown.map((head) => headName(selection.site, head));
  const from = `trace${steps}.${selection.what}`;
  const first = heads[0] ?? "";
  if (heads.length === 1) return [`weights = ${from}(${literal(first)})  # [query, key]`];
  if (selection.average) return [`weights = ${from}(${literal(heads)})  # their mean [query, key]`];
  return [`weights = {head: ${from}(head) for head in ${literal(heads)}}  # [query, key] each`];
}

/** Words, sentences and tokens left out, in the order the page does it: tokens go first. Null where stacks lose different
 *  positions: `without` takes the same ones out of each. */
function reading(trace: TraceProps, { by, hide, off }: Selection): string | null {
  const gone = trace.stacks.map((stack) => new Set([...hiddenPositions(stack, hide), ...offPositions(stack, off)]));
  const all = [...new Set(gone.flatMap((one) => [...one]))].sort((one, other) => one - other);
  const isSame = trace.stacks.every(({ texts }, index) =>
    all.every((one) => one >= texts.length || gone[index]?.has(one)),
  );
  if (!isSame) return null;
  return (all.length ? `.without(${literal(all)})` : "") + (by === "tokens" ? "" : `.${by}()`);
}

function headView(trace: TraceProps, selection: Selection): string {
  const heads = selection.shown.map((head) => headName(selection.site, head));
  const given = [literal(heads.length === 1 ? (heads[0] ?? "") : heads)];
  const put = (name: string, value: Value, usual: Value) => {
    if (literal(value) !== literal(usual)) given.push(`${name}=${literal(value)}`);
  };
  if (selection.average) given.push("average=True");
  put("form", selection.form, DEFAULT.form);
  put("axis", selection.axis, DEFAULT.axis);
  put("what", selection.what, DEFAULT.what);
  put("by", selection.by, DEFAULT.by);
  put("hide", selection.hide, []);
  put("off", trace.stacks.length > 1 ? selection.off : selection.off.map((one) => Number(one.split(":")[1])), []);
  if (selection.filter !== "all") given.push(`${selection.filter}=${selection[selection.filter]}`);
  put("pair", selection.pair, DEFAULT.pair);
  put("direction", selection.direction, DEFAULT.direction);
  if (selection.arrows) given.push("arrows=True");
  if (selection.rollout) given.push("rollout=True");
  if (selection.step !== null) given.push(`step=${selection.step}`);
  if (selection.token) {
    const { side, index } = selection.token;
    given.push(side === "query" ? `token=${index}` : `token=("key", ${index})`);
  }
  return `hs.head_view(trace, ${given.join(", ")})`;
}

function neuronView(trace: TraceProps, selection: Selection): string {
  const given = [literal(headName(selection.site, selection.head))];
  if (selection.token) given.push(`token=${queryOf(selection, siteOf(trace, selection.site))}`);
  if (selection.order !== "index") given.push(`sort=${selection.against ?? literal(selection.order)}`);
  if (selection.every) given.push(`every=${literal(selection.every)}`);
  if (selection.fold.length) given.push(`fold=${literal(selection.fold)}`);
  return `hs.neuron_view(trace, ${given.join(", ")})`;
}

function activationsView(trace: TraceProps, selection: Selection): string {
  const given = ["trace", "model"];
  const stack = trace.layers.find((one) => one.site === selection.site)?.stack;
  const usual = trace.stacks.some((one) => one.name === "decoder") ? "decoder" : "main";
  const how = [
    ...(trace.edits.length && !trace.difference ? [`interventions=[${trace.edits.join(", ")}]`] : []),
    ...(stack && stack !== usual ? [`stack=${literal(stack)}`] : []),
  ];
  if (how.length) given[1] = `model.activations(trace, ${how.join(", ")})`;
  const token = stack ? positionOf(stackOf(trace, stack), selection) : null;
  if (token !== null) given.push(`token=${token}`);
  if (selection.stream !== DEFAULT.stream) given.push(`stream=${literal(selection.stream)}`);
  if (trace.difference && selection.whose !== DEFAULT.whose) given.push(`whose=${literal(selection.whose)}`);
  if (selection.step !== null) given.push(`step=${selection.step}`);
  return `hs.activations_view(${given.join(", ")})`;
}

function modelView(_: TraceProps, selection: Selection, elsewhere: Elsewhere = {}): string {
  const given = [literal(headName(selection.site, selection.head))];
  // A measure that is not the run's own is a variable, or cannot be said.
  const told = (name: string) => (name in elsewhere ? (elsewhere[name]?.name ?? "") : name && literal(name));
  const [sort, colour] = [told(selection.sort), told(selection.colour)];
  if (selection.thumbnails !== DEFAULT.thumbnails) given.push(`thumbnails=${literal(selection.thumbnails)}`);
  if (sort) given.push(`sort=${sort}`);
  if (colour) given.push(`colour=${colour}`);
  if (colour && selection.least) given.push(`least=${selection.least}`);
  return `hs.model_view(trace, ${given.join(", ")})`;
}
