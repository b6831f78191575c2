/** A report of four heads in two layers, as Python embeds it: small enough to be worked out on paper. */

import type { Finding, Measure, ReportJson } from "./contents";

export function measure(name: string, values: Measure["values"]): Measure {
  return { name, label: name, about: "", unit: "", group: "All", is_part: false, n_samples: 8, baseline: null, values };
}

export function finding(
  role: string,
  score: number,
  baseline: number | null = null,
  low: number | null = null,
): Finding {
  return { role, score, baseline, low, high: low, n_samples: 8, criterion: "≥ 0.5", source: "a paper" };
}

export const REPORT: ReportJson = {
  heads: ["L0H0", "L0H1", "L1H0", "L1H1"],
  siteOf: ["L0", "L0", "L1", "L1"],
  indexOf: [0, 1, 0, 1],
  stacks: [
    {
      label: "",
      layers: [
        { site: "L0", heads: [0, 1] },
        { site: "L1", heads: [2, 3] },
      ],
    },
  ],
  measures: [measure("entropy", [1, 2, null, 3]), measure("confidence", [0.1, 0.2, 0.9, 0.4])],
  roles: [
    { role: "no clear role", findings: [], nearest: finding("the row", 0.4), family: "none", short: "" },
    {
      role: "previous token",
      findings: [finding("previous token", 0.9, 0.1), finding("syntactic: nsubj→head", 0.6)],
      nearest: null,
      family: "position",
      short: "−1",
    },
    { role: "no clear role", findings: [], nearest: null, family: "none", short: "" },
    {
      role: "induction",
      findings: [finding("induction", 0.7, 0.01, 0.65)],
      nearest: null,
      family: "copying",
      short: "ind",
    },
  ],
  findings: [],
  cases: [[], [], [], []],
  thumbnails: [],
  absent: {},
  trust: null,
};
