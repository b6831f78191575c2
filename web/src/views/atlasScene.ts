/** What is drawn of an atlas for a selection: maps, colours, sizes and what is lit, once they have come. */

import type { AtlasSelection } from "../contract";
import { type Colouring, type ColourKey, coloured } from "../data/atlasColours";
import type { HeadMap, PointSet } from "../data/atlasPoints";
import type { AtlasStore, HeadMaps } from "../data/atlasStore";
import type { Rgb, Theme } from "../theme";
import type { PickedPoints } from "./atlasHost";
import type { Painted } from "./atlasPicture";

const BY_HEAD = ["norm", "key_bias"]; // numbers of a head's own points

export class AtlasScene {
  maps: HeadMaps = new Map();
  /** All points of the head that fills the stage, once they are there. */
  whole: HeadMap | null = null;
  /** Where those points are while they glide from one map to another. */
  gliding: HeadMap | null = null;
  /** Numbers of those points, in the order of drawing: norm, key bias. */
  numbers: Record<string, Float32Array> = {};
  private wholeOf = "";
  private mapsOf = "";
  private columnsOf = "";
  private columns: Record<string, Record<string, Float32Array>> = {};
  private readonly colourings = new Map<string, Colouring>();
  private readonly sides = new WeakMap<PointSet, { side: string; points: Int32Array | null }>();
  private readonly setNumbers = new WeakMap<PointSet, number>();
  private nSets = 0;
  private picked: PickedPoints[] = [];
  private hits: Record<string, Int32Array> | null = null;
  private lights = new WeakMap<PointSet, Int32Array>();

  constructor(
    readonly store: AtlasStore,
    public selection: AtlasSelection,
  ) {}

  /** Everything that the picture of this selection needs. */
  async load(selection: AtlasSelection, signal: AbortSignal): Promise<void> {
    const { store } = this;
    const map = selection.place ? this.loadWhole(selection, signal) : this.loadAround(selection, signal);
    await Promise.all([store.loadTokens(signal), map]);
    signal.throwIfAborted();
    this.selection = selection;
    if (selection.place) return;
    this.whole = null;
    this.wholeOf = "";
  }

  /** The maps of all heads. */
  async loadAround(selection: AtlasSelection, signal: AbortSignal): Promise<void> {
    const { store } = this;
    const kind = kindOf(selection);
    const names = BY_HEAD.filter((name) => name === selection.colour || (name === "norm" && selection.size === "norm"));
    if (this.mapsOf !== kind) {
      const maps = await store.maps(selection, signal);
      signal.throwIfAborted();
      this.maps = maps;
      this.mapsOf = kind;
    }
    if (this.columnsOf === names.join()) return;
    const columns = await Promise.all(names.map((name) => store.sampledColumn(name, signal)));
    signal.throwIfAborted();
    this.columns = Object.fromEntries(names.map((name, index) => [name, columns[index] ?? {}]));
    this.columnsOf = names.join();
    this.colourings.clear();
  }

  private async loadWhole(selection: AtlasSelection, signal: AbortSignal): Promise<void> {
    const { place } = selection;
    const name = `${place} ${kindOf(selection)}`;
    if (this.wholeOf === name) return;
    const [map, columns] = await Promise.all([
      this.store.headMap(place, selection, signal),
      this.store.columns(place, signal),
    ]);
    signal.throwIfAborted();
    this.whole = map;
    this.wholeOf = name;
    this.numbers = Object.fromEntries(
      Object.entries(columns).map(([column, values]) => [column, map.set.arranged(values)]),
    );
    for (const known of [...this.colourings.keys()]) if (known.includes(" whole ")) this.colourings.delete(known);
  }

  light(hits: Record<string, Int32Array> | null, picked: PickedPoints[]): void {
    if (this.hits === hits && this.picked === picked) return;
    this.hits = hits;
    this.picked = picked;
    this.lights = new WeakMap();
  }

  get isLit(): boolean {
    return this.picked.length > 0 || this.hits !== null;
  }

  /** A head as it is painted; null where it has no map. */
  painted(address: string, theme: Theme): (Painted & { inks: Rgb[] }) | null {
    const isWhole = this.isWhole(address);
    const map = isWhole ? (this.gliding ?? this.whole) : this.maps.get(address);
    if (!map) return null;
    const { inks, colours } = this.colouring(map.set, address, isWhole, theme);
    const norms = this.selection.size === "norm" ? this.valuesOf(map.set, address, isWhole, "norm") : null;
    const sizes = norms && sizesOf(norms);
    return { map, colours, inks, sizes, lit: this.litIn(map.set), side: this.sideOf(map.set) };
  }

  isWhole(address: string): boolean {
    return this.whole !== null && address === this.selection.place;
  }

  legend(theme: Theme): ColourKey | null {
    const address = this.selection.place || [...this.maps.keys()][0];
    if (!address) return null;
    const isWhole = this.isWhole(address);
    const map = isWhole ? this.whole : this.maps.get(address);
    return map ? this.colouring(map.set, address, isWhole, theme).key : null;
  }

  /** The points that are lit: selected, or else hit by the search. */
  litIn(set: PointSet): Int32Array | null {
    if (!this.isLit) return null;
    let points = this.lights.get(set);
    if (!points) {
      points = this.picked.length ? pickedIn(set, this.picked) : set.pointsOf(this.hits ?? {});
      this.lights.set(set, points);
    }
    return points;
  }

  /** The points of the roles that are shown. */
  sideOf(set: PointSet): Int32Array | null {
    const { side } = this.selection;
    const known = this.sides.get(set);
    if (known?.side === side) return known.points;
    const isShown = set.clouds.map(({ role }) => side === "both" || role === side || !["query", "key"].includes(role));
    const all = Int32Array.from({ length: set.count }, (_, point) => point);
    const points = isShown.every(Boolean) ? null : all.filter((point) => isShown[set.cloud[point] as number]);
    this.sides.set(set, { side, points });
    return points;
  }

  private colouring(set: PointSet, address: string, isWhole: boolean, theme: Theme): Colouring {
    const { colour, safe } = this.selection;
    const isByHead = BY_HEAD.includes(colour);
    const name = [theme.name, colour, safe, isWhole ? " whole " : "", this.numberOf(set), isByHead ? address : ""].join(
      " ",
    );
    let colouring = this.colourings.get(name);
    if (!colouring) {
      const values = isByHead ? this.valuesOf(set, address, isWhole, colour) : null;
      const options = { name: isByHead && !values ? "role" : colour, isSafe: safe, theme, values };
      colouring = coloured(set, this.store.tokens, options);
      if (this.colourings.size > 600) this.colourings.clear();
      this.colourings.set(name, colouring);
    }
    return colouring;
  }

  private valuesOf(set: PointSet, address: string, isWhole: boolean, column: string): Float32Array | null {
    if (isWhole) return this.numbers[column] ?? null;
    const values = this.columns[column]?.[address];
    return values ? set.arranged(values) : null;
  }

  private numberOf(set: PointSet): number {
    const known = this.setNumbers.get(set) ?? ++this.nSets;
    this.setNumbers.set(set, known);
    return known;
  }
}

function kindOf({ method, dims, coordinates }: AtlasSelection): string {
  return [method, dims, coordinates].join();
}

function pickedIn(set: PointSet, picked: PickedPoints[]): Int32Array {
  const points: number[] = [];
  for (const { role, rows } of picked) {
    for (const row of rows) {
      const point = set.pointOf(role, row);
      if (point >= 0) points.push(point);
    }
  }
  return Int32Array.from(points).sort();
}

/** Diameters in 64ths of the usual, from half to 1.7 times, between the 2nd and the 98th percentile. */
function sizesOf(values: Float32Array): Uint8Array {
  const known = values.filter((value) => !Number.isNaN(value)).sort();
  const low = known[Math.floor((known.length - 1) * 0.02)] ?? 0;
  const high = known[Math.ceil((known.length - 1) * 0.98)] ?? 1;
  const range = high - low || 1;
  return Uint8Array.from(values, (value) =>
    Number.isNaN(value) ? 32 : 32 + Math.round(76 * Math.min(1, Math.max(0, (value - low) / range))),
  );
}
