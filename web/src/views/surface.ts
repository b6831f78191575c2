/** A canvas with text over it, as large as the element it is in; coarser while something moves, sharp when it is still. */

import type { TraceProps } from "../contract";
import { captionLine } from "../data/caption";
import type { Box } from "../marks/cells";
import { Raster } from "../marks/raster";
import { css, type Rgb, type Theme } from "../theme";
import { type Label, Labels, paintLabels, Ruler } from "./labels";
import { type Legend, paintLegend } from "./legend";

const STILL = 140; // ms
const TITLE = 64; // px, over a picture that is saved

export class Surface {
  readonly canvas = document.createElement("canvas");
  readonly labels = new Labels();
  private readonly context: CanvasRenderingContext2D;
  private timer = 0;
  private frame = 0;
  /** Something moves: what is drawn need not be sharp or complete. */
  isMoving = false;

  constructor(
    private readonly element: HTMLElement,
    private readonly sharpen: () => void,
  ) {
    if (getComputedStyle(element).position === "static") element.style.position = "relative";
    Object.assign(this.canvas.style, { position: "absolute", left: "0", top: "0", width: "100%", height: "100%" });
    this.canvas.setAttribute("aria-hidden", "true");
    // Without alpha a canvas is black until something is drawn.
    this.canvas.style.visibility = "hidden";
    this.context = this.canvas.getContext("2d", { alpha: false }) as CanvasRenderingContext2D;
    element.append(this.canvas, this.labels.element);
  }

  get width(): number {
    return this.element.clientWidth;
  }

  get height(): number {
    return this.element.clientHeight;
  }

  /** Device pixels to draw for each pixel of the page. */
  get scale(): number {
    return this.isMoving ? 1 : Math.min(3, window.devicePixelRatio || 1);
  }

  /** Something moves: draw coarsely until it has been still for a moment. */
  move(): void {
    window.clearTimeout(this.timer);
    this.isMoving = true;
    this.timer = window.setTimeout(() => {
      this.isMoving = false;
      this.sharpen();
    }, STILL);
  }

  raster(scale = this.scale): Raster {
    return new Raster(this.width * scale, this.height * scale);
  }

  /** Show a picture, or the part of it that fits. */
  show(raster: Raster, labels: Label[], part?: Box): void {
    raster.show(this.context, part);
    this.canvas.style.visibility = "";
    this.labels.show(labels);
    this.settle();
  }

  /** What says how high the picture may be comes and goes around it. Where it did both within one frame, no observer
   *  reports it: what was drawn in between is drawn again. */
  private settle(): void {
    const drawn = `${this.width} × ${this.height}`;
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => {
      if (`${this.width} × ${this.height}` !== drawn) this.sharpen();
    });
  }

  destroy(): void {
    window.clearTimeout(this.timer);
    cancelAnimationFrame(this.frame);
    this.canvas.remove();
    this.labels.element.remove();
  }
}

/** A picture of its own, for saving. */
export function pictureOf(raster: Raster, labels: Label[], scale: number): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("2d") as CanvasRenderingContext2D;
  raster.show(context);
  paintLabels(context, labels, scale);
  return canvas;
}

/** The same picture under three lines that say what it is of (model, input, edits): once it is saved, nothing around
 *  it does. */
export function titled(
  picture: HTMLCanvasElement,
  trace: TraceProps,
  words: { text: string; colour: Rgb; isBold?: boolean }[],
  notes: string,
  theme: Theme,
  scale: number,
  legend: Legend | null = null,
): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.width = picture.width;
  canvas.height = picture.height + TITLE * scale;
  const context = canvas.getContext("2d") as CanvasRenderingContext2D;
  context.fillStyle = css(theme.background);
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(picture, 0, TITLE * scale);
  const ruler = new Ruler();
  const room = picture.width / scale - 32;
  const isEdited = trace.edits.length > 0;
  const of = { text: captionLine(trace), colour: isEdited ? theme.warn : theme.secondary, isBold: isEdited };
  const labels: Label[] = [
    { ...of, x: 16, y: 34, align: "left", width: room, size: 11 },
    { text: notes, x: 16, y: 51, align: "left", width: room, size: 11, colour: theme.secondary },
  ];
  let x = 16;
  const end = legend ? Math.max(room / 3, room - 480) : room;
  for (const { text, colour, isBold = false } of words) {
    const left = end + 16 - x;
    if (left < 40) break;
    labels.push({ text, x, y: 16, align: "left", width: left, size: 13, colour, isBold });
    x += ruler.width(text, 13) * (isBold ? 1.08 : 1) + 12;
  }
  paintLabels(context, labels, scale);
  if (legend) paintLegend(context, legend, { right: picture.width / scale - 30, y: 10 }, theme, scale);
  return canvas;
}
