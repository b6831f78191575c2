/** Where the keys lead in the head view: the next head, layer or token, as a change of the selection; null at an end. */

import type { SiteProps } from "../contract";
import type { Region } from "../data/pooled";
import type { Selection } from "../selection";
import type { Token } from "./columns";
import type { Spot as Cell } from "./matrix";
import type { Scene } from "./scene";

type Step = 1 | -1;

/** The next head of the layer; past its end the first of the next layer, and round again. */
export function nextHead(layers: SiteProps[], { site, head }: Selection, step: Step): Partial<Selection> | null {
  const at = layers.findIndex((layer) => layer.site === site);
  const here = layers[at];
  if (!here) return null;
  const next = head + step;
  if (next >= 0 && next < here.n_heads) return { head: next, heads: [next] };
  const there = layers[(at + step + layers.length) % layers.length] as SiteProps;
  const first = step > 0 ? 0 : there.n_heads - 1;
  return { site: there.site, head: first, heads: [first] };
}

export function nextLayer(layers: SiteProps[], { site }: Selection, step: Step): Partial<Selection> | null {
  const there = layers[layers.findIndex((layer) => layer.site === site) + step];
  return there ? { site: there.site } : null;
}

/** The next token on the pinned one's side that is neither switched off nor skipped; the first or last query when none is
 *  pinned. */
export function nextToken(
  { layer, selection }: Scene,
  step: Step,
  isSkipped: (index: number) => boolean = () => false,
): Partial<Selection> | null {
  const side = selection.token?.side ?? "query";
  const { isOff } = side === "query" ? layer.queries : layer.keys;
  let index = selection.token ? selection.token.index + step : step > 0 ? 0 : isOff.length - 1;
  while (index >= 0 && index < isOff.length && (isOff[index] || isSkipped(index))) index += step;
  return index >= 0 && index < isOff.length ? { token: { side, index } } : null;
}

const ARROWS: Record<string, [down: number, across: number]> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
};

/** The cell beside one, among those in view; the first of them where there is none yet. Null for any other key. */
export function nextCell(cell: Cell | null, key: string, seen: Region): Cell | null {
  const step = ARROWS[key];
  if (!step) return null;
  const within = (at: number, [first, last]: [number, number]) => Math.max(first, Math.min(last - 1, at));
  if (!cell) return { panel: 0, query: seen.rows[0], key: seen.columns[0] };
  return { ...cell, query: within(cell.query + step[0], seen.rows), key: within(cell.key + step[1], seen.columns) };
}

/** What is switched off after switching a token (all its pieces) off or on; null where nothing would be left. */
export function switched({ layer }: Scene, { side, index }: Token, off: string[]): string[] | null {
  const { members, stack } = side === "query" ? layer.queries : layer.keys;
  const names = (members[index] ?? []).map((position) => `${stack}:${position}`);
  const isOff = names.every((name) => off.includes(name));
  const next = isOff ? off.filter((name) => !names.includes(name)) : [...new Set([...off, ...names])];
  return members.flat().some((position) => !next.includes(`${stack}:${position}`)) ? next : null;
}
