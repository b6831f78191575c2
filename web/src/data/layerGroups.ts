/** Layers in their groups, as their addresses name them: `encoder`, `decoder`, `cross`, or `main` where there is one. */

import type { SiteProps, TraceProps } from "../contract";

export function groupOf(site: string): string {
  return site.replace(/\.?L\d+$/, "") || "main";
}

/** The layer and the index of a head that is named as Python prints it; null where there is none of that name. */
export function placeOf(trace: TraceProps, head: string): { site: string; head: number } | null {
  const [, site, index] = /^(.*L\d+)H(\d+)$/.exec(head) ?? [];
  const layer = trace.layers.find((candidate) => candidate.site === site);
  return layer && Number(index) < layer.n_heads ? { site: layer.site, head: Number(index) } : null;
}

export function groupsOf(trace: TraceProps): Map<string, SiteProps[]> {
  const groups = new Map<string, SiteProps[]>();
  for (const site of trace.layers) {
    const name = groupOf(site.site);
    groups.set(name, [...(groups.get(name) ?? []), site]);
  }
  return groups;
}
