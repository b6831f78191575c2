/** Pictures and sounds: whether a layer can be shown over one, and which of its tokens is which patch or frame. */

import type { ImageProps, SiteProps, SoundProps, StackProps, TraceProps } from "../contract";
import type { Selection } from "../selection";
import type { Source } from "../source";
import { floats, type Grid, type Part } from "../wire";
import { hasBoxes, numbersOf } from "./patches";
import { Plane } from "./plane";
import type { Reading } from "./reading";

export type FormName = Exclude<Selection["form"], "auto">;

export interface Picture {
  pixels: Uint8Array;
  height: number;
  width: number;
  channels: number;
  /** Height and width of a patch, in these pixels. */
  patch: [number, number];
  note: string;
  /** The copies of the picture beside each other, as shares of the pixels; all of them without any. */
  areas: ImageProps["areas"];
}

export interface Sound {
  /** Lowest and highest sample, one after the other. */
  envelope: Float32Array | null;
  spectrogram: { bytes: Uint8Array; bands: number; columns: number } | null;
  seconds: number;
  heard: number;
  note: string;
}

/** Whether a layer's keys are patches of a picture or frames of a sound that can be shown. */
export function mediumOf(trace: TraceProps, site: SiteProps): StackProps["looks"] {
  const stack = trace.stacks.find((candidate) => candidate.name === site.key_stack);
  if (!stack) return "";
  if (stack.looks === "image") return site.grid || hasBoxes(stack, site) ? "image" : "";
  return stack.texts.length === site.n_keys ? stack.looks : "";
}

export function bestForm(trace: TraceProps, site: SiteProps): FormName {
  const medium = mediumOf(trace, site);
  return medium === "image" ? "image" : medium === "sound" ? "time" : "lines";
}

/** The forms that a layer can be drawn in, the best first. */
export function formsFor(trace: TraceProps, site: SiteProps): FormName[] {
  return [...new Set<FormName>([bestForm(trace, site), "lines", "matrix"])];
}

export function fitsForm(form: Selection["form"], trace: TraceProps, site: SiteProps): boolean {
  return form === "auto" || formsFor(trace, site).includes(form);
}

/** The form that is drawn. */
export function formOf(selection: Selection, trace: TraceProps): FormName {
  if (selection.form !== "auto") return selection.form;
  const site = trace.layers.find((layer) => layer.site === selection.site);
  return site ? bestForm(trace, site) : "lines";
}

export async function loadPicture(source: Source, stack: string, signal?: AbortSignal): Promise<Picture> {
  const part = await source.part<ImageProps>(`image/${stack}`, signal);
  const grid = part.arrays.pixels as Grid;
  const [height, width, channels] = grid.shape as [number, number, number];
  const { patch, note, areas } = part.props;
  return { pixels: grid.values as Uint8Array, height, width, channels, patch, note, areas };
}

export async function loadSound(source: Source, stack: string, signal?: AbortSignal): Promise<Sound> {
  const { props, arrays } = await source.part<SoundProps>(`sound/${stack}`, signal);
  const { envelope, spectrogram } = arrays;
  const [bands, columns] = (spectrogram?.shape ?? [0, 0]) as [number, number];
  return {
    envelope: envelope ? floats(envelope) : null,
    spectrogram: spectrogram ? { bytes: spectrogram.values as Uint8Array, bands, columns } : null,
    seconds: props.seconds,
    heard: props.heard,
    note: props.note,
  };
}

/** The rollout up to a layer, as a head's weights are given. */
export async function loadRollout(source: Source, site: string, signal?: AbortSignal): Promise<Plane> {
  const part: Part<unknown> = await source.part(`rollout/${site}`, signal);
  const grid = part.arrays.weights as Grid;
  const [rows, columns] = grid.shape as [number, number];
  const values = floats(grid);
  return new Plane(rows, columns, values, values);
}

/** The patch of each shown token among the layer's, −1 for one that is none: a special token, a word. */
export function patchesOf(reading: Reading, stack: StackProps, site: SiteProps): Int32Array {
  if (stack.boxes.length && stack.boxes.length === reading.groupOf.length) {
    const numbers = numbersOf(stack);
    return Int32Array.from(reading.members, ([position]) => numbers[position as number] as number);
  }
  const cells = site.grid ? site.grid[0] * site.grid[1] : 0;
  if (!site.grid || stack.kind !== "patches") return new Int32Array(reading.texts.length).fill(-1);
  if (site.places.length)
    return Int32Array.from(reading.members, ([position]) => site.places[position as number] ?? -1);
  if (stack.texts.length !== reading.groupOf.length) {
    return Int32Array.from(reading.members, ([position]) => ((position as number) < cells ? (position as number) : -1));
  }
  const special = new Set(stack.special);
  const numbers = new Int32Array(stack.texts.length).fill(-1);
  let next = 0;
  for (let position = 0; position < numbers.length; position++) {
    if (!special.has(position) && next < cells) numbers[position] = next++;
  }
  return Int32Array.from(reading.members, ([position]) => numbers[position as number] as number);
}

/** The strongest patch of each patch, where arrows lead: for each query that is a patch, a key that is one. */
export function strongestPatches(
  plane: Plane,
  queries: Int32Array,
  keys: Int32Array,
): { query: number; key: number; weight: number }[] {
  const leads: { query: number; key: number; weight: number }[] = [];
  for (let query = 0; query < plane.nQueries; query++) {
    if ((queries[query] as number) < 0) continue;
    let best = -1;
    let most = 0;
    plane.row(query, (cell, key) => {
      const weight = plane.strength[cell] as number;
      if ((keys[key] as number) >= 0 && weight > most) [best, most] = [key, weight];
    });
    if (best >= 0) leads.push({ query, key: best, weight: most });
  }
  return leads.sort((a, b) => b.weight - a.weight);
}

/** What one token gives to, or gets from, each token opposite; NaN where that is not known. */
export function opposite(plane: Plane, side: "query" | "key", index: number): Float32Array {
  const row = new Float32Array(side === "query" ? plane.nKeys : plane.nQueries).fill(Number.NaN);
  const visit = (cell: number, other: number) => {
    row[other] = plane.values[cell] as number;
  };
  if (side === "query") plane.row(index, visit);
  else plane.column(index, visit);
  return row;
}
