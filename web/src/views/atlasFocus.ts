/** What is in focus on the atlas, as strokes over it: the head, the token, its strongest keys. */

import type { AtlasLinesProps } from "../contract";
import type { HeadMap } from "../data/atlasPoints";
import { between, type Theme } from "../theme";
import type { Part } from "../wire";
import { type Camera, type Size, seenBox } from "./atlasCamera";
import type { AtlasLayout, Cell } from "./atlasLayout";
import { linksOf, type Overlay, type Spot } from "./atlasOverlay";
import type { AtlasScene } from "./atlasScene";

export interface Focus {
  scene: AtlasScene;
  layout: AtlasLayout;
  camera: Camera;
  size: Size;
  single: Cell | null;
  cursor: Cell | null;
  hoveredCell: Cell | null;
  hovered: number;
  strongest: Part<AtlasLinesProps> | null;
  path: Spot[];
  theme: Theme;
  /** Where the points of a map are seen, in its square. */
  placesOf: (map: HeadMap) => Uint32Array;
}

const MOST_LIT = 300; // points with lines at once

export function overlayOf(focus: Focus): Overlay {
  return focus.single ? overOne(focus, focus.single) : overAll(focus);
}

/** Over all heads: the head under the pointer, the one that keys move, and the token in focus in each. */
function overAll({ scene, layout, camera, size, cursor, hoveredCell, theme, placesOf, path }: Focus): Overlay {
  const boxes: Overlay["boxes"] = [];
  if (hoveredCell) boxes.push({ box: seenBox(camera, hoveredCell), colour: theme.tertiary, width: 1.5 });
  if (cursor) boxes.push({ box: seenBox(camera, cursor), colour: theme.selection, width: 2 });
  const rings: Overlay["rings"] = [];
  const { token } = scene.selection;
  for (const cell of token ? layout.cells : []) {
    const map = scene.maps.get(cell.place.address);
    const point = map && token ? map.set.pointOf(token.role, token.row) : -1;
    if (!map || point < 0) continue;
    const { x, y } = placeIn(insetOf(seenBox(camera, cell)), placesOf(map), point);
    if (x < 0 || y < 0 || x > size.width || y > size.height) continue;
    rings.push({ x, y, colour: theme.ink, radius: 3.5, width: 1.5 });
  }
  return { rings, boxes, lines: [], path };
}

function overOne({ scene, camera, hovered, strongest, theme, placesOf, path }: Focus, single: Cell): Overlay {
  const map = scene.whole;
  if (!map) return { rings: [], boxes: [], lines: [], path };
  const places = placesOf(map);
  const square = seenBox(camera, single);
  const at = (point: number) => placeIn(square, places, point);
  const { token } = scene.selection;
  const chosen = token ? map.set.pointOf(token.role, token.row) : -1;
  const lit = scene.litIn(map.set);
  const starts = hovered >= 0 ? [hovered] : chosen >= 0 ? [chosen] : [...(lit ?? [])].slice(0, MOST_LIT);
  const links = strongest && starts.length ? linksOf(map, strongest, starts) : [];
  const lines = links.map(({ query, key, weight }) => ({ from: at(query), to: at(key), weight }));
  const rings: Overlay["rings"] = [];
  if (starts.length === 1) {
    for (const { query, key } of links) {
      const end = query === starts[0] ? key : query;
      rings.push({ ...at(end), colour: between(theme.background, theme.ink, 0.7), radius: 5, width: 1.2 });
    }
  }
  if (chosen >= 0) rings.push({ ...at(chosen), colour: theme.selection, radius: 7.5, width: 2.2 });
  if (hovered >= 0 && hovered !== chosen) rings.push({ ...at(hovered), colour: theme.ink, radius: 6.5, width: 1.5 });
  return { rings, boxes: [], lines, path };
}

export function placeIn(
  square: { x: number; y: number; width: number; height: number },
  places: Uint32Array,
  point: number,
): Spot {
  const place = places[point] as number;
  return {
    x: square.x + ((place & 0xffff) / 65535) * square.width,
    y: square.y + ((place >>> 16) / 65535) * square.height,
  };
}

/** Clouds keep away from the frames of their cells. */
export function insetOf<Square extends { x: number; y: number; width: number; height: number }>({
  x,
  y,
  width,
  height,
}: Square) {
  const rim = width * 0.04;
  return { x: x + rim, y: y + rim, width: width - 2 * rim, height: height - 2 * rim };
}
