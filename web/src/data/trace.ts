/** Layers, stacks and heads of a trace, by their names. */

import type { Selection, SiteProps, StackProps, TraceProps } from "../contract";

export function siteOf(trace: TraceProps, site: string): SiteProps {
  const layer = trace.layers.find((candidate) => candidate.site === site);
  if (!layer) throw new Error(`there is no layer ${site}`);
  return layer;
}

export function stackOf(trace: TraceProps, name: string): StackProps {
  const stack = trace.stacks.find((candidate) => candidate.name === name);
  if (!stack) throw new Error(`there is no stack ${name}`);
  return stack;
}

/** The address of a head, as Python prints it. */
export function headName(site: string, head: number): string {
  return `${site}H${head}`;
}

/** What the picture is of where it shows several heads as one: `mean of 8 heads of cross.L3`; empty where it does not. */
export function meanOf({ scale, average, heads, site }: Selection): string {
  return scale === "head" && average && heads.length > 1 ? `mean of ${heads.length} heads of ${site}` : "";
}
