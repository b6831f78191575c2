// Written by scripts/contract from the dataclasses on the Python side. Change those, not this.

/** One run: what was read, what there is to see, what the model answered. */
export interface TraceProps {
  id: string;
  model: string;
  record: string;
  input_kind: string;
  text: string | null;
  pair: string | null;
  target: string | null;
  edits: string[];
  warnings: string[];
  stacks: StackProps[];
  layers: SiteProps[];
  answers: AnswerProps[];
  no_answers: string;
  steps: (number | null)[] | null;
  difference: DifferenceProps | null;
  other_layers: OtherLayerProps[];
}

/** The tokens of one stack, column by column. `special` lists positions; `words` and `sentences` hold null there. `spaces` lists the positions before which the text has white space: what words and sentences are joined with. `looks` says what there is to look at: the part `image/NAME` or `sound/NAME`. */
export interface StackProps {
  name: string;
  kind: "text" | "patches" | "frames";
  grid: [number, number] | null;
  texts: string[];
  ids: (number | null)[];
  special: number[];
  words: (number | null)[];
  sentences: (number | null)[];
  segments: string[];
  spaces: number[];
  looks: "" | "image" | "sound";
}

/** One attention layer. Where scores, contributions or exact weights are missing, the reason is said. `grid` is that of the patches which its keys are (after special tokens), null where they are none; `places` numbers them in it where they are not taken row by row, −1 for what is no patch. */
export interface SiteProps {
  site: string;
  stack: string;
  kind: "self" | "cross";
  layer: number;
  n_heads: number;
  n_queries: number;
  n_keys: number;
  key_stack: string;
  is_causal: boolean;
  no_weights: string;
  no_scores: string;
  no_contributions: string;
  no_neurons: string;
  grid: [number, number] | null;
  places: number[];
}

/** The likeliest answers at one position of a stack; position −1 for a classifier, which answers once. */
export interface AnswerProps {
  stack: string;
  position: number;
  candidates: CandidateProps[];
}

/** One thing the model might answer. */
export interface CandidateProps {
  text: string;
  logprob: number;
  id: number;
}

/** The two runs of which a trace is the difference, by name, and how far they correspond, in words. */
export interface DifferenceProps {
  a: string;
  b: string;
  line: string;
}

/** A layer without softmax attention, and the class of the module that mixes its tokens. */
export interface OtherLayerProps {
  stack: string;
  layer: number;
  mixer: string;
}

/** Thumbnails of all heads; `cells` tells how many queries and keys one cell of a layer's maps stands for. `note` says where they are less than exact. */
export interface MapsProps {
  size: number;
  cells: Record<string, [number, number]>;
  note: string;
}

/** All heads of one layer, whole (`dense`) or the strongest keys of each query (`sparse`, `n_kept` of them). `queries` and `keys` name the tokens where they are read otherwise than one by one; empty when they are the trace's. */
export interface LayerProps {
  site: string;
  what: "pattern" | "contribution" | "scores";
  form: "dense" | "sparse";
  by: "tokens" | "words" | "sentences";
  n_kept: number;
  queries: string[];
  keys: string[];
}

/** Exact numbers of one token in one layer: from a query to all keys, or to a key from all queries. */
export interface RowProps {
  site: string;
  side: "query" | "key";
  index: number;
}

/** A rectangle of one head's pattern, max-pooled by `cell` queries and keys. */
export interface WindowProps {
  head: string;
  rows: [number, number];
  columns: [number, number];
  cell: [number, number];
}

/** Measures of every head; `heads` gives the order. */
export interface ScoresProps {
  heads: string[];
  methods: MethodProps[];
}

/** One measure: its name, what it says, what chance would give, and the range its bar is drawn in. */
export interface MethodProps {
  name: string;
  about: string;
  baseline: number | null;
  low: number;
  high: number;
}

/** Which tokens of two runs stand for the same. `no_difference` says why they cannot be subtracted. */
export interface AlignmentProps {
  by: "tokens" | "words" | "sentences";
  line: string;
  no_difference: string;
  stacks: PairedStackProps[];
}

/** A stack of the first run and its partner in the second; `texts` names their pairs, `same` those that agree. */
export interface PairedStackProps {
  stack: string;
  other: string;
  texts: string[];
  same: boolean[];
  is_whole: boolean;
}

/** From one word to another, in two runs. */
export interface RelationProps {
  source: string;
  target: string;
  a: RankingProps;
  b: RankingProps;
}

/** The heads of one model, the best for a relation first; `note` says why none is, if none is. */
export interface RankingProps {
  model: string;
  heads: string[];
  n_layers: number;
  note: string;
}

/** Heads that were looked for. Arrays [head]: `values`, `baselines`, `low`, `high`, NaN where there is none; and `measure`, which `method` is about: what heads are coloured and sorted by, above their own baselines where they have such. `order` says what comes first: what is furthest above its baseline, or what is largest either way. */
export interface FoundProps {
  heads: string[];
  method: MethodProps;
  order: "above" | "size";
  n_inputs: number;
  notes: string[];
  python: string;
}

/** What a use case found on a model: sentences, tables, and (array `measure` [head]) what heads are ranked by. `text` and `pair` are an input on which those heads can be looked at. */
export interface EvidenceProps {
  name: string;
  title: string;
  model: string;
  sentences: string[];
  tables: TableProps[];
  heads: string[];
  method: MethodProps;
  python: string;
  text: string;
  pair: string | null;
}

/** A table of evidence, and how to read it. */
export interface TableProps {
  title: string;
  about: string;
  columns: ColumnProps[];
  n_rows: number;
}

/** One column of a table: texts and names of heads are here, numbers are in the array `TABLE/COLUMN`. */
export interface ColumnProps {
  name: string;
  kind: "text" | "number" | "heads";
  texts: string[];
}

/** What a report over a corpus says of the heads of this model. Without a report `corpus` is empty. Arrays: one per method, by its name [head]; where known `low/NAME`, `high/NAME`, `baseline/NAME` likewise. */
export interface ReportProps {
  corpus: string;
  n: number;
  heads: string[];
  methods: MethodProps[];
  roles: RoleProps[];
}

/** The verdict on one head; without a role, what came nearest. */
export interface RoleProps {
  head: string;
  role: string;
  findings: FindingProps[];
  nearest: FindingProps | null;
  cases: CaseProps[];
}

/** One role of a head, with its evidence over a corpus. */
export interface FindingProps {
  role: string;
  kind: string;
  measure: string;
  score: number;
  baseline: number | null;
  low: number | null;
  high: number | null;
  n: number;
  criterion: string;
  source: string;
}

/** A sentence in which a head does what it does: tokens, where white space comes before one, and the strongest pairs as (query, key, weight). `queries` are there where they are other tokens than the keys. */
export interface CaseProps {
  id: string;
  about: string;
  tokens: string[];
  spaces: number[];
  pairs: [number, number, number][];
  queries: string[] | null;
  query_spaces: number[] | null;
}

/** A model that can be chosen; what is only known once it is loaded is empty before. */
export interface ModelProps {
  name: string;
  about: string;
  is_loaded: boolean;
  kinds: string[];
  shape: string;
  /** How much of it can be seen, for everybody; `coverage` says how. */
  covers: string;
  coverage: string;
  max_tokens: number | null;
  presets: PresetProps[];
  /** Whether it can be asked to write text. */
  writes: boolean;
}

/** An input to start from; `sort` is the measure that ranks heads for it, where one does. The page opens on such an input, if the model has one. */
export interface PresetProps {
  name: string;
  look_for: string;
  text: string | null;
  pair: string | null;
  target: string | null;
  media: string | null;
  sort: string;
}

/** What a saved page holds, as its part `saved`: which view, the selection it opens with, what was left out. */
export interface SavedProps {
  view: string;
  selection: Record<string, unknown>;
  notes: string[];
  theme: "system" | "light" | "dark";
}

/** One stack, layer by layer. `places` name where the residual stream is read; `texts` what `lens` counts in. Arrays: `norm`, `cosine` [place, token]; `attention`, `cross`, `mlp` [layer, token], norms of what was written; of the tokens from `first` on: `lens`, `logprob` [place, token, k], `rank`, `answer` [place, token], `neuron`, `value`, `share` [layer, token, k], and by attention layer (`heads/L3`) what its heads wrote [head, token]. Of two runs there are `a:norm` and `b:norm`, and so on: `activation_differences.py` lists them. */
export interface ActivationsProps {
  stack: string;
  places: string[];
  layers: string[];
  first: number;
  count: number;
  texts: string[];
  n_neurons: number;
  is_sum: boolean;
  no_lens: string;
  no_neurons: string;
  no_written: string;
}

/** Where in a corpus a head, a coordinate or a neuron is strongest; `values` holds all tokens one after another. */
export interface ExamplesProps {
  place: string;
  corpus: string;
  n_examples: number;
  lowest: boolean;
  examples: ExampleProps[];
}

/** A stretch of one text: its tokens, the one that stands out (−1: it is of another text), and how strong it is. */
export interface ExampleProps {
  id: string;
  tokens: string[];
  token: number;
  value: number;
  /** What stands out, in words. */
  label: string;
}

/** What edits did to the output at positions of a stack, from `first` on (−1: a classifier, which answers once). Arrays: `kl` [position], `candidates` [position, rank] (places in `texts`, −1 for none), `before` and `after` their log-probabilities. The losses are those of the text itself, where the model predicts it. */
export interface EffectProps {
  stack: string;
  first: number;
  texts: string[];
  mean_kl: number;
  loss_before: number | null;
  loss_after: number | null;
}

/** What the model writes without the edits and with them, up to so many tokens. */
export interface WrittenProps {
  n: number;
  before: string;
  after: string;
}

/** How one head's weights come about from queries first to last (not included), term by term. `scaling` is null, and `no_terms` says why, where the weights do not follow from queries and keys alone. `key_head` is the one of `n_key_heads` that this head shares with others. `bias` is the form of what is added to the scores, `largest` the size from which each kind of vector is drawn in full colour. */
export interface NeuronProps {
  head: string;
  queries: [number, number];
  dim: number;
  value_dim: number;
  scaling: number | null;
  softcap: number | null;
  key_head: number;
  n_key_heads: number;
  bias: "" | "key" | "offset" | "dense" | "windows";
  sink: number | null;
  no_terms: string;
  notes: string[];
  largest: Record<string, number>;
}

/** Queries, keys, values or outputs (`mixed`) of one head, of tokens first to last (not included). */
export interface VectorsProps {
  head: string;
  of: "query" | "key" | "value" | "mixed";
  rows: [number, number];
  n_tokens: number;
  largest: number;
}

/** A picture as the model saw it, of `size` (height, width); a patch is so many of the pixels sent. */
export interface ImageProps {
  stack: string;
  size: [number, number];
  patch: [number, number];
  note: string;
}

/** A sound of `heard` seconds; the model's frames span `seconds`. */
export interface SoundProps {
  stack: string;
  seconds: number;
  heard: number;
  note: string;
}

/** Attention followed from a layer through all below it (Abnar & Zuidema, 2020). */
export interface RolloutProps {
  site: string;
}

/** Where one logit came from: the answer `text` at `position` (−1: the whole input), less `other` where it is a contrast. The tokens of `stacks` carry `carried` of it together; `bias_share` is the share that no input carries. Arrays: `tokens/STACK` [token]; of the heads, `share` of their layer and `raw` in units of the logit [head]. */
export interface RelevanceProps {
  rule: "cp" | "attn";
  position: number;
  text: string;
  other: string | null;
  logit: number;
  carried: number;
  bias_share: number | null;
  heads: string[];
  stacks: string[];
}

/** The words of the sentence: the positions of their tokens in `stack`, and where its tree is known the head of each (−1: the root) with the relation. Empty where the input comes without words. */
export interface GoldProps {
  stack: string;
  words: number[][];
  forms: string[];
  heads: number[];
  relations: string[];
}

/** The tree that a head's attention induces over those words: the head of each (−1: the root, −2: without tokens). Beside the gold tree: which words look most at their own head, how many words have their head in the tree, out of how many, as a share, and what branching would give. `no_tree` says why there is none. */
export interface TreeProps {
  head: string;
  way: "A" | "AT" | "A+AT";
  heads: number[];
  agrees: boolean[];
  uas: number | null;
  baselines: Record<string, number>;
  n_words: number;
  n_right: number;
  no_tree: string;
}

/** Run a model on one input. The same request finds the same run again while the server remembers it. */
export interface RunRequest {
  model: string;
  text: string | null;
  pair: string | null;
  target: string | null;
  chat: ChatMessage[] | null;
  truncate: boolean;
  record: "summary" | "heads" | "full" | null;
  /** Interventions, each as the Python that makes it: `silence('L3H2')`. */
  edits: string[];
  /** How many tokens the model writes after the text. */
  generate: number;
  /** An image or a sound: the id that its upload was given, or `preset:NAME`. */
  media: string | null;
}

/** One turn of a conversation. */
export interface ChatMessage {
  role: string;
  content: string;
}

/** A picture or a sound that was uploaded: its id for `RunRequest.media`, what it is, what is done to it. */
export interface MediaProps {
  id: string;
  kind: "image" | "audio";
  about: string;
  notes: string[];
}

/** One line of the answer to a run or a task: where it stands. The last line is done, failed, cancelled or absent. A run counts layers; a task counts what is done of how many things, and ends with the id of its result. Absent is the answer to `only_kept`: the server holds no result of this request, and has computed none. */
export interface RunEvent {
  state: "queued" | "loading" | "running" | "done" | "failed" | "cancelled" | "absent";
  ahead: number;
  layer: number;
  n_layers: number;
  done: number;
  of: number;
  trace: string;
  result: string;
  error: string;
  message: string;
  hint: string;
}

/** Have something worked out that needs more than a trace: of a run, or (without one) of a model. */
export interface TaskRequest {
  name: string;
  trace: string;
  model: string;
  options: Record<string, unknown>;
}

/** Load a model, to learn what it takes: a built-in name, a folder or a hub id, as far as the server may. */
export interface LoadRequest {
  name: string;
}

/** Save what is on screen as one HTML file: a view, and the selection it opens with. */
export interface PageRequest {
  view: "model" | "head" | "neuron" | "activations";
  selection: Selection;
  /** The id of a run that is subtracted from the one that is saved. */
  minus: string;
}

/** What is looked at, and how. All views share one; it is in links and in saved pages. */
export interface Selection {
  scale: "model" | "head" | "neuron" | "activations";
  /** The attention layer in view, as Python prints it: `L3`, `encoder.L0`, `cross.L2`. */
  site: string;
  /** The head in focus, by its index in that layer. */
  head: number;
  /** The heads of the layer that the head view draws; at least one. */
  heads: number[];
  /** Draw the mean of these heads instead of each. */
  average: boolean;
  /** Lines between two columns of tokens, a matrix, over the picture, or along the sound. `auto` fits the input. */
  form: "auto" | "lines" | "matrix" | "image" | "time";
  axis: "vertical" | "horizontal";
  what: "pattern" | "contribution" | "scores";
  by: "tokens" | "words" | "sentences";
  /** Groups of tokens that are hidden; rows are renormalised to sum to 1. */
  hide: ("special" | "first")[];
  /** Single tokens switched off, as `stack:position` in the model's own tokens. */
  off: string[];
  /** Which lines are drawn: all that are visible, those from `threshold` on, the strongest that make up a share `mass` of each query's weight, or the `top` strongest of each query. */
  filter: "all" | "threshold" | "mass" | "top";
  threshold: number;
  mass: number;
  top: number;
  /** Between which texts of a pair: AB is from a query in A to a key in B. */
  pair: "all" | "AA" | "AB" | "BA" | "BB";
  /** The token whose lines alone are drawn, as side and position among the tokens as read; null for all. */
  token: Spot | null;
  /** Model view: heads as heat maps or as lines. */
  thumbnails: "heat" | "lines";
  /** Model view: the measure that heads are ordered by; empty for the order of layers. */
  sort: string;
  /** Model view: the measure that heads are coloured by; empty for their weights. */
  colour: string;
  /** The last search for heads, as `app/find/findQuery.ts` writes it; empty for none. */
  find: string;
  /** Model view: only heads whose colour measure is at least this share of its range; 0 for all. */
  least: number;
  /** Neuron view: the order of neurons: by index, by |q × k| of what is attended to or of the key `against`, or (with `every`) those first that depend least on the token. */
  order: "index" | "contribution" | "token" | "spread";
  against: number | null;
  /** Neuron view: the vectors of all tokens instead of one query. */
  every: "query" | "key" | "value" | "mixed" | null;
  /** Neuron view: columns that are folded away. */
  fold: ("key" | "product" | "value" | "weighted")[];
  /** A second run: beside the first, or subtracted from it. */
  compare: "off" | "side" | "difference";
  /** The head of the second run that stands beside, where that is another than the first's: `L3H2`, or empty. */
  beside: string;
  /** Activations: what each layer would predict, norms of the residual stream and of what was written, cosines. */
  stream: "lens" | "norm" | "attention" | "cross" | "mlp" | "cosine";
  /** Activations of two runs: whose prediction is followed. `either`: at each place, what changed most in A or B. */
  whose: "either" | "A" | "B";
  /** Of generated text: the step whose tokens alone are shown; null for all. */
  step: number | null;
  /** Over a picture or a sound: what the token in focus attends to, or what attends to it. */
  direction: "from" | "to";
  /** Over a picture: arrows from each patch to its strongest, as many as `mass` says. */
  arrows: boolean;
  /** Over a picture: attention followed through all layers up to this one. */
  rollout: boolean;
  /** The answer whose relevance colours the tokens, as `data/relevance.ts` writes it; empty for none. */
  relevance: string;
  /** Where the input has a tree: none, the gold tree, or also that of the head's attention, by which weights. */
  arcs: "none" | "gold" | "A" | "AT" | "A+AT";
}

/** A token on one side, by its position among the tokens as read. */
export interface Spot {
  side: "query" | "key";
  index: number;
}

/** A run that the server still has: its trace's id, what was asked, when (seconds since 1970), how long it is. */
export interface Remembered {
  id: string;
  request: RunRequest;
  when: number;
  n_tokens: number;
}

/** What went wrong, for people: what was asked, what exists, what to do. */
export interface Problem {
  error: string;
  message: string;
  hint: string;
}

/** What this server offers, and its limits. */
export interface Settings {
  version: string;
  models: ModelProps[];
  allows_hub: boolean;
  allows_folders: boolean;
  saves_models: boolean;
  max_characters: number;
  max_turns: number;
  default_model: string;
  patterns: PatternOffer[];
  use_cases: UseCaseOffer[];
  max_media_bytes: number;
  /** The name of the corpus that examples are taken from; empty where there is none. */
  corpus: string;
  /** Sentences of that corpus to start from; one with its tree is CoNLL-U. */
  samples: PresetProps[];
}

/** A pattern that heads can be looked for by, and what a text needs for it. */
export interface PatternOffer {
  name: string;
  about: string;
  needs: string;
}

/** A use case that can be run on a model. */
export interface UseCaseOffer {
  name: string;
  title: string;
  about: string;
  needs_pairs: boolean;
}

export const DEFAULT_SELECTION: Selection = {
  "scale": "model",
  "site": "",
  "head": 0,
  "heads": [],
  "average": false,
  "form": "auto",
  "axis": "vertical",
  "what": "pattern",
  "by": "tokens",
  "hide": [],
  "off": [],
  "filter": "all",
  "threshold": 0.05,
  "mass": 0.7,
  "top": 3,
  "pair": "all",
  "token": null,
  "thumbnails": "heat",
  "sort": "",
  "colour": "",
  "find": "",
  "least": 0.0,
  "order": "index",
  "against": null,
  "every": null,
  "fold": [],
  "compare": "off",
  "beside": "",
  "stream": "lens",
  "whose": "either",
  "step": null,
  "direction": "from",
  "arrows": false,
  "rollout": false,
  "relevance": "",
  "arcs": "A"
};

export const SELECTION_CHOICES = {
  scale: ["model", "head", "neuron", "activations"],
  form: ["auto", "lines", "matrix", "image", "time"],
  axis: ["vertical", "horizontal"],
  what: ["pattern", "contribution", "scores"],
  by: ["tokens", "words", "sentences"],
  hide: ["special", "first"],
  filter: ["all", "threshold", "mass", "top"],
  pair: ["all", "AA", "AB", "BA", "BB"],
  thumbnails: ["heat", "lines"],
  order: ["index", "contribution", "token", "spread"],
  every: ["query", "key", "value", "mixed"],
  fold: ["key", "product", "value", "weighted"],
  compare: ["off", "side", "difference"],
  stream: ["lens", "norm", "attention", "cross", "mlp", "cosine"],
  whose: ["either", "A", "B"],
  direction: ["from", "to"],
  arcs: ["none", "gold", "A", "AT", "A+AT"],
} as const;
