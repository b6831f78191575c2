/** What the atlas says in words: the line over the picture, the text beside the pointer, the rows of the table. */

import { ATLAS_SCORE_TERMS, type AtlasProps, type AtlasScoresProps, type AtlasSelection } from "../contract";
import type { HeadMap } from "../data/atlasPoints";
import type { AtlasTokens } from "../data/atlasTokens";
import { number } from "../data/measures";
import type { Part } from "../wire";
import type { AtlasScene } from "./atlasScene";

const METHODS = { pca: "PCA", tsne: "t-SNE", umap: "UMAP" };
const AROUND = 6; // tokens on either side

const COORDINATES = {
  raw: "raw: near does not mean large attention",
  translated: "translated: near means large attention, but for the key bias and the norms",
  scaled: "scaled: near means large attention, but for the key bias",
  lifted: "lifted: before it was projected, the nearer key had the larger logit",
};

export function mapWords({ method, dims }: AtlasSelection): string {
  return `${METHODS[method]}, ${dims}-D`;
}

export type Scores = Part<AtlasScoresProps> | null;

export function scoreOf(scores: Scores, name: string, address: string): number {
  const at = scores?.props.heads.indexOf(address) ?? -1;
  return at < 0 ? Number.NaN : ((scores?.arrays[name]?.values[at] as number | undefined) ?? Number.NaN);
}

export function matrixWords(
  atlas: AtlasProps,
  scene: AtlasScene,
  drawnHeads: number,
): { line: string; notes: string[] } {
  const { selection, maps } = scene;
  const total = [...maps.keys()].reduce((most, address) => Math.max(most, scene.store.wholeSet(address).count), 0);
  const drawn = [...maps.values()].reduce((most, { set }) => Math.max(most, set.count), 0);
  const noun = atlas.space === "residual" ? "depths" : "heads";
  const points = drawn < total ? `${written(drawn)} of ${written(total)} points each` : `${written(drawn)} points each`;
  const missing = atlas.places.length - maps.size;
  const notes = [
    mapWords(selection),
    atlas.space === "query_key" ? COORDINATES[selection.coordinates] : `${atlas.space} vectors`,
  ];
  if (missing > 0) notes.push(`${missing} ${noun} have no such map yet`);
  notes.push(...litWords(scene, [...maps.values()][0]));
  return { line: `${drawnHeads} ${noun}, ${points}`, notes };
}

export function singleWords(atlas: AtlasProps, scene: AtlasScene, scores: Scores): { line: string; notes: string[] } {
  const { selection, whole } = scene;
  const notes = [
    mapWords(selection),
    atlas.space === "query_key" ? COORDINATES[selection.coordinates] : `${atlas.space} vectors`,
  ];
  const bias = scoreOf(scores, "key_bias_share", selection.place);
  if (!Number.isNaN(bias) && ["translated", "scaled"].includes(selection.coordinates))
    notes.push(`not seen here: key bias, ${Math.round(100 * bias)} % of the variance of logits`);
  const fit = scoreOf(scores, "map_pearson", selection.place);
  if (!Number.isNaN(fit) && selection.method === "pca" && selection.dims === 2 && selection.coordinates === "scaled")
    notes.push(`distance and logit correlate at ${number(fit)} on this map (−1 is exact)`);
  notes.push(...litWords(scene, whole ?? undefined));
  return { line: `${selection.place}: ${written(whole?.set.count ?? 0)} points`, notes };
}

function litWords(scene: AtlasScene, map: HeadMap | undefined): string[] {
  const lit = map && scene.litIn(map.set);
  return lit ? [`${written(lit.length)} points lit`] : [];
}

export function written(count: number): string {
  return count.toLocaleString("en");
}

/** A token among those beside it: `… asked the [nurse] a question …`. */
export function contextOf(tokens: AtlasTokens, row: number): string {
  const [first, end] = tokens.rowsOf(tokens.at("example", row));
  const from = Math.max(first, row - AROUND);
  const to = Math.min(end, row + AROUND + 1);
  const words: string[] = [];
  for (let other = from; other < to; other++) {
    const text = tokens.text(other);
    words.push(other === row ? `[${text}]` : text);
  }
  const joined = words.join(" ").replace(/ ##|▁/g, "");
  return `${from > first ? "… " : ""}${joined}${to < end ? " …" : ""}`;
}

/** What is known of a point. */
export function pointLines(scene: AtlasScene, map: HeadMap, point: number): string[] {
  const { set } = map;
  const row = set.row[point] as number;
  const tokens = scene.store.tokens[set.stack(point)] as AtlasTokens;
  const position = tokens.at("position", row);
  const lines = [`${tokens.text(row)} · ${set.role(point)}`];
  const isPatch = tokens.has("patch_row") && tokens.at("patch_row", row) >= 0;
  if (isPatch) lines.push(`row ${tokens.at("patch_row", row)}, column ${tokens.at("patch_column", row)}`);
  else if (!tokens.has("patch_row")) lines.push(contextOf(tokens, row));
  lines.push(`example ${tokens.at("example", row) + 1}, position ${position} of 0–${tokens.at("length", row) - 1}`);
  const predicted = tokens.tables.predicted?.[tokens.at("predicted", row)];
  if (predicted !== undefined) lines.push(`predicted class: ${predicted}`);
  if (map === scene.whole) {
    for (const [name, label] of [
      ["norm", "norm"],
      ["key_bias", "key bias"],
    ] as const) {
      const value = scene.numbers[name]?.[point];
      if (value !== undefined && !Number.isNaN(value)) lines.push(`${label} ${number(value)}`);
    }
  }
  return lines;
}

const TOLD_SCORES = ["pearson", "key_bias_share", "trustworthiness"];

/** What is known of a head. */
export function headTip(scene: AtlasScene, scores: Scores, address: string): string[] {
  const lines = [address];
  for (const name of TOLD_SCORES) {
    const value = scoreOf(scores, name, address);
    if (!Number.isNaN(value)) lines.push(`${ATLAS_SCORE_TERMS[name]?.label ?? name} ${number(value)}`);
  }
  if (!scene.maps.has(address)) lines.push("no map of this kind yet");
  return lines;
}

type Table = { columns: string[]; rows: (string | number)[][]; total: number };

/** A row per head, with what is known of it. */
export function headTable(atlas: AtlasProps, scores: Scores, limit: number): Table {
  const names = Object.keys(scores?.arrays ?? {});
  const columns = ["head", "layer", "index", ...names];
  const rows = atlas.places
    .slice(0, limit)
    .map(({ address, layer, head }) => [
      address,
      layer,
      head ?? "",
      ...names.map((name) => rounded(scoreOf(scores, name, address))),
    ]);
  return { columns, rows, total: atlas.places.length };
}

/** A row per point, those that are lit first and alone where there are some. */
export function pointTable(scene: AtlasScene, map: HeadMap, limit: number): Table {
  const { set } = map;
  const lit = scene.litIn(set);
  const points = lit ?? scene.sideOf(set) ?? Int32Array.from({ length: set.count }, (_, point) => point);
  const order = [...points].sort((a, b) => (set.source[a] as number) - (set.source[b] as number));
  const numbers = map === scene.whole ? Object.entries(scene.numbers) : [];
  const axes = map.solid ? ["x", "y", "z"] : ["x", "y"];
  const columns = ["role", "token", "example", "position", ...axes, ...numbers.map(([name]) => name)];
  const rows = order.slice(0, limit).map((point) => {
    const row = set.row[point] as number;
    const tokens = scene.store.tokens[set.stack(point)] as AtlasTokens;
    return [
      set.role(point),
      tokens.text(row),
      tokens.at("example", row) + 1,
      tokens.at("position", row),
      ...coordinatesOf(map, point).map(rounded),
      ...numbers.map(([, values]) => rounded(values[point] as number)),
    ];
  });
  return { columns, rows, total: order.length };
}

/** Where a point is, in the numbers of its map. */
export function coordinatesOf({ places, solid, low, step }: HeadMap, point: number): number[] {
  const full = 65535;
  if (solid) {
    const [x, y, z] = solid.subarray(3 * point, 3 * point + 3) as unknown as [number, number, number];
    return [x, full - y, z].map((value, axis) => (low[axis] as number) + step * value);
  }
  const place = places[point] as number;
  return [place & full, full - (place >>> 16)].map((value, axis) => (low[axis] as number) + step * value);
}

function rounded(value: number): number {
  return Number.isNaN(value) ? value : Number(value.toPrecision(5));
}
