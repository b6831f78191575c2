/** Layers, stacks and heads of a trace, by their names. */

import type { SiteProps, StackProps, TraceProps } from "../contract";

export function siteOf(trace: TraceProps, site: string): SiteProps {
  const found = trace.layers.find((one) => one.site === site);
  if (!found) throw new Error(`there is no layer ${site}`);
  return found;
}

export function stackOf(trace: TraceProps, name: string): StackProps {
  const found = trace.stacks.find((one) => one.name === name);
  if (!found) throw new Error(`there is no stack ${name}`);
  return found;
}

/** The address of a head, as Python prints it. */
export function headName(site: string, head: number): string {
  return `${site}H${head}`;
}
