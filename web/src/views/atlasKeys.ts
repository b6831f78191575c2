/** Where the keys lead on the atlas: heads, and tokens of an example. */

import type { AtlasSelection, AtlasSpot } from "../contract";
import type { AtlasStore } from "../data/atlasStore";
import { type AtlasLayout, type Cell, neighbourOf } from "./atlasLayout";

const ARROWS: Record<string, [across: number, down: number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

/** The step that an arrow means; null for other keys. */
export function arrowOf(key: string): [across: number, down: number] | null {
  return ARROWS[key] ?? null;
}

/** The head beside the one in focus; the first where there is none. */
export function moved(layout: AtlasLayout, from: Cell | null, [across, down]: [number, number]): Cell | null {
  return from ? neighbourOf(layout, from, across, down) : (layout.cells[0] ?? null);
}

/** The next token of the example in focus, in the same role; the first token of the first example without one. */
export function nextSpot(store: AtlasStore, { place, token }: AtlasSelection, step: 1 | -1): AtlasSpot | null {
  const clouds = store.places.get(place)?.clouds ?? [];
  const cloud = clouds.find(({ role }) => role === token?.role) ?? clouds[0];
  const tokens = cloud && store.tokens[cloud.stack];
  if (!cloud || !tokens) return null;
  if (!token) return { role: cloud.role, row: 0 };
  const [first, end] = tokens.rowsOf(tokens.at("example", token.row));
  const row = Math.min(end - 1, Math.max(first, token.row + step));
  return { role: cloud.role, row };
}

/** The example that a token is of. */
export function exampleWith(store: AtlasStore, place: string, spot: AtlasSpot | null): number {
  const cloud = store.places.get(place)?.clouds.find(({ role }) => role === spot?.role);
  const tokens = cloud && store.tokens[cloud.stack];
  return spot && tokens && spot.row < tokens.count ? tokens.at("example", spot.row) : -1;
}
