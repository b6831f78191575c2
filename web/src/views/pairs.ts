/** The strongest pairs of a head, in words and patches: as far as its map tells them, and exactly. */

import type { MapsProps, SiteProps, TraceProps, WindowProps } from "../contract";
import { number } from "../data/measures";
import { type Reading, readingOf } from "../data/reading";
import { repeatedTexts } from "../data/repeated";
import { strongestCells } from "../data/strongestDots";
import { headName, stackOf } from "../data/trace";
import type { Source } from "../source";
import { floats, type Grid, type Part } from "../wire";
import type { Icons } from "./icons";
import type { TipLine } from "./view";

interface Head {
  site: SiteProps;
  head: number;
}

/** Tokens as read; `positions` of one alone, −1 of a stretch of them. */
export interface Pair {
  texts: [string, string];
  positions: [number, number];
  weight: number;
}

const COUNT = 3;

/** Every token of a layer by itself, named as in the other views. */
export function plainly(trace: TraceProps, site: SiteProps): { site: SiteProps; queries: Reading; keys: Reading } {
  const how = { by: "tokens" as const, hide: [], off: [] };
  const queries = readingOf(stackOf(trace, site.stack), site.n_queries, how, site);
  return { site, queries, keys: readingOf(stackOf(trace, site.key_stack), site.n_keys, how, site) };
}

/** A line for the tip: patches of a picture beside their names. */
export function toldPair({ texts, positions, weight }: Pair, icons: Icons | null, scale: number): TipLine {
  const line: (string | ImageData)[] = [];
  for (const at of [0, 1] as const) {
    const image = icons?.image(at ? "key" : "query", positions[at], scale);
    if (at) line.push(" → ");
    if (image) line.push(image);
    line.push(texts[at]);
  }
  line.push(`  ${number(weight)}`);
  return line.every((part) => typeof part === "string") ? line.join("") : line;
}

/** Whether a dot of the head's map stands for several pairs, and those can be asked for. */
export function isPooled(maps: Part<MapsProps>, { site }: Head): boolean {
  const [tall, wide] = maps.props.cells[site.site] ?? [1, 1];
  return (tall > 1 || wide > 1) && !site.no_weights;
}

/** Stretches of tokens, where a dot stands for several. */
export function pooledPairs(trace: TraceProps, maps: Part<MapsProps>, head: Head): Pair[] {
  const { site } = head;
  const cell = maps.props.cells[site.site] ?? [1, 1];
  const { queries, keys } = plainly(trace, site);
  return strongest(maps, head).map(({ row, column, weight }) => {
    const from = stretch(queries.texts, row, cell[0], site.n_queries);
    const to = stretch(keys.texts, column, cell[1], site.n_keys);
    return { texts: [from, to], positions: [cell[0] > 1 ? -1 : row, cell[1] > 1 ? -1 : column], weight };
  });
}

/** The strongest pair behind each of those dots. */
export function exactPairs(
  source: Source,
  trace: TraceProps,
  maps: Part<MapsProps>,
  head: Head,
  signal: AbortSignal,
): Promise<Pair[]> {
  const { site } = head;
  const [tall, wide] = maps.props.cells[site.site] ?? [1, 1];
  const { queries, keys } = plainly(trace, site);
  return Promise.all(
    strongest(maps, head).map(async ({ row, column }) => {
      const rows = `${row * tall}:${Math.min(site.n_queries, (row + 1) * tall)}`;
      const columns = `${column * wide}:${Math.min(site.n_keys, (column + 1) * wide)}`;
      const name = headName(site.site, head.head);
      const key = `window/${name}?rows=${rows}&columns=${columns}&size=${Math.max(tall, wide)}`;
      const grid = (await source.part<WindowProps>(key, signal)).arrays.weights as Grid;
      const values = floats(grid);
      const most = values.reduce(
        (best, value, index) => (Math.abs(value) > Math.abs(values[best] as number) ? index : best),
        0,
      );
      const width = grid.shape[1] as number;
      const query = row * tall + Math.floor(most / width);
      const target = column * wide + (most % width);
      return {
        texts: [placed(queries.texts, query), placed(keys.texts, target)],
        positions: [query, target],
        weight: values[most] as number,
      } satisfies Pair;
    }),
  );
}

function strongest(maps: Part<MapsProps>, { site, head }: Head) {
  const map = maps.arrays[site.site];
  if (!map) return [];
  const [, rows, columns] = map.shape as [number, number, number];
  const isSigned = map.code === "signed";
  return strongestCells(map.values as Uint8Array, head * rows * columns, rows, columns, COUNT, isSigned);
}

/** A token, with its position where others read the same. */
function placed(texts: string[], position: number): string {
  const text = texts[position];
  if (text === undefined) return String(position);
  return repeatedTexts(texts).has(text) ? `${text} ${position}` : text;
}

function stretch(texts: string[], cell: number, size: number, length: number): string {
  const first = cell * size;
  const last = Math.min(length, first + size) - 1;
  const name = (position: number) => texts[position] ?? String(position);
  if (last === first) return placed(texts, first);
  return last > first ? `${name(first)} … ${name(last)}` : name(first);
}
