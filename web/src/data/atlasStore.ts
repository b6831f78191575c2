/** What the view of an atlas asks for, part by part, and keeps: tokens, maps, numbers of points and of heads. */

import type {
  AtlasColumnsProps,
  AtlasDistancesProps,
  AtlasHeadMapProps,
  AtlasLinesProps,
  AtlasMapsProps,
  AtlasPlaceProps,
  AtlasProps,
  AtlasScoresProps,
  AtlasSelection,
} from "../contract";
import { type Source, SourceError } from "../source";
import { floats, type Grid, type Part } from "../wire";
import { type HeadMap, headMap, PointSet } from "./atlasPoints";
import { AtlasTokens } from "./atlasTokens";

/** Points in the picture of all heads: more would move too slowly. */
const MOST_POINTS = 1_500_000;
/** And of each head: all that is ever asked for. */
const MOST_A_HEAD = 200_000;

/** The maps of all heads that have one, by address. */
export type HeadMaps = Map<string, HeadMap>;

/** Whether something is missing because the atlas was made without the vectors. */
export function isNotInAtlas(thrown: unknown): boolean {
  return thrown instanceof SourceError && thrown.error === "NotInAtlasError";
}

/** How points are mapped. */
export type MapKind = Pick<AtlasSelection, "method" | "dims" | "coordinates">;

export class AtlasStore {
  private readonly tokenTables = new Map<string, AtlasTokens>();
  private readonly wholeSets = new Map<string, PointSet>();
  readonly places: Map<string, AtlasPlaceProps>;
  /** Points of a head in the picture of all. */
  readonly sampleSize: number;

  constructor(
    private readonly source: Source,
    readonly atlas: AtlasProps,
  ) {
    this.places = new Map(atlas.places.map((place) => [place.address, place]));
    const counts = atlas.places.map(({ clouds }) => clouds.reduce((sum, { stack }) => sum + this.tokensOf(stack), 0));
    const room = Math.max(100, Math.floor(MOST_POINTS / Math.max(1, atlas.places.length)));
    this.sampleSize = Math.max(2, Math.min(room, MOST_A_HEAD, Math.max(0, ...counts)));
  }

  get tokens(): Record<string, AtlasTokens> {
    return Object.fromEntries(this.tokenTables);
  }

  async loadTokens(signal: AbortSignal): Promise<void> {
    const stacks = this.atlas.stacks.filter(({ name }) => !this.tokenTables.has(name));
    await Promise.all(
      stacks.map(async ({ name }) => {
        const part = await this.source.part<never>(`tokens?stack=${encodeURIComponent(name)}`, signal);
        this.tokenTables.set(name, new AtlasTokens(part));
      }),
    );
  }

  /** The maps of all heads, of a sample of points. */
  async maps(kind: MapKind, signal: AbortSignal): Promise<HeadMaps> {
    const { props, arrays } = await this.source.part<AtlasMapsProps>(
      `maps?${mapKey(kind)}&points=${this.sampleSize}`,
      signal,
    );
    const sets = new Map<string, PointSet>();
    const low = floats(arrays.low as Grid);
    const steps = floats(arrays.step as Grid);
    const maps: HeadMaps = new Map();
    props.heads.forEach((address, index) => {
      const { clouds } = this.place(address);
      const name = clouds.map(({ role, stack }) => `${role} ${stack}`).join();
      const set =
        sets.get(name) ?? new PointSet(clouds.map((cloud) => ({ ...cloud, rows: rowsOf(arrays, cloud.stack) })));
      sets.set(name, set);
      const lowest = low.subarray(index * props.dims, (index + 1) * props.dims);
      const values = (arrays[address] as Grid).values as Uint16Array;
      maps.set(address, headMap(set, values, props.dims, lowest, steps[index] as number));
    });
    return maps;
  }

  /** The map of one head, of all its points. */
  async headMap(address: string, kind: MapKind, signal: AbortSignal): Promise<HeadMap> {
    const key = `map?head=${encodeURIComponent(address)}&${mapKey(kind)}`;
    const { props, arrays } = await this.source.part<AtlasHeadMapProps>(key, signal);
    const set = this.wholeSet(address);
    const values = (arrays.points as Grid).values as Uint16Array;
    const [step] = floats(arrays.step as Grid);
    return headMap(set, values, props.dims, floats(arrays.low as Grid), step as number);
  }

  /** All points of a head. */
  wholeSet(address: string): PointSet {
    const { clouds } = this.place(address);
    const name = clouds.map(({ role, stack }) => `${role} ${stack}`).join();
    let set = this.wholeSets.get(name);
    if (!set) {
      set = new PointSet(clouds.map((cloud) => ({ ...cloud, rows: counting(this.tokensOf(cloud.stack)) })));
      this.wholeSets.set(name, set);
    }
    return set;
  }

  /** Numbers of a head's points [point], as they came. */
  async columns(address: string, signal: AbortSignal): Promise<Record<string, Float32Array>> {
    const { arrays } = await this.source.part<AtlasColumnsProps>(`columns?head=${encodeURIComponent(address)}`, signal);
    return Object.fromEntries(Object.entries(arrays).map(([name, grid]) => [name, floats(grid)]));
  }

  /** A number of the points of every head, of the same sample as its map. */
  async sampledColumn(name: string, signal: AbortSignal): Promise<Record<string, Float32Array>> {
    const key = `columns?name=${encodeURIComponent(name)}&points=${this.sampleSize}`;
    const { arrays } = await this.source.part<AtlasColumnsProps>(key, signal);
    return Object.fromEntries(Object.entries(arrays).map(([address, grid]) => [address, floats(grid)]));
  }

  scores(signal: AbortSignal): Promise<Part<AtlasScoresProps>> {
    return this.source.part<AtlasScoresProps>("scores", signal);
  }

  distances(address: string, coordinates: string, signal: AbortSignal): Promise<Part<AtlasDistancesProps>> {
    const key = `distances?head=${encodeURIComponent(address)}&coordinates=${coordinates}&pairs=3000`;
    return this.source.part<AtlasDistancesProps>(key, signal);
  }

  strongestKeys(address: string, signal: AbortSignal): Promise<Part<AtlasLinesProps>> {
    return this.source.part<AtlasLinesProps>(`lines?head=${encodeURIComponent(address)}&top=2`, signal);
  }

  private tokensOf(stack: string): number {
    return this.atlas.stacks.find(({ name }) => name === stack)?.n_tokens ?? 0;
  }

  private place(address: string): AtlasPlaceProps {
    return this.places.get(address) as AtlasPlaceProps;
  }
}

function mapKey({ method, dims, coordinates }: MapKind): string {
  return `method=${method}&dims=${dims}&coordinates=${coordinates}`;
}

function rowsOf(arrays: Record<string, Grid>, stack: string): Int32Array {
  return (arrays[`rows:${stack}`] as Grid).values as Int32Array;
}

function counting(count: number): Int32Array {
  return Int32Array.from({ length: count }, (_, index) => index);
}
