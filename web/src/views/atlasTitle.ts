/** A picture of the atlas under lines that say what it is of: once it is saved, nothing around it does. */

import type { AtlasProps } from "../contract";
import type { ColourKey } from "../data/atlasColours";
import { css, type Theme } from "../theme";
import { paintKey } from "./atlasLegend";
import { paintLabels } from "./labels";

const TITLE = 64; // px
const FOOT = 30;

export function titledAtlas(
  picture: HTMLCanvasElement,
  atlas: AtlasProps,
  words: { line: string; notes: string[] },
  key: ColourKey | null,
  theme: Theme,
  scale: number,
): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.width = picture.width;
  canvas.height = picture.height + (TITLE + FOOT) * scale;
  const context = canvas.getContext("2d") as CanvasRenderingContext2D;
  context.fillStyle = css(theme.background);
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(picture, 0, TITLE * scale);
  const width = picture.width / scale - 32;
  const { n_sampled, n_examples, name } = atlas.corpus;
  const corpus = `${n_sampled.toLocaleString("en")} of ${n_examples.toLocaleString("en")} examples${name === "list" ? "" : ` of ${name}`}`;
  const small = { x: 16, align: "left", width, size: 11, colour: theme.secondary } as const;
  const labels = [
    { ...small, text: atlas.model_name, y: 16, size: 13, colour: theme.ink, isBold: true },
    { ...small, text: `atlas of ${corpus}`, y: 34 },
    { ...small, text: [words.line, ...words.notes].join(" · "), y: 51 },
  ];
  paintLabels(context, labels, scale);
  if (key) paintKey(context, key, { x: 16, y: picture.height / scale + TITLE + FOOT / 2 }, theme, scale);
  return canvas;
}
