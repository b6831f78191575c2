/** One example of an atlas as the head view reads it: a trace of one layer, whose only pattern is that of the atlas. */

import type {
  AtlasPatternProps,
  AtlasPlaceProps,
  AtlasProps,
  ImageProps,
  LayerProps,
  SiteProps,
  StackProps,
  TraceProps,
} from "../contract";
import { type Source, SourceError } from "../source";
import { floats, type Grid, type Part } from "../wire";
import type { AtlasTokens } from "./atlasTokens";

export interface Example {
  trace: TraceProps;
  source: Source;
}

export interface ExampleParts {
  atlas: AtlasProps;
  place: AtlasPlaceProps;
  pattern: Part<AtlasPatternProps>;
  tokens: Record<string, AtlasTokens>;
  /** The picture whose patches the tokens are, if they are. */
  image: Part<ImageProps> | null;
  /** Weigh by the norm of values, where they are known. */
  isWeighed: boolean;
}

export function exampleOf(parts: ExampleParts): Example {
  const { atlas, place, pattern, tokens, image } = parts;
  const { query_stack, key_stack, first_query, first_key } = pattern.props;
  const weights = weighed(pattern, parts.isWeighed);
  const [nQueries, nKeys] = weights.shape as [number, number];
  const stacks = [stackOf(tokens[query_stack] as AtlasTokens, first_query, nQueries, image)];
  if (key_stack !== query_stack) stacks.push(stackOf(tokens[key_stack] as AtlasTokens, first_key, nKeys, image));
  const head = place.head ?? 0;
  const site: SiteProps = {
    site: place.site,
    stack: query_stack,
    kind: key_stack === query_stack ? "self" : "cross",
    layer: place.layer,
    n_heads: head + 1,
    n_queries: nQueries,
    n_keys: nKeys,
    key_stack,
    is_causal: place.is_causal,
    no_weights: "",
    no_scores: "",
    no_contributions: "",
    no_neurons: "",
    window: 0,
    global_tokens: [],
    no_token_edits: "",
    grid: (stacks.at(-1) as StackProps).grid,
    places: [],
    n_experts: 0,
  };
  // The part is of the whole layer; of this one only the head in focus is there, the others are empty.
  const values = new Float32Array((head + 1) * nQueries * nKeys);
  values.set(floats(weights), head * nQueries * nKeys);
  const layer: Part<LayerProps> = {
    kind: "layer",
    props: { site: place.site, what: "pattern", form: "dense", by: "tokens", n_kept: nKeys, queries: [], keys: [] },
    arrays: { weights: { dtype: "float32", code: "linear", shape: [head + 1, nQueries, nKeys], values } },
  };
  return { trace: traceOf(atlas, stacks, site), source: sourceOf(layer, image) };
}

/** The weights, or a_ij |v_j| with rows renormalised. */
function weighed({ arrays }: Part<AtlasPatternProps>, isWeighed: boolean): Grid {
  const weights = arrays.weights as Grid;
  if (!isWeighed || !arrays.value_norm) return weights;
  const norms = floats(arrays.value_norm);
  const before = floats(weights);
  const values = new Float32Array(before.length);
  for (let start = 0; start < before.length; start += norms.length) {
    let total = 0;
    for (let key = 0; key < norms.length; key++) total += (before[start + key] as number) * (norms[key] as number);
    const share = total > 0 ? 1 / total : 0;
    for (let key = 0; key < norms.length; key++)
      values[start + key] = (before[start + key] as number) * (norms[key] as number) * share;
  }
  return { ...weights, dtype: "float32", code: "linear", values };
}

function stackOf(tokens: AtlasTokens, first: number, count: number, image: Part<ImageProps> | null): StackProps {
  const rows = Array.from({ length: count }, (_, index) => first + index);
  const arePatches = tokens.has("patch_row");
  const extent = (column: string) => Math.max(...rows.map((row) => tokens.at(column, row))) + 1;
  const ends = rows.map((row) => tokens.at("end", row));
  return {
    name: tokens.stack,
    kind: arePatches ? "patches" : "text",
    grid: arePatches ? [extent("patch_row"), extent("patch_column")] : null,
    texts: rows.map((row) => tokens.text(row)),
    ids: rows.map(() => null),
    special: rows.flatMap((row, position) => (tokens.isSpecial(row) ? [position] : [])),
    words: rows.map((row) => (tokens.at("word", row) < 0 ? null : tokens.at("word", row))),
    sentences: rows.map(() => 0),
    segments: rows.map(() => "A"),
    spaces: rows.flatMap((row, index) =>
      index && tokens.at("start", row) > (ends[index - 1] as number) ? [index] : [],
    ),
    looks: arePatches && image ? "image" : "",
    replaced: [],
    boxes: [],
    answer: null,
  };
}

function traceOf(atlas: AtlasProps, stacks: StackProps[], site: SiteProps): TraceProps {
  return {
    id: atlas.id,
    model: atlas.model_name,
    record: "heads",
    input_kind: "text",
    text: null,
    pair: null,
    target: null,
    edits: [],
    warnings: [],
    stacks,
    layers: [site],
    answers: [],
    no_answers: "",
    steps: null,
    difference: null,
    other_layers: [],
    edited_heads: [],
    edited_weights: [],
    edited_layers: [],
    pruned_heads: [],
  };
}

function sourceOf(layer: Part<LayerProps>, image: Part<ImageProps> | null): Source {
  return {
    isLive: false,
    has: () => false,
    part<Props>(key: string): Promise<Part<Props>> {
      const part: Part<unknown> | null = key.startsWith("layer/") ? layer : key.startsWith("image/") ? image : null;
      if (part) return Promise.resolve(part as Part<Props>);
      return Promise.reject(new SourceError(`there is no ${key} in an atlas`));
    },
  };
}
