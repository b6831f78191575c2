/** What the head view shows: the heads of one layer, which of their lines are drawn, and what there is to say about it. */

import { type Between, betweenOf, Lines, possible } from "../data/lines";
import type { Loaded } from "../data/load";
import type { Plane } from "../data/plane";
import type { Selection } from "../selection";
import { headColour, type Rgb, type Theme } from "../theme";
import { headName } from "./view";

export interface Shown {
  /** −1 for the mean of the shown heads. */
  head: number;
  name: string;
  plane: Plane;
  lines: Lines;
}

export class Scene {
  readonly shown: Shown[];
  readonly between: Between;
  readonly total: number;
  private sums: Float32Array | null = null;

  constructor(
    readonly loaded: Loaded,
    readonly selection: Selection,
  ) {
    const { layer } = loaded;
    this.between = betweenOf(layer.queries, layer.keys, selection.pair);
    const heads = selection.shown.length ? selection.shown : [selection.head];
    const isMean = selection.average && heads.length > 1;
    const nActive = isMean ? 1 : heads.length;
    const show = (head: number, name: string, plane: Plane): Shown => ({
      head,
      name,
      plane,
      lines: new Lines(plane, selection, nActive, this.between),
    });
    this.shown = isMean
      ? [show(-1, `mean of ${heads.length} heads`, layer.mean(heads))]
      : heads.map((head) => show(head, headName(layer.site.site, head), layer.head(head)));
    this.total = this.shown.length * possible(layer.queries, layer.keys, this.between, layer.site.is_causal);
  }

  get layer() {
    return this.loaded.layer;
  }

  get isSelf(): boolean {
    return this.layer.site.kind === "self";
  }

  get drawn(): number {
    return this.shown.reduce((sum, one) => sum + one.lines.count, 0);
  }

  /** What each key gets, on average over the queries and the shown heads. */
  get received(): Float32Array {
    if (this.sums) return this.sums;
    const found = new Float32Array(this.layer.keys.texts.length);
    for (const { plane } of this.shown) {
      const one = plane.received();
      for (let key = 0; key < found.length; key++) {
        found[key] = (found[key] as number) + (one[key] as number) / this.shown.length;
      }
    }
    this.sums = found;
    return found;
  }

  colourOf({ head }: Shown, theme: Theme): { colour: Rgb; dashed: boolean } {
    return head < 0 ? { colour: theme.ink, dashed: false } : headColour(theme, head);
  }

  /** What is hidden or missing, in words; `isComplete` when all weights are on screen although not all are held here. */
  notes(isComplete = false): string[] {
    const { layer, notes } = this.loaded;
    const { hide, off, what, by } = this.selection;
    const found = [...notes];
    const isNormed = what !== "scores";
    if (hide.length && (layer.queries.isPartial || layer.keys.isPartial)) {
      found.push(
        `${hide.join(" and ")} ${hide.join() === "first" ? "token" : "tokens"} hidden${isNormed ? ", rows renormalised" : ""}`,
      );
    }
    if (off.length) found.push(`${off.length} switched off${isNormed ? ", rows renormalised" : ""}`);
    if (by !== "tokens" && what !== "scores") found.push(`by ${by}: summed over keys, averaged over queries`);
    if (what === "scores" && by !== "tokens") found.push("scores belong to the model's own tokens");
    if (!layer.isWhole && !isComplete) found.push(`the ${layer.kept} strongest keys of each query`);
    if (layer.site.no_weights) found.push(layer.site.no_weights);
    if (what === "contribution") found.push("strength: share of the layer's largest value norm");
    if (what === "scores") found.push("strength: share of the largest score");
    const share = this.firstShare();
    if (share > 0.5)
      found.push(`the first token takes ${Math.round(share * 100)} % of the weight: hide it to see the rest`);
    return found;
  }

  private firstShare(): number {
    const { keys } = this.layer;
    const first = keys.groupOf[0] ?? -1;
    if (this.selection.what !== "pattern" || first < 0 || keys.texts.length < 4) return 0;
    return this.received[first] ?? 0;
  }
}
