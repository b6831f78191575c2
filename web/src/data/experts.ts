/** Which experts the tokens of a layer took (mixture of experts). */

import type { ExpertsProps } from "../contract";
import type { Source } from "../source";
import { floats, type Grid } from "../wire";

export interface ExpertShare {
  expert: number;
  /** The weight of the expert's output for a token, or the share of the tokens that took it. */
  value: number;
}

/** The experts of every token of one layer, the largest weight first. */
export class Experts {
  constructor(
    readonly nExperts: number,
    private readonly nRanks: number,
    private readonly ids: ArrayLike<number>,
    private readonly weights: ArrayLike<number>,
  ) {}

  /** What one token took; empty where there is no such token. */
  of(position: number): ExpertShare[] {
    const first = position * this.nRanks;
    if (position < 0 || first + this.nRanks > this.ids.length) return [];
    return Array.from({ length: this.nRanks }, (_, rank) => ({
      expert: this.ids[first + rank] as number,
      value: this.weights[first + rank] as number,
    }));
  }

  /** The experts that most tokens took, at most `most` of them. */
  busiest(most: number): ExpertShare[] {
    const counts = new Map<number, number>();
    for (let place = 0; place < this.ids.length; place++) {
      const expert = this.ids[place] as number;
      counts.set(expert, (counts.get(expert) ?? 0) + 1);
    }
    const nTokens = Math.max(1, this.ids.length / this.nRanks);
    return [...counts]
      .sort(([expert, count], [other, others]) => others - count || expert - other)
      .slice(0, most)
      .map(([expert, count]) => ({ expert, value: count / nTokens }));
  }

  /** How many experts each token takes. */
  get perToken(): number {
    return this.nRanks;
  }
}

export async function loadExperts(source: Source, site: string, signal?: AbortSignal): Promise<Experts> {
  const { props, arrays } = await source.part<ExpertsProps>(`experts/${site}`, signal);
  const [ids, weights] = [arrays.ids as Grid, arrays.weights as Grid];
  return new Experts(props.n_experts, ids.shape[1] as number, ids.values, floats(weights));
}
