/** What is chosen in the report, kept in its address. */

import type { Contents } from "./contents";

export interface Choice {
  /** The head whose card is open. */
  head: string | null;
  /** The measure that heads are coloured by. */
  measure: string | null;
  /** The measures of the head finder, across and up. */
  x: string | null;
  y: string | null;
}

/** What an address asks for; what the report does not have is as it is at first. */
export function choiceOf(hash: string, contents: Contents): Choice {
  const asked = new URLSearchParams(hash.replace(/^#/, ""));
  const measure = (name: string, ...otherwise: string[]) => {
    const wanted = asked.get(name);
    return wanted !== null && contents.measures.has(wanted) ? wanted : contents.first(...otherwise);
  };
  const head = asked.get("head");
  return {
    head: head !== null && contents.index(head) !== undefined ? head : null,
    measure: measure("measure", "confidence"),
    x: measure("x", "distance", "patch_distance", "distance_all_keys"),
    y: measure("y", "relevance", "confidence"),
  };
}

export function hashOf(choice: Choice): string {
  const written = new URLSearchParams();
  for (const [name, value] of Object.entries(choice)) if (value) written.set(name, value);
  return `#${written}`;
}
