/** What is written around a matrix: the names of rows and columns, or where they have no room their positions. */

import type { Region } from "../data/pooled";
import type { Box } from "../marks/cells";
import type { Side } from "../selection";
import type { Theme } from "../theme";
import type { Token } from "./columns";
import type { Label } from "./labels";
import { TITLE } from "./matrixLayout";
import type { DrawnHead, Scene } from "./scene";
import { roundPositions } from "./ticks";

interface Content {
  scene: Scene;
  theme: Theme;
  /** The panels of the heads, and the part of the whole that they show. */
  boxes: Box[];
  seen: Region;
  cell: { width: number; height: number };
  /** Whether there is room for names, and how much. */
  isReadable: boolean;
  room: { left: number; top: number };
  matches: Token[];
  hovered: { query: number; key: number } | null;
  /** What a picture of the token takes between its name and the matrix. */
  iconRoom(side: Side, index: number): number;
}

export function labelsOf(content: Content): Label[] {
  const { scene, theme, seen, cell, isReadable, room, matches, hovered, iconRoom } = content;
  const { queries, keys } = scene.layer;
  const { rows, columns } = seen;
  const labels: Label[] = [];
  const matched = { query: new Set<number>(), key: new Set<number>() };
  for (const { side, index } of matches) matched[side].add(index);
  content.boxes.forEach((box, index) => {
    const drawnHead = scene.drawnHeads[index] as DrawnHead;
    if (content.boxes.length > 1) {
      const { colour } = scene.colourOf(drawnHead, theme);
      const place = { x: box.x, y: box.y - room.top - TITLE / 2 + 2, align: "left" as const };
      labels.push({ ...place, text: "■", width: 20, size: 11, colour });
      labels.push({
        ...place,
        x: box.x + 16,
        text: drawnHead.isEdited ? `${drawnHead.name} (edited)` : drawnHead.name,
        width: box.width,
        size: 12,
        colour: drawnHead.isEdited ? theme.warn : theme.secondary,
        isEdited: drawnHead.isEdited,
      });
    }
    if (!isReadable) {
      labels.push(...ticks(content, box));
      return;
    }
    const size = Math.min(13, cell.height - 1);
    const tone = (reading: typeof queries, side: Side, at: number) =>
      matched[side].has(at)
        ? theme.accent
        : scene.isEdited({ side, index: at })
          ? theme.warn
          : reading.isAnswer[at]
            ? theme.accent
            : reading.isOff[at] || reading.isSpecial[at]
              ? theme.tertiary
              : theme.ink;
    for (let query = rows[0]; query < rows[1]; query++) {
      if (queries.isLater[query]) continue;
      labels.push({
        text: queries.texts[query] as string,
        x: box.x - 8 - iconRoom("query", query),
        y: box.y + (query - rows[0] + 0.5) * cell.height,
        align: "right",
        width: room.left - 10,
        size,
        colour: tone(queries, "query", query),
        isBold: hovered?.query === query,
        isStruck: queries.isOff[query] ?? false,
        isWritten: queries.isWritten[query] ?? false,
        isEdited: scene.isEdited({ side: "query", index: query }),
        isAnswer: queries.isAnswer[query] ?? false,
      });
    }
    for (let key = columns[0]; key < columns[1]; key++) {
      if (keys.isLater[key]) continue;
      labels.push({
        text: keys.texts[key] as string,
        x: box.x + (key - columns[0] + 0.5) * cell.width,
        y: box.y - 8 - iconRoom("key", key),
        align: "left",
        width: room.top - 10,
        size,
        colour: tone(keys, "key", key),
        isBold: hovered?.key === key,
        isStruck: keys.isOff[key] ?? false,
        isWritten: keys.isWritten[key] ?? false,
        isEdited: scene.isEdited({ side: "key", index: key }),
        isAnswer: keys.isAnswer[key] ?? false,
        isUpright: true,
      });
    }
  });
  return labels;
}

/** Positions, where tokens have no room. */
function ticks({ theme, seen, cell }: Content, box: Box): Label[] {
  const { rows, columns } = seen;
  const labels: Label[] = [];
  const words = { width: 60, size: 10, colour: theme.tertiary } as const;
  for (const at of roundPositions(rows, box.height, 40)) {
    const y = box.y + (at - rows[0] + 0.5) * cell.height;
    labels.push({ ...words, text: String(at), x: box.x - 6, y, align: "right" });
  }
  for (const at of roundPositions(columns, box.width, 52)) {
    const x = box.x + (at - columns[0] + 0.5) * cell.width;
    labels.push({ ...words, text: String(at), x, y: box.y - 10, align: "centre" });
  }
  return labels;
}
