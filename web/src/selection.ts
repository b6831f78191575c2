/** The one selection that all views share. It is in the URL and in saved files; the back button undoes it. */

export type Scale = "model" | "head";
export type Side = "query" | "key";

export interface Selection {
  scale: Scale;
  /** The attention layer in view, as Python prints it: `L3`, `encoder.L0`, `cross.L2`. */
  site: string;
  /** The head in focus, by its index in that layer. */
  head: number;
  /** The heads of the layer that the head view draws; at least one. */
  shown: number[];
  /** Draw the mean of the shown heads instead of each. */
  average: boolean;
  /** Lines between two columns of tokens, or a matrix. */
  form: "lines" | "matrix";
  axis: "vertical" | "horizontal";
  what: "pattern" | "contribution" | "scores";
  by: "tokens" | "words" | "sentences";
  /** Groups of tokens left out, rows brought back to one. */
  hide: ("special" | "first")[];
  /** Single tokens switched off, as `stack:position` in the model's own tokens. */
  off: string[];
  /** Which lines are drawn: all that can be seen, those from a weight on, the strongest that make up a share of each
   *  query's weight, or the k strongest of each query. */
  filter: "all" | "threshold" | "mass" | "top";
  threshold: number;
  mass: number;
  top: number;
  /** Between which sentences: A→B is from a query in A to a key in B. */
  pair: "all" | "AA" | "AB" | "BA" | "BB";
  /** The token whose lines alone are drawn, as side and position among the tokens as read; null for all. */
  token: { side: Side; index: number } | null;
  /** Model view: pictures of heads as heat maps or lines, ordered and coloured by a score (empty: by layer, by weight). */
  thumbnails: "heat" | "lines";
  sort: string;
  colour: string;
  /** Model view: only heads whose colour score is at least this share of the range, 0 for all. */
  least: number;
}

export const DEFAULT: Selection = {
  scale: "model",
  site: "",
  head: 0,
  shown: [],
  average: false,
  form: "lines",
  axis: "vertical",
  what: "pattern",
  by: "tokens",
  hide: [],
  off: [],
  filter: "all",
  threshold: 0.05,
  mass: 0.7,
  top: 3,
  pair: "all",
  token: null,
  thumbnails: "heat",
  sort: "",
  colour: "",
  least: 0,
};
