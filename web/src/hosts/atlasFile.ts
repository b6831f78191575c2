/** An atlas in a saved file: it holds one map of its heads, however many points are asked for. */

import type { Source } from "../source";

/** As in Python's `views/atlas_page.py`: options in order, without how many points, pairs or keys are wanted. */
const COUNTS = ["points", "pairs", "top"];

export function savedAtlasSource(source: Source): Source {
  return { ...source, part: (key, signal) => source.part(savedKey(key), signal) };
}

export function savedKey(key: string): string {
  const [kind = "", query = ""] = key.split("?");
  const options = new URLSearchParams([...new URLSearchParams(query)].filter(([name]) => !COUNTS.includes(name)));
  options.sort();
  return options.size ? `${kind}?${options}` : kind;
}
