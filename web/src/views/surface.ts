/** A canvas with text over it, as large as the element it is in; coarser while something moves, sharp when it is still. */

import { Raster } from "../marks/raster";
import { type Label, Labels, paintLabels } from "./labels";

const STILL = 140; // ms

export class Surface {
  readonly canvas = document.createElement("canvas");
  readonly labels = new Labels();
  private readonly context: CanvasRenderingContext2D;
  private timer = 0;
  /** Something moves: what is drawn need not be sharp or complete. */
  isMoving = false;

  constructor(
    private readonly element: HTMLElement,
    private readonly sharpen: () => void,
  ) {
    if (getComputedStyle(element).position === "static") element.style.position = "relative";
    Object.assign(this.canvas.style, { position: "absolute", left: "0", top: "0", width: "100%", height: "100%" });
    this.canvas.setAttribute("aria-hidden", "true");
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

  show(raster: Raster, labels: Label[]): void {
    raster.show(this.context);
    this.labels.show(labels);
  }

  destroy(): void {
    window.clearTimeout(this.timer);
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
