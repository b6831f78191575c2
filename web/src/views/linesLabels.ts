/** What is written in the head view with lines: tokens, numbers beside them, A and B, and what the columns are. */

import { number } from "../data/measures";
import type { Side } from "../selection";
import { between, DARK, LIGHT, type Rgb, type Theme } from "../theme";
import type { Columns, Token } from "./columns";
import { type Ends, WORTH } from "./ends";
import { BESIDE, type Icons } from "./icons";
import type { Label } from "./labels";
import type { DrawnHead, Scene } from "./scene";

const OTHER = { query: "key", key: "query" } as const;

interface Content {
  scene: Scene;
  theme: Theme;
  columns: Columns;
  scroll: number;
  /** The token whose lines are shown alone. */
  focus: Token | null;
  icons: Icons | null;
  iconSize: number;
}

/** The tokens in view, with what stands over and beside them. */
export function tokenLabels(content: Content): Label[] {
  const { scene, theme, columns, scroll, focus, icons, iconSize } = content;
  const { site, queries, keys } = scene.layer;
  const labels: Label[] = [];
  const names = site.kind === "cross" ? { query: site.stack, key: site.key_stack } : { query: "query", key: "key" };
  for (const side of ["query", "key"] as const) {
    const reading = side === "query" ? queries : keys;
    const isFocus = (index: number) => focus?.index === index && (focus.side === side || scene.isSelf);
    const [first, last] = columns.visible(side, scroll);
    for (let index = first; index < last; index++) {
      const along = columns.at(side, index, scroll);
      if (along < columns.from - 2 || along > columns.to + 2 || reading.isLater[index]) continue;
      const hasIcon = columns.isVertical && icons?.has(side, index);
      const at = labelPlace(columns, side, along);
      labels.push({
        ...at,
        x: at.x + (hasIcon ? (side === "query" ? -1 : 1) * (iconSize + BESIDE) : 0),
        text: reading.texts[index] as string,
        width: columns.isFlat && !columns.isVertical ? columns.pitch - 6 : columns.label[side],
        size: columns.pitch >= 19 ? 14 : columns.pitch >= 16 ? 13 : 12,
        colour: toneOf(scene, theme, { side, index }),
        isBold: isFocus(index),
        isStruck: reading.isOff[index] ?? false,
        isWritten: reading.isWritten[index] ?? false,
        isEdited: scene.isEdited({ side, index }),
        isAnswer: reading.isAnswer[index] ?? false,
      });
    }
    labels.push(heading(content, side, names[side]));
    labels.push(...segmentLabels(content, side));
  }
  return labels;
}

function toneOf(scene: Scene, theme: Theme, token: Token): Rgb {
  const { isOff, isSpecial, isAnswer } = token.side === "query" ? scene.layer.queries : scene.layer.keys;
  if (scene.isEdited(token)) return theme.warn;
  if (isAnswer[token.index]) return scene.relevance[token.side] ? theme.ink : theme.accent; // on a coloured ground
  return isOff[token.index] || isSpecial[token.index] ? theme.tertiary : theme.ink;
}

/** What a token gives or gets, beside those opposite. */
export function numberLabels(content: Content, token: Token, ends: Ends[]): Label[] {
  const { scene, theme, columns, scroll } = content;
  const other = OTHER[token.side];
  const [first, last] = columns.visible(other, scroll);
  const isOne = scene.drawnHeads.length === 1;
  const out = other === "key" ? 1 : -1;
  const edge = other === "key" ? columns.end : columns.start;
  const labels: Label[] = [];
  ends.forEach((end, which) => {
    for (let index = first; index < last; index++) {
      if (!((end.strength[index] as number) >= WORTH)) continue;
      const along = columns.at(other, index, scroll);
      const place = columns.label[other] + columns.segment + 10 + (which + (isOne ? 0.4 : 0.5)) * columns.number;
      const across = edge + out * place;
      labels.push({
        ...columns.point(along, across),
        text: written(end.values[index] as number),
        align: "centre",
        width: 60,
        size: columns.number >= 30 || !columns.isVertical ? 11 : 10,
        colour: isOne
          ? theme.secondary
          : inkOn(
              content,
              scene.drawnHeads[which] as DrawnHead,
              end.strength[index] as number,
              (end.values[index] as number) < 0,
            ),
        isUpright: !columns.isVertical && !columns.isFlat,
      });
    }
  });
  return labels;
}

/** Black or white, whichever reads better on the box of a head. */
function inkOn({ scene, theme }: Content, drawnHead: DrawnHead, strength: number, isNegative: boolean): Rgb {
  const sign = isNegative ? theme.negative : theme.positive;
  const tone = scene.isSigned ? sign : scene.colourOf(drawnHead, theme).colour;
  const [red, green, blue] = between(theme.background, tone, shadeOf(strength));
  return 0.299 * red + 0.587 * green + 0.114 * blue > 128 ? LIGHT.ink : DARK.ink;
}

function labelPlace(columns: Columns, side: Side, along: number): Pick<Label, "x" | "y" | "align" | "isUpright"> {
  const across = side === "query" ? columns.start - 10 : columns.end + 10;
  if (columns.isVertical) return { ...columns.point(along, across), align: side === "query" ? "right" : "left" };
  if (columns.isFlat) return { ...columns.point(along, across + (side === "query" ? -4 : 4)), align: "centre" };
  return { ...columns.point(along, across), align: side === "query" ? "left" : "right", isUpright: true };
}

function heading({ theme, columns }: Content, side: Side, text: string): Label {
  const across = side === "query" ? columns.start - 10 : columns.end + 10;
  const first = columns.isLong ? columns.from : columns.at(side, 0, 0) - columns.pitch / 2;
  const place = columns.isVertical
    ? columns.point(Math.max(16, first - 16), across)
    : columns.point(14, across + (side === "query" ? -6 : 6));
  const align = columns.isVertical && side === "query" ? "right" : "left";
  return { ...place, text, align, width: 160, size: 11, colour: theme.tertiary };
}

/** A and B, beside the first token of each that is in view. */
function segmentLabels({ scene, theme, columns, scroll }: Content, side: Side): Label[] {
  const reading = side === "query" ? scene.layer.queries : scene.layer.keys;
  if (!columns.segment) return [];
  const [first, last] = columns.visible(side, scroll);
  const labels: Label[] = [];
  for (let index = first; index < last; index++) {
    const isNew = index === first || reading.segments[index] !== reading.segments[index - 1];
    if (!isNew) continue;
    const along = columns.at(side, index, scroll);
    const offset = 10 + columns.label[side] + columns.segment - 8;
    const across = side === "query" ? columns.start - offset : columns.end + offset;
    labels.push({
      ...columns.point(along, across),
      text: reading.segments[index] as string,
      align: "centre",
      width: 20,
      size: 11,
      colour: theme.tertiary,
      isBold: true,
    });
  }
  return labels;
}

/** How opaque the box of a head is beside a token. */
export function shadeOf(strength: number): number {
  return 0.06 + 0.74 * strength;
}

/** Numbers in a column have the same digits. */
function written(value: number): string {
  return Math.abs(value) < 10 ? value.toFixed(2).replace("-", "−") : number(value);
}
