/** Layers in their groups, as their addresses name them: `encoder`, `decoder`, `cross`, or `main` where there is one. */

import type { SiteProps, TraceProps } from "../contract";

export function groupOf(site: string): string {
  return site.replace(/\.?L\d+$/, "") || "main";
}

export function groupsOf(trace: TraceProps): Map<string, SiteProps[]> {
  const found = new Map<string, SiteProps[]>();
  for (const site of trace.layers) {
    const name = groupOf(site.site);
    found.set(name, [...(found.get(name) ?? []), site]);
  }
  return found;
}
