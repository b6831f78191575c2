/** What of an atlas is looked at: from a link or a saved page, and into a link. */

import { type AtlasSelection, ATLASSELECTION_CHOICES as CHOICES, DEFAULT_ATLASSELECTION as DEFAULT } from "./contract";

/** A selection from anywhere: what is not understood is as by default. */
export function cleanedAtlas(raw: Record<string, unknown>): AtlasSelection {
  const selection: Record<string, unknown> = { ...DEFAULT };
  for (const [name, choices] of Object.entries(CHOICES)) {
    if ((choices as readonly unknown[]).includes(raw[name])) selection[name] = raw[name];
  }
  for (const [name, usual] of Object.entries(DEFAULT)) {
    const value = raw[name];
    if (!(name in CHOICES) && typeof value === typeof usual && typeof usual !== "object") selection[name] = value;
  }
  selection.dims = raw.dims === 3 ? 3 : 2;
  selection.hide = CHOICES.hide.filter((group) => Array.isArray(raw.hide) && raw.hide.includes(group));
  const token = raw.token as AtlasSelection["token"] | undefined;
  const isToken = !!token && /^(query|key|value|mixed|residual)$/.test(token.role) && Number.isInteger(token.row);
  selection.token = isToken && token.row >= 0 ? { role: token.role, row: token.row } : null;
  return selection as unknown as AtlasSelection;
}

const SWITCHES = [
  "safe",
  "lines",
  "sentence",
  "weigh",
  "average",
  "pictures",
  "flows",
  "regex",
  "ignore_case",
] as const;
/** Names in links, by field. */
const WORDS = {
  atlas: "atlas",
  place: "cloud",
  method: "map",
  coordinates: "coordinates",
  colour: "paint",
  size: "points",
  side: "side",
  plot: "plot",
  search: "search",
} as const;

/** What differs from the default, by name; in no conflict with the names of `selectionParams`. */
export function atlasParams(selection: AtlasSelection): Record<string, string> {
  const params: Record<string, string> = {};
  for (const [field, word] of Object.entries(WORDS) as [keyof typeof WORDS, string][]) {
    if (selection[field] !== DEFAULT[field]) params[word] = selection[field];
  }
  if (selection.dims !== DEFAULT.dims) params.dims = String(selection.dims);
  if (!selection.labels) params.labels = "0";
  const on = SWITCHES.filter((name) => selection[name]);
  if (on.length) params.on = on.join(",");
  if (selection.hide.length) params.without = selection.hide.join(",");
  if (selection.token) params.point = `${selection.token.role}:${selection.token.row}`;
  return params;
}

/** The selection that a fragment names. */
export function atlasFrom(params: URLSearchParams): AtlasSelection {
  const on = (params.get("on") ?? "").split(",");
  const point = /^(\w+):(\d{1,9})$/.exec(params.get("point") ?? "");
  return cleanedAtlas({
    ...Object.fromEntries(Object.entries(WORDS).map(([field, word]) => [field, params.get(word) ?? undefined])),
    ...Object.fromEntries(SWITCHES.map((name) => [name, on.includes(name)])),
    dims: Number(params.get("dims")),
    labels: params.get("labels") !== "0",
    hide: (params.get("without") ?? "").split(","),
    token: point ? { role: point[1], row: Number(point[2]) } : null,
  });
}
