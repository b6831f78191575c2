/** Where a tip goes: beside what it describes, never over it, and inside the window. */

import type { Around } from "../../views/view";

interface Size {
  width: number;
  height: number;
}

const GAP = 10;
const EDGE = 6;

/** The left and top of a tip near a point. `around` is what it describes: the tip stands right of it, else left of it,
 *  else below or above. */
export function tipPlace(
  at: { x: number; y: number },
  tip: Size,
  window: Size,
  around: Around | null = null,
): { left: number; top: number } {
  const described = around ?? { left: at.x - 4, top: at.y - 2, right: at.x + 4, bottom: at.y + 6 };
  const clamp = (value: number, size: number, room: number) => Math.max(EDGE, Math.min(value, room - EDGE - size));
  const right = described.right + GAP;
  const left = described.left - GAP - tip.width;
  const top = clamp(at.y + (around ? 0 : 16), tip.height, window.height);
  if (right + tip.width <= window.width - EDGE) return { left: right, top };
  if (left >= EDGE) return { left, top };
  const below = described.bottom + GAP;
  const above = described.top - GAP - tip.height;
  const across = clamp(at.x - tip.width / 2, tip.width, window.width);
  return { left: across, top: below + tip.height <= window.height - EDGE || above < EDGE ? below : above };
}
