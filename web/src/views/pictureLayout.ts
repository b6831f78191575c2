/** Where pictures, their patches and the tokens that are none are, in the head view over a picture. */

import type { Box } from "../marks/cells";

export const MARGIN = 16;
const GAP = 16;
export const TITLE = 22;
export const CHIP = 22;

/** Chips of these widths in lines, from the top; `bottom` is where the pictures may begin. */
export function layChips(widths: number[], room: number): { boxes: Box[]; bottom: number } {
  let [x, y] = [MARGIN, 10];
  const boxes = widths.map((width) => {
    if (x + width > room - MARGIN && x > MARGIN) [x, y] = [MARGIN, y + CHIP + 4];
    const box = { x, y, width, height: CHIP };
    x += width + 6;
    return box;
  });
  return { boxes, bottom: widths.length ? y + CHIP + 8 : 10 };
}

interface Room {
  width: number;
  height: number;
  /** How much the chips took. */
  top: number;
  count: number;
  /** The height of a picture for a width of 1. */
  shape: number;
}

/** As many pictures abreast as lets them be the largest. */
export function layPictures({ width, height, top, count, shape }: Room): Box[] {
  let best = { abreast: 1, wide: 0 };
  for (let abreast = 1; abreast <= count; abreast++) {
    const down = Math.ceil(count / abreast);
    const room = (width - 2 * MARGIN - (abreast - 1) * GAP) / abreast;
    const tall = (height - top - MARGIN - (down - 1) * GAP) / down - TITLE;
    const wide = Math.min(room, tall / shape);
    if (wide > best.wide) best = { abreast, wide };
  }
  const wide = Math.max(24, Math.floor(best.wide));
  const tall = Math.max(16, Math.round(wide * shape));
  const lines = Math.ceil(count / best.abreast);
  const across = Math.min(count, best.abreast);
  const left = Math.max(MARGIN, (width - across * wide - (across - 1) * GAP) / 2);
  const free = height - top - MARGIN - lines * (tall + TITLE) - (lines - 1) * GAP;
  return Array.from({ length: count }, (_, index) => ({
    x: Math.round(left + (index % best.abreast) * (wide + GAP)),
    y: Math.round(top + Math.max(0, free / 3) + TITLE + Math.floor(index / best.abreast) * (tall + TITLE + GAP)),
    width: wide,
    height: tall,
  }));
}

/** The part of the chips that there is room for: how far they are scrolled, how far they can be, where they end. The
 *  one in focus is within, where the focus is another than before. */
export function inWindow(
  boxes: Box[],
  bottom: number,
  room: number,
  before: { top: number; focus: number },
  focus: number,
): { top: number; most: number; bottom: number } {
  const line = CHIP + 4;
  const most = bottom > room ? Math.ceil((bottom - Math.max(room, 2 * line)) / line) * line : 0;
  const end = bottom - most;
  let top = Math.min(most, before.top);
  const box = boxes[focus];
  if (box && focus !== before.focus) {
    const lowest = Math.ceil((box.y + box.height + 8 - end) / line) * line;
    top = Math.max(0, Math.min(Math.max(top, lowest), Math.floor((box.y - 10) / line) * line));
  }
  return { top, most, bottom: end };
}

/** The token of each patch; −1 for one that has none. */
export function placesOf(patches: Int32Array, cells: number): Int32Array {
  const tokens = new Int32Array(cells).fill(-1);
  patches.forEach((patch, token) => {
    if (patch >= 0) tokens[patch] = token;
  });
  return tokens;
}

/** On whole pixels, so that neighbours neither overlap nor leave a gap; cut at the picture's edge. */
export function snapped(box: Box, area: Box): Box {
  const [left, top] = [Math.round(box.x), Math.round(box.y)];
  const right = Math.min(Math.round(box.x + box.width), Math.round(area.x + area.width));
  const bottom = Math.min(Math.round(box.y + box.height), Math.round(area.y + area.height));
  return { x: left, y: top, width: right - left, height: bottom - top };
}
