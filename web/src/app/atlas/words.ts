/** How the atlas's options are called. */

import type { AtlasProps, AtlasSelection } from "../../contract";

export const METHODS: Record<AtlasSelection["method"], string> = { pca: "PCA", tsne: "t-SNE", umap: "UMAP" };

export const COORDINATES: { value: AtlasSelection["coordinates"]; text: string; title: string }[] = [
  { value: "raw", text: "Raw", title: "Queries and keys as the head uses them" },
  {
    value: "translated",
    text: "Translated",
    title: "Keys moved so that both clouds have one centre; attention unchanged",
  },
  {
    value: "scaled",
    text: "Scaled",
    title: "Translated, and both clouds given the same median norm; attention unchanged",
  },
  { value: "lifted", text: "Lifted", title: "One more dimension: for every query the nearer key has the larger logit" },
];

const COLUMNS: Record<string, string> = {
  label: "label",
  predicted: "predicted class",
  segment: "text of the pair",
  patch_row: "patch row",
  patch_column: "patch column",
  hue: "hue",
  brightness: "brightness",
};

/** What points of this atlas can be coloured by, each with its label. */
export function colours({ stacks, space, has_vectors }: AtlasProps): [string, string][] {
  const columns = new Set(stacks.flatMap((stack) => stack.columns));
  const isText = stacks.some(({ kind }) => kind === "text");
  const tags = [...columns].filter((name) => name.startsWith("tag_"));
  const own = [...Object.keys(COLUMNS).filter((name) => columns.has(name)), ...tags];
  return [
    ["role", space === "query_key" ? "query or key" : "one colour"],
    ["position", "position"],
    ["position5", "position mod 5"],
    ...(isText
      ? ([
          ["token", "token"],
          ["special", "special, punctuation"],
          ["frequency", "frequency"],
        ] as [string, string][])
      : []),
    ["length", "length of example"],
    ["example", "example"],
    ["norm", "norm"],
    ...(space === "query_key" && has_vectors ? ([["key_bias", "key bias"]] as [string, string][]) : []),
    ...own.map((name): [string, string] => [name, COLUMNS[name] ?? tagName(name)]),
  ];
}

function tagName(column: string): string {
  const name = column.slice("tag_".length);
  return name === "upos" ? "part of speech" : name;
}

/** A number as tables show it; a dash for none. */
export function figure(value: number | undefined, digits = 2): string {
  if (value === undefined || Number.isNaN(value)) return "–";
  return value.toFixed(digits).replace("-", "−");
}
