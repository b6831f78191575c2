// Written by scripts/contract from the dataclasses on the Python side. Change those, not this.

/** One run: what was read, what was edited, what there is to see, what the model answered. `edits` are the Python that makes them; `edited_heads`, `edited_layers` and `edited_weights` are what they act on. */
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
  edited_heads: string[];
  edited_weights: EditedWeightsProps[];
  edited_layers: EditedLayerProps[];
  /** Heads that are pruned in the model's weights: they attend, and add nothing to the output. */
  pruned_heads: string[];
}

/** The tokens of one stack, column by column. `special` lists positions; `words` and `sentences` hold null there. `spaces` lists the positions before which the text has white space: what words and sentences are joined with. `looks` says what there is to look at: the part `image/NAME` or `sound/NAME`. `replaced` lists the positions whose token an edit put there. Of an image within a text, `boxes` are where its tokens lie in the picture (left, top, right and bottom, as shares of its width and height), null for other tokens; empty where no token has a place. `answer` is the first and the last token of the span that the model answers with. */
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
  replaced: number[];
  boxes: ([number, number, number, number] | null)[];
  answer: [number, number] | null;
}

/** One attention layer. Where scores, contributions or exact weights are missing, the reason is said. `no_token_edits` says why edits cannot choose its tokens. `window` is how many keys a query sees to one side, itself included (0: no window), apart from `global_tokens`, which see all and are seen by all. `grid` is that of the patches which its keys are (after special tokens), null where they are none; `places` numbers them in it where they are not taken row by row, −1 for what is no patch. */
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
  no_token_edits: string;
  grid: [number, number] | null;
  places: number[];
  window: number;
  global_tokens: number[];
  /** Of a mixture of experts: how many there are; 0 where no router was observed. */
  n_experts: number;
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

/** The weights of a head that an edit of single tokens set: of `queries` on `keys`; no keys stand for all. */
export interface EditedWeightsProps {
  head: string;
  queries: number[];
  keys: number[];
}

/** A layer whose MLP neurons or residual stream an edit changed: no single head of it was. */
export interface EditedLayerProps {
  stack: string;
  layer: number;
  part: "mlp" | "residual";
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
  /** The languages that a speech model can be told to hear, as codes; empty for others. */
  languages: string[];
  /** What a speech model can be told to write: `transcribe`, `translate`; empty for others. */
  tasks: string[];
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

/** The text that the original (`before`) and the edited model (`after`) write: `n` tokens at most. */
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
  /** Whether the output is other than the sum of weight × value. */
  is_output_edited: boolean;
}

/** Queries, keys, values or outputs (`mixed`) of one head, of tokens first to last (not included). */
export interface VectorsProps {
  head: string;
  of: "query" | "key" | "value" | "mixed";
  rows: [number, number];
  n_tokens: number;
  largest: number;
}

/** A picture as the model saw it, of `size` (height, width); a patch is so many of the pixels sent. What lies outside of `areas` is no picture; without any, all of it is. */
export interface ImageProps {
  stack: string;
  size: [number, number];
  patch: [number, number];
  note: string;
  areas: ImageAreaProps[];
}

/** A copy of a picture that a model reads beside another: its name, its box as shares of all that is sent, and what it shows of the picture as it was given, in that one's pixels. */
export interface ImageAreaProps {
  name: string;
  box: [number, number, number, number];
  source: [number, number, number, number];
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

/** The experts that each token of a layer took (mixture of experts). */
export interface ExpertsProps {
  site: string;
  n_experts: number;
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

/** Whether an answer of the run needs the attention of heads. `answer` says which answer; a change of the output up to `same_output` counts as none; permuted figures are the median of `n_permutations`. */
export interface TrustProps {
  answer: string;
  same_output: number;
  n_permutations: number;
  badges: BadgeProps[];
}

/** The quick set on one head: the verdict, a sentence, and the figures behind it (none where it was not tested). `change_uniform`, `change_identity`, `change_permuted` are total variation, `tau_gradient` is Kendall's τ-b of attention with gradient × input; None where it is not known. */
export interface BadgeProps {
  head: string;
  verdict: "not supported" | "mixed" | "not tested";
  sentence: string;
  figures: Record<string, number | null>;
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

/** An atlas: what can be drawn, of which tokens, and what is made already. `absent` are layers that cannot be drawn, with the reason. `lacks` says what an atlas without queries and keys cannot answer; empty where it has them. `images` says whether examples can be looked at. */
export interface AtlasProps {
  id: string;
  name: string;
  title: string;
  /** The model as the server offers it; empty where it does not, so nothing can be run. */
  model: string;
  model_name: string;
  space: "query_key" | "value" | "mixed" | "residual";
  corpus: AtlasCorpusProps;
  has_vectors: boolean;
  has_scores: boolean;
  lacks: string;
  places: AtlasPlaceProps[];
  stacks: AtlasStackProps[];
  maps: AtlasMapProps[];
  absent: Record<string, string>;
  images: boolean;
}

/** What the atlas was made from: `n_sampled` of `n_examples` examples. */
export interface AtlasCorpusProps {
  name: string;
  kind: string;
  about: string;
  n_examples: number;
  n_sampled: number;
}

/** A head, or a depth of the residual stream (then `head` is null), and its clouds in the order of its points. */
export interface AtlasPlaceProps {
  address: string;
  site: string;
  layer: number;
  head: number | null;
  is_causal: boolean;
  clouds: AtlasCloudProps[];
}

/** The tokens of a stack in one role. */
export interface AtlasCloudProps {
  role: "query" | "key" | "value" | "mixed" | "residual";
  stack: string;
}

/** The tokens of a stack: how many, what they are, and the columns that have values. */
export interface AtlasStackProps {
  name: string;
  kind: "text" | "patches" | "frames";
  n_tokens: number;
  columns: string[];
}

/** A kind of map, and of how many heads it is made. */
export interface AtlasMapProps {
  method: "pca" | "tsne" | "umap";
  dims: number;
  coordinates: "raw" | "translated" | "scaled" | "lifted";
  n_heads: number;
}

/** The examples of an atlas: identifiers, texts by stack (from their tokens), and labels where there are some. Array `starts:STACK` [example + 1]: the first row of each. */
export interface AtlasExamplesProps {
  ids: string[];
  texts: Record<string, string[]>;
  labels: (string | null)[];
}

/** The tokens of a stack, as columns: arrays by name. Texts and tags are codes into `texts` and `tables`. */
export interface AtlasTokensProps {
  stack: string;
  n_tokens: number;
  texts: string[];
  tables: Record<string, string[]>;
}

/** A map of every head that has it, of a sample of rows (arrays `rows:STACK`). An array per head, uint16 [point, dimension]: x = `low` + `step` · u, with `low` [head, dimension], `step` [head]. */
export interface AtlasMapsProps {
  method: "pca" | "tsne" | "umap";
  dims: number;
  coordinates: "raw" | "translated" | "scaled" | "lifted";
  heads: string[];
}

/** All points of one head: `points` [point, dimension] uint16, `low` [dimension], `step` [1]. */
export interface AtlasHeadMapProps {
  head: string;
  method: "pca" | "tsne" | "umap";
  dims: number;
  coordinates: "raw" | "translated" | "scaled" | "lifted";
}

/** Numbers of points: all columns of one `head`, or the column `name` of every head for the sample of rows. */
export interface AtlasColumnsProps {
  head: string;
  name: string;
}

/** Numbers of the heads: arrays [head] by name (`ATLAS_SCORE_TERMS`), NaN where a number does not exist. */
export interface AtlasScoresProps {
  heads: string[];
}

/** Heads to look at first, kind by kind, the strongest first. */
export interface AtlasAnomaliesProps {
  rows: AtlasAnomalyProps[];
}

/** A head that stands out, by which number, and from where on a head does. */
export interface AtlasAnomalyProps {
  head: string;
  kind: string;
  label: string;
  value: number;
  threshold: number;
}

/** The strongest keys of every query of a head: `keys` [query, top] (−1 for none) and `weights`, from the stored queries and keys. `note` says what of the logits they leave out. */
export interface AtlasLinesProps {
  head: string;
  note: string;
}

/** A sample of pairs: `distance` in the full space and `logit`, rows `query` and `key`; correlations of these. */
export interface AtlasDistancesProps {
  head: string;
  coordinates: "raw" | "translated" | "scaled" | "lifted";
  n_pairs: number;
  pearson: number | null;
  spearman: number | null;
}

/** The pattern averaged by positions: `weights` [i, j], rows renormalised; `counts` [i, j] of examples. */
export interface AtlasAggregateProps {
  head: string;
  n_examples: number;
  note: string;
}

/** The pattern of one example: `weights` [query, key], and where known `value_norm` [key]. */
export interface AtlasPatternProps {
  head: string;
  example: number;
  query_stack: string;
  key_stack: string;
  first_query: number;
  first_key: number;
  note: string;
}

/** What a search hit (arrays `hits:STACK`), and the heads, those that gather the hits most first. */
export interface AtlasSearchProps {
  text: string;
  n_hits: number;
  note: string;
  heads: GatheringProps[];
}

/** How a head gathers hits: their mean distance over that of random tokens, with its interval and corrected p. */
export interface GatheringProps {
  head: string;
  ratio: number;
  low: number;
  high: number;
  p: number;
  n_clusters: number;
}

/** The nearest points of a point, the nearest first. */
export interface AtlasNeighboursProps {
  head: string;
  points: NearPointProps[];
}

/** A point near another, and how far away in the full space. */
export interface NearPointProps {
  role: "query" | "key" | "value" | "mixed" | "residual";
  stack: string;
  row: number;
  text: string;
  example: number;
  position: number;
  distance: number;
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
  /** The language of a sound, as `ModelProps.languages` has it. Default: the model detects it. */
  language: string | null;
  /** What a speech model writes: one of `ModelProps.tasks`. Default: the model's, which is to transcribe. */
  task: string | null;
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

/** One line of the answer to a run or a task: where it stands. The last line is done, failed, cancelled or absent. A run counts layers; a task counts what is done of how many things, and ends with the id of its result. `stage` says what is counted, where that changes on the way. Absent is the answer to `only_kept`: the server holds no result of this request, and has computed none. */
export interface RunEvent {
  state: "queued" | "loading" | "running" | "done" | "failed" | "cancelled" | "absent";
  ahead: number;
  layer: number;
  n_layers: number;
  done: number;
  of: number;
  stage: string;
  trace: string;
  result: string;
  error: string;
  message: string;
  hint: string;
  cut_to: string;
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
  view: "atlas" | "model" | "head" | "neuron" | "activations";
  selection: Selection;
  /** The id of a run that is subtracted from the one that is saved. */
  minus: string;
}

/** What is looked at, and how. All views share one; it is in links and in saved pages. */
export interface Selection {
  scale: "atlas" | "model" | "head" | "neuron" | "activations";
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

/** What went wrong, for people: what was asked, what exists, what to do. `cut_to` is what an input that is too long can be cut to, `512 tokens`; empty where that is not the problem. */
export interface Problem {
  error: string;
  message: string;
  hint: string;
  cut_to: string;
}

/** Have the map of all heads made, or the scores. */
export interface AtlasTaskRequest {
  task: "map" | "scores";
  method: "pca" | "tsne" | "umap";
  dims: number;
  coordinates: "raw" | "translated" | "scaled" | "lifted";
}

/** Make an atlas of a model: of texts, one an example, or of a corpus that the server has. */
export interface AtlasBuildRequest {
  model: string;
  corpus: "texts" | "server" | "builtin";
  texts: string[];
  points: number;
  title: string;
}

/** Save an atlas as one HTML file: these heads, or the one in view, or all, as far as there is room. */
export interface AtlasPageRequest {
  selection: AtlasSelection;
  heads: string[];
}

/** What of an atlas is looked at, and how. */
export interface AtlasSelection {
  /** The name of the atlas; empty for the first of the model on screen. */
  atlas: string;
  /** The head that fills the stage, by its address; empty for all heads. */
  place: string;
  method: "pca" | "tsne" | "umap";
  dims: number;
  coordinates: "raw" | "translated" | "scaled" | "lifted";
  /** What points are coloured by: `role`, `position`, `position5`, `token`, `special`, or a column of the atlas. */
  colour: string;
  /** Colours for people who cannot tell green from pink. */
  safe: boolean;
  size: "same" | "norm";
  side: "both" | "query" | "key";
  labels: boolean;
  /** Lines from each query to its strongest keys. */
  lines: boolean;
  /** The map of the head in focus, or its distances against logits. */
  plot: "map" | "distances";
  /** The point in focus. */
  token: AtlasSpot | null;
  /** Whether the example of that point is open beside the map. */
  sentence: boolean;
  /** Tokens hidden in that example; rows are renormalised to sum to 1. */
  hide: ("special" | "first")[];
  /** Weight by the norm of values, renormalised. */
  weigh: boolean;
  /** The pattern averaged by position over all examples, in place of the example's own. */
  average: boolean;
  /** Patches as small pictures instead of points. */
  pictures: boolean;
  /** All strong flows over the picture, instead of those of one patch. */
  flows: boolean;
  search: string;
  regex: boolean;
  ignore_case: boolean;
}

/** A point of a head: a row of the table of tokens, in one role. */
export interface AtlasSpot {
  role: "query" | "key" | "value" | "mixed" | "residual";
  row: number;
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
  /** The name of the corpus that examples are taken from. */
  corpus: string;
  /** Whether that is the built-in sentences, as the server was started without a corpus. */
  is_corpus_builtin: boolean;
  /** Sentences of that corpus to start from; one with its tree is CoNLL-U. */
  samples: PresetProps[];
  sweeps: SweepOffer[];
  atlases: AtlasOffer[];
  max_atlas_points: number;
}

/** A pattern that heads can be looked for by, what an input needs for it, and a text (or pair) that has that. `kinds` are the kinds of input of which the model must take one, empty for any. A pattern that `looks_ahead` cannot occur in a causal model. */
export interface PatternOffer {
  name: string;
  about: string;
  needs: string;
  text: string;
  pair: string | null;
  kinds: string[];
  looks_ahead: boolean;
}

/** A use case that can be run on a model. */
export interface UseCaseOffer {
  name: string;
  title: string;
  about: string;
  needs_pairs: boolean;
}

/** A sweep of pruned heads: its points, the untouched model first, then fewer and fewer heads of `total`. */
export interface SweepOffer {
  name: string;
  model: string;
  total: number;
  points: PointOffer[];
}

/** A point of a sweep: the name of its model, how its heads were chosen, how many it keeps, and its score. */
export interface PointOffer {
  model: string;
  about: string;
  n_kept: number;
  score: string;
}

/** An atlas: the id of its parts, its name in links, what it was made from, and the model to run. `model` is empty where this server does not offer the model, whose name is `model_name`. */
export interface AtlasOffer {
  id: string;
  name: string;
  title: string;
  model: string;
  model_name: string;
  n_heads: number;
  n_points: number;
  space: "query_key" | "value" | "mixed" | "residual";
  has_vectors: boolean;
}

/** A measure: its name in code, its label, its meaning in a phrase, its unit (empty: a share, 0 to 1), and chance. One with keys gives a score for each: "tags/to NOUN". `group` is where menus list it, `source` whose it is. */
export interface MeasureTerm {
  name: string;
  label: string;
  meaning: string;
  unit: string;
  chance: string;
  group: string;
  source: string;
}

/** A role: its name, what a head with it does, its family and its short form (made from the detail where empty). */
export interface RoleTerm {
  name: string;
  meaning: string;
  family: string;
  short: string;
}

/** An edit: its name in Python, its label, what it does, an example, and one edit in words. `phrase` holds arguments by name, in braces; `parameters` are those of the Python function, in order. Where the tokens of a phrase are not known, the label names the edit. */
export interface EditTerm {
  name: string;
  label: string;
  meaning: string;
  example: string;
  phrase: string;
  parameters: string[];
}

/** A scale: its name in code and in links, its label, and what it shows. */
export interface ScaleTerm {
  name: "atlas" | "model" | "head" | "neuron" | "activations";
  label: string;
  meaning: string;
}

/** A number of a head: its name in code, its label, and what it means. */
export interface AtlasScoreTerm {
  name: string;
  label: string;
  meaning: string;
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
  scale: ["atlas", "model", "head", "neuron", "activations"],
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

export const DEFAULT_ATLASSELECTION: AtlasSelection = {
  "atlas": "",
  "place": "",
  "method": "pca",
  "dims": 2,
  "coordinates": "scaled",
  "colour": "role",
  "safe": false,
  "size": "same",
  "side": "both",
  "labels": true,
  "lines": false,
  "plot": "map",
  "token": null,
  "sentence": false,
  "hide": [],
  "weigh": false,
  "average": false,
  "pictures": false,
  "flows": false,
  "search": "",
  "regex": false,
  "ignore_case": false
};

export const ATLASSELECTION_CHOICES = {
  method: ["pca", "tsne", "umap"],
  coordinates: ["raw", "translated", "scaled", "lifted"],
  size: ["same", "norm"],
  side: ["both", "query", "key"],
  plot: ["map", "distances"],
  hide: ["special", "first"],
} as const;

export const MEASURE_TERMS: Record<string, MeasureTerm> = {
  "relevance": {"name": "relevance", "label": "relevance", "meaning": "how much of the answer's logit came through the head, as a share of its layer (CP-LRP)", "unit": "", "chance": "none", "group": "Importance", "source": "Voita et al. (2019)"},
  "gate_importance": {"name": "gate_importance", "label": "gate gradient", "meaning": "|∂loss / ∂gate|, input by input", "unit": "loss per gate", "chance": "none", "group": "Importance", "source": "Michel et al. (2019)"},
  "ablation": {"name": "ablation", "label": "ablation", "meaning": "increase of the loss when the head's output is zero", "unit": "nats", "chance": "none", "group": "Importance", "source": ""},
  "confidence": {"name": "confidence", "label": "confidence", "meaning": "largest weight of each query, special tokens and, in a causal model, the first token excluded as keys, weights not renormalised; averaged over queries", "unit": "", "chance": "an even share of the keys that the query sees", "group": "Shape", "source": "Voita et al. (2019), section 4"},
  "peak_weight": {"name": "peak_weight", "label": "peak weight (all keys)", "meaning": "largest weight of each query on any key; averaged over queries", "unit": "", "chance": "an even share of the keys that the query sees", "group": "Shape", "source": ""},
  "entropy": {"name": "entropy", "label": "entropy", "meaning": "how spread out attention is: −Σ a log a, all keys", "unit": "nats", "chance": "log of the number of keys that the query sees", "group": "Shape", "source": ""},
  "variability": {"name": "variability", "label": "variability", "meaning": "how much the pattern changes from text to text, first ten tokens", "unit": "", "chance": "none", "group": "Shape", "source": "Vig & Belinkov (2019)"},
  "distance": {"name": "distance", "label": "distance", "meaning": "mean distance to the attended token, special tokens and, in a causal model, the first token excluded as keys, weights renormalised", "unit": "tokens", "chance": "mean distance under even attention", "group": "Shape", "source": "Vig & Belinkov (2019)"},
  "distance_all_keys": {"name": "distance_all_keys", "label": "distance (all keys)", "meaning": "mean distance to the attended token, all keys", "unit": "tokens", "chance": "mean distance under even attention", "group": "Shape", "source": ""},
  "sink": {"name": "sink", "label": "attention sink", "meaning": "mean weight on the first token, of later queries; the sink rate is the share of heads above 0.3", "unit": "", "chance": "an even share of the keys that the query sees", "group": "Long inputs", "source": "Gu et al. (2025)"},
  "recency": {"name": "recency", "label": "recency", "meaning": "weight on the first token and the last 64, of queries that see more; causal models", "unit": "", "chance": "an even share of the keys that the query sees", "group": "Long inputs", "source": ""},
  "effective_span": {"name": "effective_span", "label": "effective span", "meaning": "smallest number of tokens that hold 90 % of a query's attention", "unit": "tokens", "chance": "90 % of the keys that the query sees", "group": "Long inputs", "source": ""},
  "positional": {"name": "positional", "label": "positional", "meaning": "how often the largest weight is at the head's most frequent distance", "unit": "", "chance": "an even choice among the keys that the query sees", "group": "Position", "source": "Voita et al. (2019), section 5.1"},
  "previous_token": {"name": "previous_token", "label": "previous token", "meaning": "attention to the token just before", "unit": "", "chance": "an even share of the keys that the query sees", "group": "Position", "source": ""},
  "next_token": {"name": "next_token", "label": "next token", "meaning": "attention to the token just after", "unit": "", "chance": "an even share of the keys that the query sees", "group": "Position", "source": ""},
  "self_token": {"name": "self_token", "label": "self token", "meaning": "attention to the token itself", "unit": "", "chance": "an even share of the keys that the query sees", "group": "Position", "source": ""},
  "first_token": {"name": "first_token", "label": "first token", "meaning": "attention to the first token of the input", "unit": "", "chance": "an even share of the keys that the query sees", "group": "Position", "source": ""},
  "last_token": {"name": "last_token", "label": "last token", "meaning": "attention to the last token of the input", "unit": "", "chance": "an even share of the keys that the query sees", "group": "Position", "source": ""},
  "special_tokens": {"name": "special_tokens", "label": "special tokens", "meaning": "attention to special tokens, such as [CLS] and [SEP]", "unit": "", "chance": "an even share of the keys that the query sees", "group": "Position", "source": ""},
  "dependency_alignment": {"name": "dependency_alignment", "label": "dependency alignment", "meaning": "share of attention between words that the tree joins", "unit": "", "chance": "an even share of the keys that the query sees", "group": "Grammar", "source": "Vig & Belinkov (2019)"},
  "repeated_induction": {"name": "repeated_induction", "label": "induction (repeated tokens)", "meaning": "on random tokens given twice, attention to what followed the same token before", "unit": "", "chance": "an even share of the keys that the query sees", "group": "Tokens", "source": "Olsson et al. (2022)"},
  "repeated_duplicate": {"name": "repeated_duplicate", "label": "duplicate token (repeated tokens)", "meaning": "on random tokens given twice, attention to the same token before", "unit": "", "chance": "an even share of the keys that the query sees", "group": "Tokens", "source": ""},
  "copying": {"name": "copying", "label": "copying (weights)", "meaning": "of the tokens in sight whose logits the head raises, the share of those that it attends to", "unit": "", "chance": "1 / number of tokens in sight", "group": "Tokens", "source": "Olsson et al. (2022)"},
  "induction": {"name": "induction", "label": "induction", "meaning": "attention to what followed the same token before", "unit": "", "chance": "an even share of the keys that the query sees", "group": "Tokens", "source": "Olsson et al. (2022)"},
  "duplicate_token": {"name": "duplicate_token", "label": "duplicate token", "meaning": "attention to earlier occurrences of the same token", "unit": "", "chance": "an even share of the keys that the query sees", "group": "Tokens", "source": ""},
  "same_token": {"name": "same_token", "label": "same token", "meaning": "attention to other occurrences of the same token", "unit": "", "chance": "an even share of the keys that the query sees", "group": "Tokens", "source": ""},
  "rare_word": {"name": "rare_word", "label": "rare word", "meaning": "how often the largest weight is on the rarest token", "unit": "", "chance": "an even choice, ties counted", "group": "Tokens", "source": "Voita et al. (2019), section 5.3"},
  "two_rare_words": {"name": "two_rare_words", "label": "two rare words", "meaning": "how often the largest weight is on one of the two rarest tokens", "unit": "", "chance": "an even choice, ties counted", "group": "Tokens", "source": "Voita et al. (2019), section 5.3"},
  "punctuation": {"name": "punctuation", "label": "punctuation", "meaning": "attention to punctuation marks", "unit": "", "chance": "an even share of the keys that the query sees", "group": "Tokens", "source": ""},
  "paired_marks": {"name": "paired_marks", "label": "paired marks", "meaning": "attention to the other half of a pair of quotes or brackets", "unit": "", "chance": "an even share of the keys that the query sees", "group": "Tokens", "source": ""},
  "names": {"name": "names", "label": "names", "meaning": "attention to words with a capital inside a sentence", "unit": "", "chance": "an even share of the keys that the query sees", "group": "Tokens", "source": ""},
  "same_word_across": {"name": "same_word_across", "label": "same word across", "meaning": "of the attention that crosses to the other sentence, the share on the same word", "unit": "", "chance": "an even share of the keys that the query sees", "group": "Two sentences", "source": ""},
  "a_to_a": {"name": "a_to_a", "label": "A to A", "meaning": "attention of sentence A to sentence A", "unit": "", "chance": "an even share of the keys that the query sees", "group": "Two sentences", "source": ""},
  "a_to_b": {"name": "a_to_b", "label": "A to B", "meaning": "attention of sentence A to sentence B", "unit": "", "chance": "an even share of the keys that the query sees", "group": "Two sentences", "source": ""},
  "b_to_a": {"name": "b_to_a", "label": "B to A", "meaning": "attention of sentence B to sentence A", "unit": "", "chance": "an even share of the keys that the query sees", "group": "Two sentences", "source": ""},
  "b_to_b": {"name": "b_to_b", "label": "B to B", "meaning": "attention of sentence B to sentence B", "unit": "", "chance": "an even share of the keys that the query sees", "group": "Two sentences", "source": ""},
  "norm": {"name": "norm", "label": "output norm", "meaning": "Σ a ‖value · W_O‖: how much attention adds to the output", "unit": "norm", "chance": "output norm under even attention", "group": "What is added", "source": "Kobayashi et al. (2020)"},
  "norm_first": {"name": "norm_first", "label": "output share of the first token", "meaning": "of what attention adds to the output, the share of the first token", "unit": "", "chance": "an even share of the keys that the query sees", "group": "What is added", "source": "Kobayashi et al. (2020)"},
  "norm_special": {"name": "norm_special", "label": "output share of special tokens", "meaning": "of what attention adds to the output, the share of special tokens", "unit": "", "chance": "an even share of the keys that the query sees", "group": "What is added", "source": "Kobayashi et al. (2020)"},
  "norm_punctuation": {"name": "norm_punctuation", "label": "output share of punctuation", "meaning": "of what attention adds to the output, the share of punctuation", "unit": "", "chance": "an even share of the keys that the query sees", "group": "What is added", "source": "Kobayashi et al. (2020)"},
  "patch_self": {"name": "patch_self", "label": "same patch", "meaning": "attention from a patch to itself", "unit": "", "chance": "an even share of the keys that the query sees", "group": "Images", "source": ""},
  "patch_neighbour": {"name": "patch_neighbour", "label": "neighbouring patches", "meaning": "attention from a patch to the eight around it", "unit": "", "chance": "an even share of the keys that the query sees", "group": "Images", "source": ""},
  "patch_row": {"name": "patch_row", "label": "same row", "meaning": "attention from a patch to the rest of its row", "unit": "", "chance": "an even share of the keys that the query sees", "group": "Images", "source": ""},
  "patch_column": {"name": "patch_column", "label": "same column", "meaning": "attention from a patch to the rest of its column", "unit": "", "chance": "an even share of the keys that the query sees", "group": "Images", "source": ""},
  "patch_distance": {"name": "patch_distance", "label": "patch distance", "meaning": "mean distance to the attended patch", "unit": "patches", "chance": "mean distance under even attention", "group": "Images", "source": ""},
  "brightness": {"name": "brightness", "label": "brightness", "meaning": "mean brightness of the attended patches, 0 to 1", "unit": "", "chance": "mean of all patches", "group": "Images", "source": ""},
  "frequency": {"name": "frequency", "label": "frequency", "meaning": "mean spatial frequency of the attended patches", "unit": "cycles per patch", "chance": "mean of all patches", "group": "Images", "source": ""},
  "like_hue": {"name": "like_hue", "label": "similar hue", "meaning": "similarity in hue of a patch and those it attends to: cosine of the angle", "unit": "cosine", "chance": "mean over all pairs", "group": "Images", "source": ""},
  "like_brightness": {"name": "like_brightness", "label": "similar brightness", "meaning": "similarity in brightness of a patch and those it attends to: 1 − difference", "unit": "", "chance": "mean over all pairs", "group": "Images", "source": ""},
  "like_frequency": {"name": "like_frequency", "label": "similar frequency", "meaning": "similarity in frequency of a patch and those it attends to: 1 − difference", "unit": "", "chance": "mean over all pairs", "group": "Images", "source": ""},
  "syntactic": {"name": "syntactic", "label": "dependency relation", "meaning": "how often the largest weight is on the other end of the dependency", "unit": "", "chance": "always choosing the relation's most frequent distance", "group": "Dependencies", "source": "Voita et al. (2019), section 5.2"},
  "alignment": {"name": "alignment", "label": "alignment", "meaning": "F1 of each target word's strongest source word with a statistical aligner's links", "unit": "", "chance": "links along the diagonal", "group": "Alignment", "source": ""},
  "tags": {"name": "tags", "label": "part of speech", "meaning": "share of attention to, and from, each part of speech", "unit": "", "chance": "an even share of the keys that the query sees", "group": "Parts of speech", "source": "Vig & Belinkov (2019)"},
  "hue": {"name": "hue", "label": "hue", "meaning": "share of attention to patches of each hue", "unit": "", "chance": "share of patches of that hue", "group": "Hues", "source": ""},
};

export const ROLE_TERMS: Record<string, RoleTerm> = {
  "positional": {"name": "positional", "meaning": "attends at one distance: the previous token, the next, itself, 3 tokens back …", "family": "position", "short": ""},
  "syntactic": {"name": "syntactic", "meaning": "attends to the other end of a dependency relation, as nsubj→head", "family": "syntax", "short": ""},
  "induction": {"name": "induction", "meaning": "attends to what followed the same token before", "family": "copying", "short": "ind"},
  "duplicate token": {"name": "duplicate token", "meaning": "attends to earlier occurrences of the same token", "family": "copying", "short": "dup"},
  "same token": {"name": "same token", "meaning": "attends to other occurrences of the same token", "family": "copying", "short": "same"},
  "rare words": {"name": "rare words", "meaning": "attends to the rarest tokens of the sentence", "family": "rare", "short": "rare"},
  "same word across": {"name": "same word across", "meaning": "attends to the same word in the other sentence", "family": "across", "short": "same"},
  "alignment": {"name": "alignment", "meaning": "attends to the source word of the word that it reads, or writes", "family": "across", "short": "align"},
  "from A to B": {"name": "from A to B", "meaning": "sentence A attends to sentence B", "family": "across", "short": "A→B"},
  "from B to A": {"name": "from B to A", "meaning": "sentence B attends to sentence A", "family": "across", "short": "B→A"},
  "punctuation": {"name": "punctuation", "meaning": "attends to punctuation marks", "family": "marks", "short": ".,"},
  "paired marks": {"name": "paired marks", "meaning": "attends to the other half of a pair of quotes or brackets", "family": "marks", "short": "( )"},
  "names": {"name": "names", "meaning": "attends to words with a capital inside a sentence", "family": "marks", "short": "name"},
  "the patch itself": {"name": "the patch itself", "meaning": "a patch attends to itself", "family": "image", "short": "self"},
  "local patches": {"name": "local patches", "meaning": "a patch attends to the eight around it", "family": "image", "short": "local"},
  "the row": {"name": "the row", "meaning": "a patch attends to its row", "family": "image", "short": "row"},
  "the column": {"name": "the column", "meaning": "a patch attends to its column", "family": "image", "short": "col"},
  "rests on the first token": {"name": "rests on the first token", "meaning": "most weight is on the first token", "family": "rest", "short": "1st"},
  "rests on the last token": {"name": "rests on the last token", "meaning": "most weight is on the last token", "family": "rest", "short": "last"},
  "rests on special tokens": {"name": "rests on special tokens", "meaning": "most weight is on special tokens", "family": "rest", "short": "rest"},
};

export const EDIT_TERMS: Record<string, EditTerm> = {
  "silence": {"name": "silence", "label": "silence head", "meaning": "sets the output of a head to zero", "example": "silence(\"L3H2\")", "phrase": "silence {head}", "parameters": ["head"]},
  "scale": {"name": "scale", "label": "scale head", "meaning": "multiplies the output of a head", "example": "scale(\"L3H2\", 0.5)", "phrase": "scale {head} by {factor}", "parameters": ["head", "factor"]},
  "mean_ablate": {"name": "mean_ablate", "label": "mean-ablate head", "meaning": "replaces the output of a head by its mean", "example": "mean_ablate(\"L3H2\")", "phrase": "mean-ablate {head}", "parameters": ["head", "mean"]},
  "patch": {"name": "patch", "label": "patch", "meaning": "replaces the output of a head, a layer or a stream by that of another run", "example": "patch(\"L3H2\", model.run(\"The farmer asked the cook\"))", "phrase": "patch {head} from {source}", "parameters": ["head", "source"]},
  "temperature": {"name": "temperature", "label": "temperature", "meaning": "divides the scores before the softmax: below 1 sharpens", "example": "temperature(\"L3H2\", 2.0)", "phrase": "temperature {value} in {head}", "parameters": ["head", "value"]},
  "uniform": {"name": "uniform", "label": "uniform attention", "meaning": "spreads attention evenly over visible keys", "example": "uniform(\"L3H2\", tokens=[-1])", "phrase": "uniform attention in {head}", "parameters": ["head"]},
  "distance_bias": {"name": "distance_bias", "label": "distance bias", "meaning": "adds this much to the scores per token of distance: negative favours near keys", "example": "distance_bias(\"L3H2\", -0.5)", "phrase": "distance bias {slope} per token in {head}", "parameters": ["head", "slope"]},
  "block": {"name": "block", "label": "block attention", "meaning": "removes attention from queries to keys", "example": "block(\"L3H2\", \"She\", \"nurse\")", "phrase": "block {queries} → {keys} in {head}", "parameters": ["head", "queries", "keys"]},
  "set_weight": {"name": "set_weight", "label": "set weight", "meaning": "sets an attention weight; the row is renormalised to sum to 1", "example": "set_weight(\"L3H2\", -1, 0, 0.9)", "phrase": "{query} → {key} = {weight} in {head}", "parameters": ["head", "query", "key", "weight"]},
  "set_row": {"name": "set_row", "label": "set row", "meaning": "sets all attention weights of a query", "example": "set_row(\"L3H2\", 1, [0.5, 0.5])", "phrase": "set row of {query} in {head}", "parameters": ["head", "query", "weights"]},
  "replace_pattern": {"name": "replace_pattern", "label": "replace pattern", "meaning": "sets all attention weights of a head", "example": "replace_pattern(\"L3H2\", [[1.0, 0.0], [0.5, 0.5]])", "phrase": "replace pattern of {head}", "parameters": ["head", "pattern"]},
  "set_neuron": {"name": "set_neuron", "label": "set neuron", "meaning": "sets a neuron to a value", "example": "set_neuron(\"L2H0\", \"key\", 12, 0.0)", "phrase": "{part} neuron {index} of {site} = {value}", "parameters": ["site", "part", "index", "value"]},
  "scale_neuron": {"name": "scale_neuron", "label": "scale neuron", "meaning": "multiplies a neuron", "example": "scale_neuron(\"L2\", \"mlp\", 7, 2.0)", "phrase": "{part} neuron {index} of {site} × {factor}", "parameters": ["site", "part", "index", "factor"]},
  "add_neuron": {"name": "add_neuron", "label": "add to neuron", "meaning": "adds a value to a neuron", "example": "add_neuron(\"L2H0\", \"query\", 3, 1.5)", "phrase": "{part} neuron {index} of {site} + {amount}", "parameters": ["site", "part", "index", "amount"]},
  "replace_token": {"name": "replace_token", "label": "replace token", "meaning": "replaces an input token, by the mask token if none is named", "example": "replace_token(2, \"nurse\")", "phrase": "replace {position} by {token}", "parameters": ["position", "token"]},
};

export const EDIT_OPTIONS: Record<string, string> = {
  "tokens": " at {tokens}",
  "renormalise": ", row not renormalised",
};

export const EDITED_PARTS: Record<string, string> = {
  "query": "query",
  "key": "key",
  "value": "value",
  "mixed": "output",
  "mlp": "MLP",
  "neurons": "MLP",
  "residual": "residual stream",
};

export const SCALE_TERMS: Record<string, ScaleTerm> = {
  "atlas": {"name": "atlas", "label": "Atlas", "meaning": "queries and keys of a whole corpus, in every head"},
  "model": {"name": "model", "label": "Model", "meaning": "all layers and heads"},
  "head": {"name": "head", "label": "Head", "meaning": "heads of one layer, between tokens"},
  "neuron": {"name": "neuron", "label": "Neuron", "meaning": "one head: query, keys and values, neuron by neuron"},
  "activations": {"name": "activations", "label": "Activations", "meaning": "what passes through the layers, token by token"},
};

export const FAMILIES: Record<string, string> = {
  "position": "position",
  "syntax": "syntax",
  "copying": "copying",
  "rare": "rare words",
  "across": "between sentences",
  "marks": "marks and names",
  "image": "patches",
  "rest": "at rest",
  "none": "no clear role",
};

export const ATLAS_SCORE_TERMS: Record<string, AtlasScoreTerm> = {
  "pearson": {"name": "pearson", "label": "Distance–logit correlation", "meaning": "Pearson, per query over the keys of its example, mean over queries; Euclidean distance in the scaled space; −1 is exact"},
  "spearman": {"name": "spearman", "label": "the same, by rank", "meaning": "Spearman instead of Pearson"},
  "cosine_pearson": {"name": "cosine_pearson", "label": "the same, cosine", "meaning": "cosine instead of Euclidean distance"},
  "pooled_pearson": {"name": "pooled_pearson", "label": "the same, pooled", "meaning": "over all pairs at once instead of per query"},
  "map_pearson": {"name": "map_pearson", "label": "the same, on the map", "meaning": "distance on the PCA map instead of the full space"},
  "map_lifted_spearman": {"name": "map_lifted_spearman", "label": "by rank, on the lifted map", "meaning": "distance on the PCA map of the lifted space"},
  "trustworthiness": {"name": "trustworthiness", "label": "Trustworthiness of the map", "meaning": "share of neighbours on the PCA map that are neighbours in the full space; 1 if all are, 0.5 by chance"},
  "key_bias_share": {"name": "key_bias_share", "label": "Key-bias share", "meaning": "share of the variance of logits that belongs to the key alone, which translated and scaled maps hide"},
  "norm_gap": {"name": "norm_gap", "label": "Norm gap", "meaning": "mean of |q| − |k|"},
  "norm_ratio": {"name": "norm_ratio", "label": "Norm ratio", "meaning": "median |q| over median |k|"},
  "separation": {"name": "separation", "label": "Separation", "meaning": "distance of the centres of queries and keys, in spreads, before translation"},
  "scale": {"name": "scale", "label": "Scale c", "meaning": "queries are multiplied by it and keys divided"},
};
