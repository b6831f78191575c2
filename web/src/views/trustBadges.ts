/** Badges of tested heads on their pictures: a sign in a box, with words where there is room. */

import type { TrustProps } from "../contract";
import { SIGNS, type Verdict } from "../data/trust";
import { fillBox, frame, scaled } from "../marks/boxes";
import type { Box } from "../marks/cells";
import type { Raster } from "../marks/raster";
import type { Theme } from "../theme";
import type { Label } from "./labels";

/** Smaller pictures have no room for a sign: their verdicts are in the line under the picture, the tip and the table. */
const LEAST = 20;
const ROOMY = 36;
const WITH_WORDS = 130;

/** Where the badge of a head is: in the upper left corner, as edited heads are marked in the right. */
export function badgeBox({ x, y }: { x: number; y: number }, size: number, verdict: Verdict): Box | null {
  if (size < LEAST) return null;
  const side = size < ROOMY ? 10 : 14;
  const width = size < WITH_WORDS ? side : 22 + 6 * verdict.length;
  return { x, y, width, height: side };
}

/** Dark where the attention is not supported; else light, with a frame. */
export function paintBadge(raster: Raster, box: Box, verdict: Verdict, theme: Theme, scale: number): void {
  const place = scaled(box, scale);
  fillBox(raster, place, isRefuted(verdict) ? theme.ink : theme.background);
  frame(raster, place, theme.ink, Math.max(1, Math.round(scale)));
}

export function badgeLabel(box: Box, verdict: Verdict, theme: Theme): Label {
  const isWide = box.width > box.height;
  return {
    text: isWide ? `${SIGNS[verdict]} ${verdict}` : SIGNS[verdict],
    x: box.x + box.width / 2,
    y: box.y + box.height / 2,
    align: "centre",
    width: box.width,
    size: box.height < 14 ? 8 : 10,
    colour: isRefuted(verdict) ? theme.background : theme.ink,
    isBold: true,
  };
}

/** The verdicts of heads, by name. */
export function verdictsOf(trust: TrustProps | null | undefined): Map<string, Verdict> {
  return new Map(trust?.badges.map(({ head, verdict }) => [head, verdict]));
}

function isRefuted(verdict: Verdict): boolean {
  return verdict === "not supported";
}
