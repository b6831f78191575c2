/** What a report over a corpus says of the heads of a model: verdicts with their evidence, and scores. */

import type { MethodProps, ReportProps, RoleProps, ScoresProps } from "../contract";
import type { Source } from "../source";
import { floats, type Grid, type Part } from "../wire";

/** One score over a corpus, with its interval and what chance would give. */
export interface Scored {
  method: MethodProps;
  value: number;
  baseline: number | null;
  low: number | null;
  high: number | null;
}

export class Report {
  readonly scores: Part<ScoresProps>;
  private readonly roles: Map<string, RoleProps>;
  private readonly places: Map<string, number>;

  constructor(private readonly part: Part<ReportProps>) {
    const { heads, methods, roles } = part.props;
    this.roles = new Map(roles.map((role) => [role.head, role]));
    this.places = new Map(heads.map((head, index) => [head, index]));
    this.scores = { kind: "scores", props: { heads, methods }, arrays: part.arrays };
  }

  /** Which corpus, and how much of it. */
  get told(): string {
    return `${this.part.props.corpus}, n = ${this.part.props.n.toLocaleString("en")}`;
  }

  role(head: string): RoleProps | null {
    return this.roles.get(head) ?? null;
  }

  /** The scores of a head over the corpus, furthest from chance first; those of one relation or tag are left out. */
  of(head: string): Scored[] {
    const at = this.places.get(head) ?? -1;
    const number = (name: string): number | null => {
      const grid: Grid | undefined = this.part.arrays[name];
      const value = grid ? floats(grid)[at] : undefined;
      return value === undefined || Number.isNaN(value) ? null : value;
    };
    const scored: Scored[] = [];
    for (const method of this.part.props.methods) {
      const value = number(method.name);
      if (value === null || method.name.includes("/")) continue;
      const [low, high] = [number(`low/${method.name}`), number(`high/${method.name}`)];
      scored.push({ method, value, baseline: number(`baseline/${method.name}`) ?? method.baseline, low, high });
    }
    const far = ({ method, value, baseline }: Scored) =>
      baseline === null ? 0 : Math.abs(value - baseline) / Math.max(1e-12, method.high - method.low);
    return scored.sort((a, b) => far(b) - far(a));
  }
}

/** The report of a trace's model; null where there is none. */
export async function reportOf(source: Source): Promise<Report | null> {
  if (source.has && !source.has("report")) return null;
  const part = await source.part<ReportProps>("report");
  return part.props.corpus ? new Report(part) : null;
}
