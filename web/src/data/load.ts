/** Ask for a layer, in the way its length needs: short ones come whole and are read here, long ones are read by the server. */

import type { LayerProps, SiteProps, TraceProps } from "../contract";
import type { Selection } from "../selection";
import type { Source } from "../source";
import { Layer } from "./layer";
import { hiddenPositions, offPositions, readingOf } from "./reading";
import { untilOf, writtenFrom } from "./steps";
import { stackOf } from "./trace";

export interface Loaded {
  layer: Layer;
  /** What could not be done as asked, in words. */
  notes: string[];
  /** How tokens are read here, which is not as asked where a saved page cannot. */
  reading: How;
  /** How the source was asked to read: the tail of `layer`, `row` and `window` keys, empty for tokens as they are. */
  how: string;
}

type How = Pick<Selection, "by" | "hide" | "off">;

const PLAIN: How = { by: "tokens", hide: [], off: [] };

/** The part that holds a layer as it is: contributions are made from weights. */
export function layerKey(site: string, what: Selection["what"]): string {
  return `layer/${site}?what=${what === "scores" ? "scores" : "pattern"}`;
}

/** Ask for what is likely to be wanted next: the layer further in the direction last gone; at the start those on both
 *  sides, one after the other, so that whatever else is asked for does not wait. */
export async function askAhead(
  source: Source,
  trace: TraceProps,
  selection: Selection,
  before: string | null,
  signal: AbortSignal,
): Promise<void> {
  if (!source.isLive) return;
  const place = trace.layers.findIndex((layer) => layer.site === selection.site);
  const [next, previous] = [trace.layers[place + 1], trace.layers[place - 1]];
  const wanted = before === null ? [next, previous] : [next?.site === before ? previous : next];
  for (const layer of wanted) {
    try {
      if (layer) await source.part(layerKey(layer.site, selection.what), signal);
    } catch {
      return; // said when somebody looks at that layer
    }
  }
}

export async function loadLayer(
  source: Source,
  trace: TraceProps,
  site: SiteProps,
  selection: Selection,
  signal: AbortSignal,
): Promise<Loaded> {
  const what = selection.what === "scores" ? "scores" : "pattern";
  const how = {
    by: what === "scores" ? "tokens" : selection.by,
    hide: selection.hide,
    off: selection.off,
  } satisfies How;
  const queryStack = stackOf(trace, site.stack);
  const keyStack = stackOf(trace, site.key_stack);
  const stepped = (stack: string) => ({
    ...how,
    until: untilOf(trace, selection.step, stack),
    written: writtenFrom(trace, stack),
  });
  const queries = readingOf(queryStack, site.n_queries, stepped(site.stack), site);
  const keys = readingOf(keyStack, site.n_keys, stepped(site.key_stack), site);
  const part = await source.part<LayerProps>(layerKey(site.site, what), signal);
  const isPlain = queries.isPlain && keys.isPlain;
  const tail = readingTail(trace, site, how, selection.step);
  const isDifference = trace.difference !== null;
  // The rows of two runs are brought back to one before they are subtracted: that cannot be done afterwards.
  const isLate = isDifference && (queries.isPartial || keys.isPartial);
  if ((part.props.form === "dense" && !isLate) || isPlain) {
    const layer = new Layer(site, part, selection.what, queries, keys, false, isDifference);
    return { layer, notes: [], reading: how, how: isPlain ? "" : tail };
  }
  if (!source.isLive) {
    const notes = [
      isDifference
        ? "hiding tokens of a difference needs the workbench: tokens are shown as they are"
        : "words, sentences and hiding need the workbench for inputs this long: tokens are shown as they are",
    ];
    const plain = [
      readingOf(queryStack, site.n_queries, PLAIN, site),
      readingOf(keyStack, site.n_keys, PLAIN, site),
    ] as const;
    const layer = new Layer(site, part, selection.what, ...plain, false, isDifference);
    return { layer, notes, reading: PLAIN, how: "" };
  }
  const read = await source.part<LayerProps>(`layer/${site.site}?what=${selection.what}${tail}`, signal);
  const layer = new Layer(site, read, selection.what, queries, keys, true, isDifference);
  return { layer, notes: [], reading: how, how: tail };
}

/** `&by=words&hide=0,7`, as the server reads it. */
function readingTail(trace: TraceProps, site: SiteProps, how: How, step: number | null): string {
  const positions: string[] = [];
  for (const name of new Set([site.stack, site.key_stack])) {
    const stack = stackOf(trace, name);
    const gone = new Set([...hiddenPositions(stack, how.hide), ...offPositions(stack, how.off)]);
    const until = untilOf(trace, step, name);
    for (let later = (until ?? stack.texts.length) + 1; later < stack.texts.length; later++) gone.add(later);
    const prefix = trace.stacks.length > 1 ? `${name}:` : "";
    positions.push(...[...gone].sort((a, b) => a - b).map((position) => `${prefix}${position}`));
  }
  const by = how.by === "tokens" ? "" : `&by=${how.by}`;
  return by + (positions.length ? `&hide=${positions.join()}` : "");
}
