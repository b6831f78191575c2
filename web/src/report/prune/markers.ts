/** Marks of series: colour and shape say how heads were chosen, filled that the model was fine-tuned. */

import { css, type Theme } from "../../theme";
import { makeSvg } from "../elements";
import type { Series } from "./sweep";

type Shape = "circle" | "triangle" | "nabla" | "square" | "diamond" | "cross" | "star";

/** By method: which of the theme's colour-blind-safe colours of heads, and which shape. */
const STYLES: Record<string, [colour: number, shape: Shape]> = {
  l0: [0, "circle"],
  "l0-mask": [0, "nabla"],
  importance: [1, "triangle"],
  relevance: [2, "square"],
  confidence: [5, "diamond"],
  random: [11, "cross"],
};
const SCRATCH: [colour: number, shape: Shape] = [6, "star"];
const OTHER: [colour: number, shape: Shape] = [8, "square"];

export interface Style {
  colour: string;
  shape: Shape;
  isFilled: boolean;
  dash: string | null;
}

export function styleOf(theme: Theme, series: Series): Style {
  const [colour, shape] = series.is_scratch ? SCRATCH : (STYLES[series.method] ?? OTHER);
  return {
    colour: css(theme.heads[colour] as (typeof theme.heads)[number]),
    shape,
    isFilled: series.is_tuned,
    dash: series.is_own ? null : "5 4",
  };
}

/** A mark at a place, `size` px from its middle to its edge. */
export function marker(x: number, y: number, size: number, { colour, shape, isFilled }: Style): SVGElement {
  const paint = { fill: isFilled ? colour : "var(--panel)", stroke: colour, "stroke-width": 1.6 };
  if (shape === "circle") return makeSvg("circle", { cx: x, cy: y, r: size, ...paint });
  if (shape === "cross") {
    const path = `M${x - size} ${y - size}L${x + size} ${y + size}M${x - size} ${y + size}L${x + size} ${y - size}`;
    return makeSvg("path", { d: path, fill: "none", stroke: colour, "stroke-width": isFilled ? 3 : 1.4 });
  }
  const points = corners(shape, size).map(([right, down]) => `${x + right},${y + down}`);
  return makeSvg("polygon", { points: points.join(" "), ...paint });
}

/** A short piece of a series, for its legend. */
export function sample(style: Style): SVGSVGElement {
  const line = { x1: 1, x2: 33, y1: 8, y2: 8, stroke: style.colour, "stroke-width": 1.6 };
  return makeSvg("svg", { viewBox: "0 0 34 16", width: 34, height: 16, "aria-hidden": true }, [
    makeSvg("line", { ...line, "stroke-dasharray": style.dash }),
    marker(17, 8, 4.5, style),
  ]);
}

function corners(shape: Shape, size: number): [right: number, down: number][] {
  const large = size * 1.15;
  if (shape === "square") return [[-size, -size], [size, -size], [size, size], [-size, size]]; // biome-ignore format: a table
  if (shape === "diamond") return [[0, -large * 1.1], [large, 0], [0, large * 1.1], [-large, 0]]; // biome-ignore format: a table
  if (shape === "nabla") return [[0, large], [large, -size], [-large, -size]]; // biome-ignore format: a table
  if (shape === "triangle") return [[0, -large], [large, size], [-large, size]]; // biome-ignore format: a table
  return Array.from({ length: 10 }, (_, corner) => {
    const [angle, reach] = [(corner * Math.PI) / 5, corner % 2 ? size * 0.55 : size * 1.35];
    return [reach * Math.sin(angle), -reach * Math.cos(angle)] as [number, number];
  });
}
