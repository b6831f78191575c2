/** The strongest pairs of a head, in words: as far as its map tells them, and exactly. */

import type { MapsProps, SiteProps, TraceProps, WindowProps } from "../contract";
import { strongestCells } from "../data/maps";
import { number } from "../data/measures";
import type { Source } from "../source";
import { floats, type Grid, type Part } from "../wire";
import { headName, stackOf } from "./view";

interface Head {
  site: SiteProps;
  head: number;
}

const COUNT = 3;

/** Whether a dot of the head's map stands for several pairs, and those can be asked for. */
export function isPooled(maps: Part<MapsProps>, { site }: Head): boolean {
  const [tall, wide] = maps.props.cells[site.site] ?? [1, 1];
  return (tall > 1 || wide > 1) && !site.no_weights;
}

/** Stretches of tokens, where a dot stands for several. */
export function pooledPairs(trace: TraceProps, maps: Part<MapsProps>, head: Head): string[] {
  const { site } = head;
  const cell = maps.props.cells[site.site] ?? [1, 1];
  return strongest(maps, head).map(({ row, column, weight }) => {
    const from = stretch(stackOf(trace, site.stack).texts, row, cell[0], site.n_queries);
    const to = stretch(stackOf(trace, site.key_stack).texts, column, cell[1], site.n_keys);
    return `${from} → ${to}  ${number(weight)}`;
  });
}

/** The strongest pair behind each of those dots. */
export function exactPairs(
  source: Source,
  trace: TraceProps,
  maps: Part<MapsProps>,
  head: Head,
  signal: AbortSignal,
): Promise<string[]> {
  const { site } = head;
  const [tall, wide] = maps.props.cells[site.site] ?? [1, 1];
  const queries = stackOf(trace, site.stack).texts;
  const keys = stackOf(trace, site.key_stack).texts;
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
      return `${queries[query] ?? query} → ${keys[target] ?? target}  ${number(values[most] as number)}`;
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

function stretch(texts: string[], cell: number, size: number, length: number): string {
  const first = cell * size;
  const last = Math.min(length, first + size) - 1;
  const name = (position: number) => texts[position] ?? String(position);
  return last > first ? `${name(first)} … ${name(last)}` : name(first);
}
