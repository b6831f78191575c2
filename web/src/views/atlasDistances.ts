/** Distance against logit of a head's pairs, as a scatter with axes: how far the picture can be trusted. */

import type { AtlasDistancesProps } from "../contract";
import { number } from "../data/measures";
import { fillBox } from "../marks/boxes";
import type { Box } from "../marks/cells";
import { drawPoints, FULL, Inks } from "../marks/points";
import type { Raster } from "../marks/raster";
import type { Theme } from "../theme";
import { floats, type Grid, type Part } from "../wire";
import type { Size } from "./atlasCamera";
import type { AtlasScene } from "./atlasScene";
import type { Label } from "./labels";

export interface DistancePlot {
  places: Uint32Array;
  query: Int32Array;
  key: Int32Array;
  distance: Float32Array;
  logit: Float32Array;
  ends: { distance: [number, number]; logit: [number, number] };
  props: AtlasDistancesProps;
}

export function distancePlot({ props, arrays }: Part<AtlasDistancesProps>): DistancePlot {
  const distance = floats(arrays.distance as Grid);
  const logit = floats(arrays.logit as Grid);
  const ends = { distance: endsOf(distance), logit: endsOf(logit) };
  const places = Uint32Array.from(distance, (value, pair) => {
    const x = share(value, ends.distance) * FULL;
    const y = (1 - share(logit[pair] as number, ends.logit)) * FULL;
    return (Math.round(x) | (Math.round(y) << 16)) >>> 0;
  });
  const query = arrays.query?.values as Int32Array;
  const key = arrays.key?.values as Int32Array;
  return { places, query, key, distance, logit, ends, props };
}

/** Round ends, so that ticks can be read. */
function endsOf(values: Float32Array): [number, number] {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (!(low < high))
    return [low === Number.POSITIVE_INFINITY ? 0 : low - 1, high === Number.NEGATIVE_INFINITY ? 1 : high + 1];
  const step = stepOf(high - low);
  return [Math.floor(low / step) * step, Math.ceil(high / step) * step];
}

function stepOf(range: number): number {
  const rough = range / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10);
}

function share(value: number, [low, high]: [number, number]): number {
  return (value - low) / (high - low);
}

/** Where the scatter is on the screen: under the line of numbers, beside the axis. */
export function plotBox({ width, height }: Size): Box {
  const side = { left: 64, right: 28, top: 56, bottom: 56 };
  const room = {
    width: Math.max(40, width - side.left - side.right),
    height: Math.max(40, height - side.top - side.bottom),
  };
  const wide = Math.min(room.width, room.height * 1.5);
  return { x: side.left + (room.width - wide) / 2, y: side.top, width: wide, height: room.height };
}

export function paintDistances(raster: Raster, plot: DistancePlot, box: Box, theme: Theme, scale: number): void {
  const area = { x: box.x * scale, y: box.y * scale, width: box.width * scale, height: box.height * scale };
  fillBox(raster, area, theme.panel);
  for (const { at, isAcross } of ticks(plot)) {
    const line = isAcross
      ? { x: area.x + at * area.width, y: area.y, width: scale, height: area.height }
      : { x: area.x, y: area.y + (1 - at) * area.height, width: area.width, height: scale };
    fillBox(raster, line, theme.line);
  }
  const whole = { x: 0, y: 0, width: raster.width, height: raster.height };
  const colours = new Uint8Array(plot.places.length);
  drawPoints(raster, { places: plot.places, colours }, area, whole, new Inks([theme.accent], 0.4), 4.5 * scale);
}

export function distanceLabels(plot: DistancePlot, box: Box, theme: Theme): Label[] {
  const small = { size: 11, colour: theme.secondary, width: 60 } as const;
  const labels: Label[] = ticks(plot).map(({ at, text, isAcross }) =>
    isAcross
      ? { ...small, text, x: box.x + at * box.width, y: box.y + box.height + 14, align: "centre" }
      : { ...small, text, x: box.x - 8, y: box.y + (1 - at) * box.height, align: "right" },
  );
  const { pearson, spearman, n_pairs, coordinates } = plot.props;
  const known = (value: number | null) => number(value ?? Number.NaN);
  const pairs = `${plot.places.length.toLocaleString("en")} of ${n_pairs.toLocaleString("en")} pairs of query and key`;
  const line = `${pairs}: Pearson ${known(pearson)}, Spearman ${known(spearman)} (−1 is exact)`;
  const wide = { ...small, width: Math.max(160, box.width) };
  labels.push(
    {
      ...wide,
      text: `distance in the full space, ${coordinates}`,
      x: box.x + box.width / 2,
      y: box.y + box.height + 36,
      align: "centre",
    },
    {
      ...wide,
      text: "logit (query · key)",
      x: box.x - 46,
      y: box.y + box.height / 2,
      align: "centre",
      isUpright: true,
    },
    { ...wide, text: line, x: box.x, y: box.y - 16, align: "left", colour: theme.ink, size: 12 },
  );
  return labels;
}

function ticks({ ends }: DistancePlot): { at: number; text: string; isAcross: boolean }[] {
  return (["distance", "logit"] as const).flatMap((axis) => {
    const [low, high] = ends[axis];
    const step = stepOf(high - low);
    const count = Math.round((high - low) / step);
    return Array.from({ length: count + 1 }, (_, index) => {
      const value = Number((low + index * step).toPrecision(6));
      return { at: count ? index / count : 0.5, text: String(value).replace("-", "−"), isAcross: axis === "distance" };
    });
  });
}

const REACH = 8; // px

/** The pair under the pointer, in words. */
export function pairLines(scene: AtlasScene, plot: DistancePlot, box: Box, at: { x: number; y: number }): string[] {
  let best = -1;
  let least = REACH ** 2;
  plot.places.forEach((place, pair) => {
    const x = box.x + ((place & FULL) / FULL) * box.width - at.x;
    const y = box.y + ((place >>> 16) / FULL) * box.height - at.y;
    if (x * x + y * y > least) return;
    least = x * x + y * y;
    best = pair;
  });
  if (best < 0) return [];
  const [query, key] = textsOf(scene, plot, best);
  const numbers = `distance ${number(plot.distance[best] as number)}, logit ${number(plot.logit[best] as number)}`;
  return [`${query} → ${key}`, numbers];
}

/** A row per pair. */
export function pairTable(scene: AtlasScene, plot: DistancePlot, limit: number) {
  const total = plot.places.length;
  const columns = ["query token", "key token", "distance", "logit"];
  const rows = Array.from({ length: Math.min(limit, total) }, (_, pair) => [
    ...textsOf(scene, plot, pair),
    Number((plot.distance[pair] as number).toPrecision(5)),
    Number((plot.logit[pair] as number).toPrecision(5)),
  ]);
  return { columns, rows, total };
}

function textsOf({ store }: AtlasScene, plot: DistancePlot, pair: number): [string, string] {
  const clouds = store.places.get(plot.props.head)?.clouds ?? [];
  const text = (role: string, row: number) =>
    store.tokens[clouds.find((cloud) => cloud.role === role)?.stack ?? ""]?.text(row) ?? "";
  return [text("query", plot.query[pair] as number), text("key", plot.key[pair] as number)];
}
