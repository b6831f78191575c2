/** Ask for a layer, in the way its length needs: short ones come whole and are read here, long ones are read by the server. */

import type { LayerProps, SiteProps, TraceProps } from "../contract";
import type { Selection } from "../selection";
import type { Source } from "../source";
import { stackOf } from "../views/view";
import { Layer } from "./layer";
import { hiddenPositions, offPositions, readingOf } from "./reading";

export interface Loaded {
  layer: Layer;
  /** What could not be done as asked, in words. */
  notes: string[];
  /** How the source was asked to read: the tail of `layer`, `row` and `window` keys, empty for tokens as they are. */
  how: string;
}

const PLAIN = { by: "tokens", hide: [], off: [] } as const satisfies Pick<Selection, "by" | "hide" | "off">;

/** The part that holds a layer as it is: contributions are made from weights. */
export function layerKey(site: string, what: Selection["what"]): string {
  return `layer/${site}?what=${what === "scores" ? "scores" : "pattern"}`;
}

/** Ask for the layers beside this one, which are likely to be wanted next. */
export function askAhead(source: Source, trace: TraceProps, selection: Selection, signal: AbortSignal): void {
  if (!source.isLive) return;
  const place = trace.layers.findIndex((one) => one.site === selection.site);
  for (const beside of [trace.layers[place + 1], trace.layers[place - 1]]) {
    // Whatever goes wrong is said when somebody looks at that layer.
    if (beside) source.part(layerKey(beside.site, selection.what), signal).catch(() => undefined);
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
  const how = { by: what === "scores" ? "tokens" : selection.by, hide: selection.hide, off: selection.off } as const;
  const queryStack = stackOf(trace, site.stack);
  const keyStack = stackOf(trace, site.key_stack);
  const queries = readingOf(queryStack, site.n_queries, how);
  const keys = readingOf(keyStack, site.n_keys, how);
  const part = await source.part<LayerProps>(layerKey(site.site, what), signal);
  const isPlain = queries.isPlain && keys.isPlain;
  const tail = readingTail(trace, site, how);
  if (part.props.form === "dense" || isPlain) {
    return { layer: new Layer(site, part, selection.what, queries, keys, false), notes: [], how: isPlain ? "" : tail };
  }
  if (!source.isLive) {
    const notes = ["words, sentences and hiding need the workbench for inputs this long: tokens are shown as they are"];
    const plain = [readingOf(queryStack, site.n_queries, PLAIN), readingOf(keyStack, site.n_keys, PLAIN)] as const;
    return { layer: new Layer(site, part, selection.what, ...plain, false), notes, how: "" };
  }
  const read = await source.part<LayerProps>(`layer/${site.site}?what=${selection.what}${tail}`, signal);
  return { layer: new Layer(site, read, selection.what, queries, keys, true), notes: [], how: tail };
}

/** `&by=words&hide=0,7`, as the server reads it. */
function readingTail(trace: TraceProps, site: SiteProps, how: Pick<Selection, "by" | "hide" | "off">): string {
  const positions: string[] = [];
  for (const name of new Set([site.stack, site.key_stack])) {
    const stack = stackOf(trace, name);
    const gone = new Set([...hiddenPositions(stack, how.hide), ...offPositions(stack, how.off)]);
    const prefix = trace.stacks.length > 1 ? `${name}:` : "";
    positions.push(...[...gone].sort((a, b) => a - b).map((position) => `${prefix}${position}`));
  }
  const by = how.by === "tokens" ? "" : `&by=${how.by}`;
  return by + (positions.length ? `&hide=${positions.join()}` : "");
}
