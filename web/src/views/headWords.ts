/** What the head view shows, in words. */

import type { Region } from "../data/pooled";
import type { Token } from "./columns";
import type { Ends } from "./ends";
import type { Scene } from "./scene";

/** Which heads a matrix is of, and which part of it is in view. */
export function matrixLine({ drawnHeads, layer }: Pick<Scene, "drawnHeads" | "layer">, region: Region | null): string {
  const heads = drawnHeads.length === 1 ? (drawnHeads[0]?.name ?? "") : `${drawnHeads.length} heads`;
  const whole = `${count(layer.queries.texts.length)} × ${count(layer.keys.texts.length)}`;
  const part = region && `queries ${spanned(region.rows)}, keys ${spanned(region.columns)} of ${whole}`;
  return `${heads}, ${part ?? whole}`;
}

/** What a dot stands for, where it is several weights a side. */
export function pooledNote({ isDifference }: Pick<Scene, "isDifference">, pooled: number): string[] {
  const noun = isDifference ? "differences" : "weights";
  return pooled > 1 ? [`each dot is the strongest of about ${pooled} × ${pooled} ${noun}`] : [];
}

/** How many lines there are and could be; of a pinned token, its own. */
export function linesLine(scene: Pick<Scene, "layer" | "drawn" | "total">, pinned: Token | null, ends: Ends[]): string {
  if (!pinned) return `${count(scene.drawn)} of ${count(scene.total())} lines drawn`;
  let drawn = 0;
  for (const end of ends) for (const flag of end.isDrawn) drawn += flag;
  const reading = pinned.side === "query" ? scene.layer.queries : scene.layer.keys;
  const verb = pinned.side === "query" ? "from" : "to";
  return `${count(drawn)} of ${count(scene.total(pinned))} lines drawn, ${verb} ${named(reading.texts, pinned.index)}`;
}

/** A token by its text, with its position where the text has it more than once. */
function named(texts: string[], index: number): string {
  const text = texts[index] ?? "";
  return texts.indexOf(text) === texts.lastIndexOf(text) ? text : `${text} (${index})`;
}

function spanned([first, last]: [number, number]): string {
  return `${count(first)}–${count(last - 1)}`;
}

function count(value: number): string {
  return value.toLocaleString("en");
}
