/** What the head view shows: the heads of one layer, which of their lines are drawn, and what there is to say about it. */

import { type EditedWeight, type Edits, editedNotes, NO_EDITS, prunedNotes, weightsOf } from "../data/edited";
import { LEAST_DIFFERENCE } from "../data/layer";
import { type Between, betweenOf, Lines, possible, reachOf, SEEN } from "../data/lines";
import type { Loaded } from "../data/load";
import { number } from "../data/measures";
import type { Plane } from "../data/plane";
import type { Relevance } from "../data/relevance";
import { headName } from "../data/trace";
import { type Trees, toldOf } from "../data/trees";
import type { Selection, Side } from "../selection";
import { headColour, type Rgb, type Theme } from "../theme";
import type { Token } from "./columns";
import { prunedColour } from "./pruned";

export interface DrawnHead {
  /** −1 for the mean of the shown heads. */
  head: number;
  name: string;
  plane: Plane;
  lines: Lines;
  isEdited: boolean;
  /** Its weights that an edit of single tokens set. */
  edited: EditedWeight[];
}

export class Scene {
  readonly drawnHeads: DrawnHead[];
  readonly between: Between;
  /** How many keys each query can see. */
  private readonly reach: Int32Array;
  private sums: Float32Array | null = null;
  private most: number | null = null;
  /** The tokens whose weights were edited. */
  private readonly edited: Record<Side, Set<number>>;
  /** The relevance of the tokens as read, on both sides, where an answer was chosen. */
  readonly relevance: Record<Side, Float32Array | null>;

  constructor(
    readonly loaded: Loaded,
    readonly selection: Selection,
    readonly answer: Relevance | null = null,
    readonly trees: Trees | null = null,
    private readonly edits: Edits = NO_EDITS,
  ) {
    const { layer } = loaded;
    this.between = betweenOf(layer.queries, layer.keys, selection.pair);
    const heads = selection.heads.length ? selection.heads : [selection.head];
    const isMean = selection.average && heads.length > 1;
    const nActive = isMean ? 1 : heads.length;
    const show = (head: number, name: string, plane: Plane): DrawnHead => ({
      head,
      name,
      plane,
      lines: new Lines(plane, selection, nActive, this.between),
      isEdited: edits.edited_heads.includes(name),
      edited: weightsOf(edits, name, layer.queries, layer.keys),
    });
    this.drawnHeads = isMean
      ? [show(-1, `mean of ${heads.length} heads`, layer.mean(heads))]
      : heads.map((head) => show(head, headName(layer.site.site, head), layer.head(head)));
    this.edited = { query: new Set(), key: new Set() };
    for (const { edited } of this.drawnHeads) {
      for (const { query, key } of edited) {
        this.edited.query.add(query);
        this.edited.key.add(key);
      }
    }
    this.relevance = { query: answer?.read(layer.queries) ?? null, key: answer?.read(layer.keys) ?? null };
    this.reach = reachOf(layer.queries, layer.keys, layer.site.is_causal);
  }

  get layer() {
    return this.loaded.layer;
  }

  /** Whether an edit replaced a token, or set weights of it in a head that is drawn. */
  isEdited({ side, index }: Token): boolean {
    const reading = side === "query" ? this.layer.queries : this.layer.keys;
    return (reading.isReplaced[index] ?? false) || this.edited[side].has(index);
  }

  /** One run minus another's: what is drawn has a sign. */
  get isDifference(): boolean {
    return this.layer.isDifference;
  }

  /** The largest difference among the heads shown. */
  get furthest(): number {
    if (this.most !== null) return this.most;
    let most = 0;
    for (const { plane } of this.drawnHeads)
      for (const value of plane.values) most = Math.max(most, Math.abs(value) || 0);
    this.most = most;
    return most;
  }

  /** That two runs do not differ in the heads shown, in words; empty where they do, or where there is one run. */
  get unchanged(): string {
    if (!this.isDifference || this.furthest >= LEAST_DIFFERENCE * SEEN) return "";
    const [first] = this.drawnHeads;
    const isOne = this.drawnHeads.length === 1 && first;
    return `both runs attend alike in ${isOne ? first.name : "these heads"}; what ${isOne ? "it writes" : "they write"} may still differ`;
  }

  /** Lines are coloured by sign rather than by head. */
  get isSigned(): boolean {
    return this.isDifference || (this.selection.what === "scores" && this.drawnHeads.length === 1);
  }

  get isSelf(): boolean {
    return this.layer.site.kind === "self";
  }

  /** How many lines there could be; of one token, where one is given. */
  total(token: Token | null = null): number {
    return this.drawnHeads.length * possible(this.reach, this.between, token);
  }

  /** Whether the mask keeps a query from seeing a key. */
  isMasked(query: number, key: number): boolean {
    return key >= (this.reach[query] as number);
  }

  get drawn(): number {
    return this.drawnHeads.reduce((sum, head) => sum + head.lines.count, 0);
  }

  /** What each key gets, on average over the queries and the shown heads. */
  get received(): Float32Array {
    if (this.sums) return this.sums;
    const sums = new Float32Array(this.layer.keys.texts.length);
    for (const { plane } of this.drawnHeads) {
      const received = plane.received();
      for (let key = 0; key < sums.length; key++) {
        sums[key] = (sums[key] as number) + (received[key] as number) / this.drawnHeads.length;
      }
    }
    this.sums = sums;
    return sums;
  }

  colourOf({ head, name }: DrawnHead, theme: Theme): { colour: Rgb; dashed: boolean } {
    if (head < 0) return { colour: theme.secondary, dashed: false };
    return this.edits.pruned_heads.includes(name) ? prunedColour(theme) : headColour(theme, head);
  }

  /** The relevance of one token in words; nothing where there is none. */
  relevanceOf({ side, index }: Token): string[] {
    const value = this.relevance[side]?.[index];
    return this.answer && value !== undefined ? [this.answer.told(value)] : [];
  }

  /** What is hidden or missing, in words; `isComplete` when all weights are on screen although not all are held here,
   *  `measured` when the first token's share is known from the measures. */
  notes(isComplete = false, measured: number | null = null): string[] {
    const { layer, notes } = this.loaded;
    const { what } = this.selection;
    const { hide, off, by } = this.loaded.reading;
    const all = [...notes];
    const isNormed = what !== "scores";
    const [mean] = this.drawnHeads;
    if (mean && mean.head < 0) all.push(mean.name);
    const names = this.drawnHeads.map((head) => head.name);
    all.push(...prunedNotes(this.edits, names, "grey and dashed"));
    all.push(...editedNotes(this.edits, names, [layer.queries, layer.keys]));
    if (hide.length && (layer.queries.isPartial || layer.keys.isPartial)) {
      all.push(
        `${hide.join(" and ")} ${hide.join() === "first" ? "token" : "tokens"} hidden${isNormed ? ", rows renormalised" : ""}`,
      );
    }
    if (off.length) all.push(`${off.length} switched off${isNormed ? ", rows renormalised" : ""}`);
    if (by !== "tokens" && what !== "scores") all.push(`by ${by}: summed over keys, averaged over queries`);
    if (what === "scores" && this.selection.by !== "tokens") all.push("scores belong to the model's own tokens");
    if (!layer.isWhole && !isComplete) all.push(`the ${layer.kept} strongest keys of each query`);
    if (layer.site.no_weights) all.push(layer.site.no_weights);
    if (this.unchanged) return all;
    if (this.isDifference) {
      const isRoot = this.selection.form === "matrix";
      all.push(`full colour: a difference of ${number(layer.full)}${isRoot ? ", square-root scale" : ""}`);
      if (this.furthest < layer.full * SEEN) all.push(`none here is larger than ${number(this.furthest)}`);
      return all;
    }
    if (what === "contribution") all.push("strength: share of the layer's largest value norm");
    if (what === "scores") all.push("strength: share of the largest score");
    const share = what === "pattern" && measured !== null ? measured : this.firstShare();
    if (this.trees) all.push(...toldOf(this.trees));
    if (share > 0.5)
      all.push(`the first token takes ${Math.round(share * 100)} % of the weight: hide it to see the rest`);
    return all;
  }

  /** As the measure `first_token` has it: over queries that are no special tokens. */
  private firstShare(): number {
    const { queries, keys } = this.layer;
    const first = keys.groupOf[0] ?? -1;
    if (this.selection.what !== "pattern" || first < 0 || keys.texts.length < 4) return 0;
    let sum = 0;
    let count = 0;
    for (let query = 0; query < queries.texts.length; query++) {
      if (queries.isOff[query] || queries.isSpecial[query]) continue;
      count += this.drawnHeads.length;
      for (const { plane } of this.drawnHeads) sum += plane.at(query, first) || 0;
    }
    return count ? sum / count : 0;
  }
}
