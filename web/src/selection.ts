/** The one selection that all views share. It is in the URL and in saved files; the back button undoes it. */

import {
  DEFAULT_SELECTION as DEFAULT,
  SELECTION_CHOICES,
  type Selection,
  type SiteProps,
  type Spot,
  type TraceProps,
} from "./contract";
import { fitsForm, mediumOf } from "./data/media";
import { hasBoxes } from "./data/patches";
import { parseRelevance } from "./data/relevance";
import { clampedStep } from "./data/steps";

export { DEFAULT_SELECTION as DEFAULT, type Selection } from "./contract";
export type Scale = Selection["scale"];
export type Side = Spot["side"];

/** A selection from anywhere (a link, a saved file): what is not understood is as by default. */
export function cleaned(raw: Record<string, unknown>): Selection {
  const selection: Record<string, unknown> = { ...DEFAULT };
  for (const [name, choices] of Object.entries(SELECTION_CHOICES)) {
    if ((choices as readonly unknown[]).includes(raw[name])) selection[name] = raw[name];
  }
  for (const name of ["site", "sort", "colour", "beside", "find"])
    if (typeof raw[name] === "string") selection[name] = raw[name];
  for (const name of ["average", "arrows", "rollout"]) if (typeof raw[name] === "boolean") selection[name] = raw[name];
  selection.head = whole(raw.head, 0, Number.MAX_SAFE_INTEGER) ?? DEFAULT.head;
  selection.top = whole(raw.top, 1, 64) ?? DEFAULT.top;
  selection.threshold = share(raw.threshold) ?? DEFAULT.threshold;
  selection.mass = share(raw.mass) ?? DEFAULT.mass;
  selection.least = share(raw.least) ?? DEFAULT.least;
  selection.step = whole(raw.step, 0, 1e9);
  selection.heads = list(raw.heads).filter((head) => whole(head, 0, Number.MAX_SAFE_INTEGER) !== null);
  selection.hide = list(raw.hide).filter((group) => (SELECTION_CHOICES.hide as readonly unknown[]).includes(group));
  selection.off = list(raw.off).filter((name) => typeof name === "string");
  selection.fold = SELECTION_CHOICES.fold.filter((column) => list(raw.fold).includes(column));
  selection.against = whole(raw.against, 0, 1e9);
  if (typeof raw.relevance === "string" && parseRelevance(raw.relevance)) selection.relevance = raw.relevance;
  const token = raw.token as Selection["token"] | undefined;
  if (token && (token.side === "query" || token.side === "key") && whole(token.index, 0, 1e9) !== null) {
    selection.token = { side: token.side, index: token.index };
  }
  return selection as unknown as Selection;
}

/** The selection as it can be shown for this trace: places that are not there fall back to the nearest that is. */
export function fitted(wanted: Selection, trace: TraceProps): Selection {
  const selection = wanted.scale === "neuron" ? { ...wanted, ...PLAIN } : wanted;
  const site = nearest(selection.site, trace);
  if (!site) return { ...selection, site: "", head: 0, heads: [], token: null, off: [], relevance: "" };
  const heads = [...new Set(selection.heads)].filter((index) => index < site.n_heads).sort((a, b) => a - b);
  const nearby = Math.min(selection.head, site.n_heads - 1);
  const head = heads.includes(nearby) ? nearby : (heads[0] ?? nearby);
  const off = [...new Set(selection.off)].filter((name) => isToken(name, trace));
  const isRead = selection.by !== "tokens" || selection.hide.length > 0 || off.length > 0;
  const isAllOff = trace.stacks.some((stack) => countOff(off, stack.name) >= stack.texts.length);
  const lacks =
    selection.what === "scores" ? site.no_scores || isRead : selection.what === "contribution" && site.no_contributions;
  const hasToken =
    selection.token && selection.token.index < (selection.token.side === "query" ? site.n_queries : site.n_keys);
  return {
    ...selection,
    site: site.site,
    head,
    heads: heads.length ? heads : [head],
    off: isAllOff ? [] : off,
    what: lacks ? "pattern" : selection.what,
    pair: hasPair(trace, site) ? selection.pair : "all",
    token: hasToken ? selection.token : null,
    least: selection.colour ? selection.least : 0,
    ...ordered(selection, site),
    step: clampedStep(trace, selection.step),
    form: fitsForm(selection.form, trace, site) ? selection.form : "auto",
    rollout: selection.rollout && site.kind === "self" && mediumOf(trace, site) === "image" && !trace.difference,
  };
}

/** Neurons belong to the model's own tokens: all of them, one by one. */
const PLAIN = { by: "tokens", hide: [], off: [] } satisfies Partial<Selection>;

/** An order of neurons that makes sense of what is shown. */
function ordered({ order, against, every }: Selection, site: SiteProps): Pick<Selection, "order" | "against"> {
  const key = against !== null && against < site.n_keys ? against : null;
  const fits =
    order === "spread" ? every !== null : order === "index" || (every === null && (order !== "token" || key !== null));
  return { order: fits ? order : "index", against: fits && order === "token" ? key : null };
}

/** The selection after a change, with what follows from it: heads of the new layer, tokens that are read otherwise. */
export function changed(selection: Selection, change: Partial<Selection>, trace: TraceProps): Selection {
  const next = { ...selection, ...change };
  if (next.scale === "neuron") Object.assign(next, PLAIN);
  const before = trace.layers.find((layer) => layer.site === selection.site);
  const after = trace.layers.find((layer) => layer.site === next.site);
  const isMoved = next.site !== selection.site || next.head !== selection.head;
  if (isMoved && !change.heads) {
    const isAll = before && after && selection.heads.length === before.n_heads && before.n_heads > 1;
    const isSolo = selection.heads.length <= 1;
    next.heads = isAll
      ? Array.from({ length: after.n_heads }, (_, head) => head)
      : isSolo
        ? [next.head]
        : [...selection.heads, next.head];
  }
  const isReread =
    next.by !== selection.by || next.hide.join() !== selection.hide.join() || next.off.join() !== selection.off.join();
  const isElsewhere = before?.stack !== after?.stack || before?.key_stack !== after?.key_stack;
  if ((isReread || isElsewhere) && !("token" in change)) next.token = null;
  return fitted(next, trace);
}

/** The selection for another run: places and options stay where they fit, single tokens do not. */
export function carried(selection: Selection, trace: TraceProps): Selection {
  const isThere = trace.layers.some((layer) => layer.site === selection.site);
  // The mean of all heads of a layer says nothing about those of another model.
  const heads = selection.average && !isThere ? { heads: [selection.head], average: false } : {};
  return fitted({ ...selection, ...heads, off: [], token: null, step: null, find: "", relevance: "" }, trace);
}

/** The selection of a run that is opened without a place: where one text is written from another, in the head view, on
 *  what the last layer but one of the second looks at in the first, as the mean of its heads: of all layers that shows
 *  most clearly which words belong together (Garg et al., 2019). */
export function opened(selection: Selection, trace: TraceProps): Selection {
  const onPicture = ofLastWord(selection, trace);
  if (onPicture) return onPicture;
  const areTexts = trace.stacks.every((stack) => stack.kind === "text");
  const isPlaced = trace.layers.some((layer) => layer.site === selection.site);
  const crosses = trace.layers.filter((layer) => layer.kind === "cross");
  const cross = crosses.at(-2) ?? crosses.at(-1);
  if (!cross || isPlaced || !areTexts || selection.scale !== "model") return selection;
  const heads = Array.from({ length: cross.n_heads }, (_, head) => head);
  return { ...selection, scale: "head", site: cross.site, head: 0, heads, average: true };
}

/** Of a picture within a text: what its last word looks at, in the layer two thirds of the way up, as the mean of its heads;
 *  null for other runs, and where a place is named. */
function ofLastWord(selection: Selection, trace: TraceProps): Selection | null {
  const isPlaced = trace.layers.some((layer) => layer.site === selection.site);
  if (isPlaced || selection.scale !== "model") return null;
  const layers = trace.layers.filter((layer) => {
    const [keys, queries] = [layer.key_stack, layer.stack].map((name) =>
      trace.stacks.find((stack) => stack.name === name),
    );
    return keys && queries?.kind === "text" && hasBoxes(keys, layer);
  });
  const site = layers[Math.floor((2 * layers.length) / 3)];
  if (!site) return null;
  const heads = Array.from({ length: site.n_heads }, (_, head) => head);
  const token = { side: "query" as const, index: site.n_queries - 1 };
  return { ...selection, scale: "head", site: site.site, head: 0, heads, average: true, token };
}

/** Whether the two texts of a pair are both queries and keys here. */
export function hasPair(trace: TraceProps, site: SiteProps): boolean {
  const stack = trace.stacks.find((candidate) => candidate.name === site.stack);
  return site.kind === "self" && !!stack && stack.segments.includes("A") && stack.segments.includes("B");
}

function nearest(name: string, trace: TraceProps): SiteProps | undefined {
  const layer = /L(\d+)$/.exec(name)?.[1];
  return (
    trace.layers.find((layer) => layer.site === name) ??
    trace.layers.find((candidate) => String(candidate.layer) === layer) ??
    trace.layers[0]
  );
}

function isToken(name: string, trace: TraceProps): boolean {
  const [stack, position] = name.split(":");
  const tokens = trace.stacks.find((candidate) => candidate.name === stack);
  return !!tokens && /^\d+$/.test(position ?? "") && Number(position) < tokens.texts.length;
}

function countOff(off: string[], stack: string): number {
  return off.filter((name) => name.startsWith(`${stack}:`)).length;
}

function whole(value: unknown, low: number, high: number): number | null {
  return Number.isInteger(value) && (value as number) >= low && (value as number) <= high ? (value as number) : null;
}

function share(value: unknown): number | null {
  return typeof value === "number" && value >= 0 && value <= 1 ? value : null;
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}
