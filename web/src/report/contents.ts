/** What a report of heads holds: the JSON that Python's `reports/report_page.py` puts into its page. */

/** A score, or null where there is none. */
export type Score = number | null;

export interface Measure {
  name: string;
  label: string;
  about: string;
  unit: string;
  group: string;
  /** A single relation, tag or hue of a measure. */
  is_part: boolean;
  n_samples: number;
  baseline: Score;
  /** Of each head, as are the others. */
  values: Score[];
  low?: Score[];
  high?: Score[];
  baselines?: Score[];
}

export interface Finding {
  role: string;
  score: number;
  baseline: Score;
  low: Score;
  high: Score;
  n_samples: number;
  criterion: string;
  source: string;
}

export interface Verdict {
  role: string;
  findings: Finding[];
  nearest: Finding | null;
  family: string;
  /** The role in a few letters. */
  short: string;
}

/** Text, whether a space goes before, whether it is special, and the number of its word (−1: none). */
export type CaseToken = [text: string, space: boolean, special: boolean, word: number];

/** Query, key and weight. */
export type Pair = [query: number, key: number, weight: number];

export interface Case {
  id: string;
  about: string;
  score: Score;
  pairs: Pair[];
  tokens: CaseToken[];
  queries: CaseToken[] | null;
  image: string | null;
  grid: [rows: number, columns: number] | null;
}

export interface Thumbnails {
  text: string;
  /** By layer: maps of all heads, one after the other, in base64. */
  sites: Record<string, { rows: number; columns: number; maps: string }>;
}

export interface Stack {
  label: string;
  layers: { site: string; heads: number[] }[];
}

/** What `headscope trust` found of a head. */
export interface HeadTrust {
  verdict: "supported" | "mixed" | "not supported" | "not tested";
  sentences: string[];
}

export interface ReportJson {
  heads: string[];
  siteOf: string[];
  indexOf: number[];
  stacks: Stack[];
  measures: Measure[];
  roles: Verdict[];
  findings: { question: string; answer: string }[];
  cases: Case[][];
  thumbnails: Thumbnails[];
  absent: Record<string, string>;
  /** Of each head; null of those that were not asked for, or where nothing was tested. */
  trust: (HeadTrust | null)[] | null;
}

/** The same, looked up by name. Heads are known by their index. */
export class Contents {
  readonly measures: Map<string, Measure>;
  private readonly indices: Map<string, number>;

  constructor(readonly json: ReportJson) {
    this.measures = new Map(json.measures.map((measure) => [measure.name, measure]));
    this.indices = new Map(json.heads.map((name, index) => [name, index]));
  }

  get allHeads(): number[] {
    return this.json.heads.map((_, index) => index);
  }

  index(name: string): number | undefined {
    return this.indices.get(name);
  }

  name(head: number): string {
    return this.json.heads[head] as string;
  }

  verdict(head: number): Verdict {
    return this.json.roles[head] as Verdict;
  }

  trust(head: number): HeadTrust | null {
    return this.json.trust?.[head] ?? null;
  }

  /** The first of these measures that the report has, else its first. */
  first(...names: string[]): string | null {
    return names.find((name) => this.measures.has(name)) ?? this.json.measures[0]?.name ?? null;
  }
}
