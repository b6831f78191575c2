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
  Array.isArray(value) ? `[${value.map((element) => JSON.stringify(element)).join(", ")}]` : JSON.stringify(value);

/** A measure that is not the run's own: lines that give it, and the variable that it is then in. */
export interface Given {
  code: string;
  name: string;
}

/** Measures from elsewhere, by their names; null where no few lines give them: a use case, a report. */
export type Elsewhere = Record<string, Given | null>;

/** A run has no atlas: at that scale its code is that of the view below. */
const VIEWS = { atlas: modelView, model: modelView, head: headView, neuron: neuronView, activations: activationsView };

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
  const isPreset = requests.some((candidate) => candidate?.media && isShipped(candidate.media));
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
  const isSound = trace.stacks.some((stack) => stack.looks === "sound");
  const name = request?.media ? mediaName(request.media) : "path/to/file";
  if (request?.media && isShipped(request.media))
    return isSound ? `audio=preset(${literal(name)}).sound()` : `image=preset(${literal(name)}).picture()`;
  return `${isSound ? "audio" : "image"}=${literal(name)}`;
}

/** Where the answer that was chosen came from. */
function explained(trace: TraceProps, selection: Selection): string {
  const question = parseRelevance(selection.relevance);
  if (!question) return "";
  const options = [`target=${question.other === null ? question.target : `(${question.target}, ${question.other})`}`];
  if (question.position >= 0) options.push(`position=${question.position}`);
  if (question.rule !== "cp") options.push(`rule=${literal(question.rule)}`);
  if (trace.edits.length) options.push(`interventions=[${trace.edits.join(", ")}]`);
  return [
    `found = hs.relevance(model, trace.inputs, ${options.join(", ")})`,
    "found.token_relevance()  # [token]; found.heads, found.bias_share",
  ].join("\n");
}

export function run(trace: TraceProps, request: RunRequest | null): string {
  const options: string[] = [];
  if (request?.chat) {
    const turns = request.chat.map((turn) => `{"role": ${literal(turn.role)}, "content": ${literal(turn.content)}}`);
    options.push(`[${turns.join(", ")}]`);
  } else {
    const text = request?.text ?? trace.text;
    if (text !== null) options.push(literal(text));
    if (hasMedia(trace, request)) options.push(mediaOf(trace, request));
  }
  if (trace.edits.length) options.push(`interventions=[${trace.edits.join(", ")}]`);
  const pair = request ? request.pair : trace.pair;
  const target = request ? request.target : trace.target;
  if (pair !== null) options.push(`pair=${literal(pair)}`);
  if (target !== null) options.push(`target=${literal(target)}`);
  if (request?.language) options.push(`language=${literal(request.language)}`);
  if (request?.task) options.push(`task=${literal(request.task)}`);
  if (request?.truncate) options.push("truncate=True");
  if (request?.generate) return `model.generate(${options.join(", ")}, max_new_tokens=${request.generate}).trace`;
  return `model.run(${options.join(", ")})`;
}

/** The weights themselves. */
function numbers(trace: TraceProps, selection: Selection): string[] {
  const steps = reading(trace, selection);
  if (steps === null) return [];
  const heads = selection.heads.map((head) => headName(selection.site, head));
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
  const all = [...new Set(gone.flatMap((positions) => [...positions]))].sort((a, b) => a - b);
  const isSame = trace.stacks.every(({ texts }, index) =>
    all.every((position) => position >= texts.length || gone[index]?.has(position)),
  );
  if (!isSame) return null;
  return (all.length ? `.without(${literal(all)})` : "") + (by === "tokens" ? "" : `.${by}()`);
}

function headView(trace: TraceProps, selection: Selection): string {
  const heads = selection.heads.map((head) => headName(selection.site, head));
  const options = [literal(heads.length === 1 ? (heads[0] ?? "") : heads)];
  const put = (name: string, value: Value, usual: Value) => {
    if (literal(value) !== literal(usual)) options.push(`${name}=${literal(value)}`);
  };
  if (selection.average) options.push("average=True");
  put("form", selection.form, DEFAULT.form);
  put("axis", selection.axis, DEFAULT.axis);
  put("what", selection.what, DEFAULT.what);
  put("by", selection.by, DEFAULT.by);
  put("hide", selection.hide, []);
  put("off", trace.stacks.length > 1 ? selection.off : selection.off.map((name) => Number(name.split(":")[1])), []);
  if (selection.filter !== "all") options.push(`${selection.filter}=${selection[selection.filter]}`);
  put("pair", selection.pair, DEFAULT.pair);
  put("direction", selection.direction, DEFAULT.direction);
  if (selection.arrows) options.push("arrows=True");
  if (selection.rollout) options.push("rollout=True");
  if (selection.step !== null) options.push(`step=${selection.step}`);
  if (selection.token) {
    const { side, index } = selection.token;
    options.push(side === "query" ? `token=${index}` : `token=("key", ${index})`);
  }
  return `hs.head_view(trace, ${options.join(", ")})`;
}

function neuronView(trace: TraceProps, selection: Selection): string {
  const options = [literal(headName(selection.site, selection.head))];
  if (selection.token) options.push(`token=${queryOf(selection, siteOf(trace, selection.site))}`);
  if (selection.order !== "index") options.push(`sort=${selection.against ?? literal(selection.order)}`);
  if (selection.every) options.push(`every=${literal(selection.every)}`);
  if (selection.fold.length) options.push(`fold=${literal(selection.fold)}`);
  return `hs.neuron_view(trace, ${options.join(", ")})`;
}

function activationsView(trace: TraceProps, selection: Selection): string {
  const options = ["trace", "model"];
  const stack = trace.layers.find((layer) => layer.site === selection.site)?.stack;
  const usual = trace.stacks.some((candidate) => candidate.name === "decoder") ? "decoder" : "main";
  const how = [
    ...(trace.edits.length && !trace.difference ? [`interventions=[${trace.edits.join(", ")}]`] : []),
    ...(stack && stack !== usual ? [`stack=${literal(stack)}`] : []),
  ];
  if (how.length) options[1] = `model.activations(trace, ${how.join(", ")})`;
  const token = stack ? positionOf(stackOf(trace, stack), selection) : null;
  if (token !== null) options.push(`token=${token}`);
  if (selection.stream !== DEFAULT.stream) options.push(`stream=${literal(selection.stream)}`);
  if (trace.difference && selection.whose !== DEFAULT.whose) options.push(`whose=${literal(selection.whose)}`);
  if (selection.step !== null) options.push(`step=${selection.step}`);
  return `hs.activations_view(${options.join(", ")})`;
}

function modelView(_: TraceProps, selection: Selection, elsewhere: Elsewhere = {}): string {
  const options = [literal(headName(selection.site, selection.head))];
  // A measure that is not the run's own is a variable, or cannot be said.
  const argument = (name: string) => (name in elsewhere ? (elsewhere[name]?.name ?? "") : name && literal(name));
  const [sort, colour] = [argument(selection.sort), argument(selection.colour)];
  if (selection.thumbnails !== DEFAULT.thumbnails) options.push(`thumbnails=${literal(selection.thumbnails)}`);
  if (sort) options.push(`sort=${sort}`);
  if (colour) options.push(`colour=${colour}`);
  if (colour && selection.least) options.push(`least=${selection.least}`);
  return `hs.model_view(trace, ${options.join(", ")})`;
}
