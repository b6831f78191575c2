/** What the queries of a layer see, in words. */

import type { SiteProps, TraceProps } from "../contract";

const MOST_NAMED = 3;

export function reachText(site: SiteProps, trace: Pick<TraceProps, "stacks">): string {
  if (site.kind === "cross") return `${site.stack} looks at ${site.key_stack}`;
  if (!site.window) return site.is_causal ? "looks back only" : "looks both ways";
  if (site.is_causal) return `looks back over ${count(site.window)}`;
  const near = `sees ${count(site.window - 1)} to each side`;
  const texts = trace.stacks.find((stack) => stack.name === site.key_stack)?.texts ?? [];
  const names = site.global_tokens.map((place) => texts[place] ?? String(place));
  if (!names.length) return near;
  const rest = names.length - MOST_NAMED;
  const named = names.slice(0, MOST_NAMED).join(" ") + (rest > 0 ? ` and ${rest} more` : "");
  return `${near}, and the global token${names.length > 1 ? "s" : ""} ${named}`;
}

const count = (tokens: number) => `${tokens.toLocaleString("en")} token${tokens === 1 ? "" : "s"}`;
