/** The token that the card of the activations view is about, and where it stands. */

import type { SiteProps, StackProps } from "../../contract";
import { positionOf } from "../../data/reading";
import { siteOf, stackOf } from "../../data/trace";
import type { Selection } from "../../selection";
import type { OpenRun } from "../slices";

export interface TokenPlace {
  /** The run itself: what is worked out of one run is asked of it. */
  run: OpenRun;
  position: number;
  stack: StackProps;
  /** The layer in focus, and the layers of its stack that MLP neurons are named by. */
  site: SiteProps;
  layers: SiteProps[];
  /** The layer as MLP neurons are named by it: cross-attention has none of its own. */
  own: string;
  /** Where heads attend in this layer. */
  attending: SiteProps[];
}

/** Null where no token is in focus. */
export function tokenPlace({ trace }: OpenRun, run: OpenRun, selection: Selection): TokenPlace | null {
  const site = siteOf(trace, selection.site);
  const stack = stackOf(trace, site.stack);
  const position = positionOf(stack, selection);
  if (position === null) return null;
  const layers = trace.layers.filter((layer) => layer.stack === site.stack && layer.kind === "self");
  const own = layers.find((layer) => layer.layer === site.layer)?.site ?? site.site;
  const attending = trace.layers.filter((layer) => layer.stack === site.stack && layer.layer === site.layer);
  return { run, position, stack, site, layers, own, attending };
}

/** A log-probability, without the sign of what rounds to nothing. */
export function withoutSign(logprob: number): string {
  return logprob > -0.005 ? "0.00" : logprob.toFixed(2).replace("-", "−");
}
