/** What the sections of the report draw from, and what they may ask of it. */

import type { Theme } from "../../theme";
import type { Tip } from "../tip";
import type { Point, SweepJson } from "./sweep";

export interface PrunePage {
  readonly sweep: SweepJson;
  readonly theme: Theme;
  readonly tip: Tip;
  /** The point whose survivors are drawn. */
  readonly point: Point | undefined;
  /** How many px a plot is wide. */
  readonly width: number;
  /** Series that are not drawn, by panel and label. */
  readonly hiddenSeries: ReadonlySet<string>;
  toggleSeries(key: string): void;
  /** Show the survivors of a point. */
  choose(id: string | undefined): void;
}
