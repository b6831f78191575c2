/** The legend of the atlas: it lies on the picture, in a corner, and is painted on pictures that are saved. */

import type { ColourKey } from "../data/atlasColours";
import { css, FONT, type Rgb, type Theme } from "../theme";
import { fontOf, type Label, paintLabels, Ruler } from "./labels";

const BAR = 96;

export class LegendBox {
  readonly element = document.createElement("div");
  private key: ColourKey | null = null;
  private theme: Theme | null = null;

  constructor() {
    Object.assign(this.element.style, {
      position: "absolute",
      left: "10px",
      bottom: "10px",
      padding: "6px 9px",
      borderRadius: "6px",
      font: `11px/1.5 ${FONT}`,
      maxWidth: "min(520px, calc(100% - 20px))",
      boxSizing: "border-box",
      display: "flex",
      flexWrap: "wrap",
      gap: "2px 12px",
      alignItems: "center",
      pointerEvents: "none",
      fontVariantNumeric: "tabular-nums",
    });
    this.element.setAttribute("role", "note");
    this.element.setAttribute("aria-label", "Legend");
  }

  /** The height that it takes of the picture, with what is free about it. */
  get room(): number {
    return this.key ? this.element.offsetHeight + 20 : 20;
  }

  show(key: ColourKey | null, theme: Theme): void {
    const { style } = this.element;
    if (key === this.key && theme === this.theme) return;
    this.key = key;
    this.theme = theme;
    style.display = key ? "flex" : "none";
    if (!key) return;
    style.background = css(theme.panel, 0.9);
    style.color = css(theme.secondary);
    style.border = `1px solid ${css(theme.line)}`;
    this.element.replaceChildren(...this.parts(key));
  }

  private parts({ title, swatches, bars, ends, notes }: ColourKey): HTMLElement[] {
    const parts: HTMLElement[] = [];
    if (title) parts.push(text(title));
    for (const { text: words, colours } of swatches) {
      const swatch = row();
      swatch.append(...colours.map(dot), text(words));
      parts.push(swatch);
    }
    for (const { text: words, colours } of bars) {
      const bar = row();
      if (words) bar.append(text(words));
      if (ends) bar.append(text(ends[0]));
      bar.append(strip(colours));
      if (ends) bar.append(text(ends[1]));
      parts.push(bar);
    }
    parts.push(...notes.map(text));
    return parts;
  }
}

function text(words: string): HTMLElement {
  const span = document.createElement("span");
  span.textContent = words;
  Object.assign(span.style, { overflow: "hidden", textOverflow: "ellipsis", whiteSpace: "pre", maxWidth: "220px" });
  return span;
}

function row(): HTMLElement {
  const span = document.createElement("span");
  Object.assign(span.style, { display: "inline-flex", alignItems: "center", gap: "5px" });
  return span;
}

function dot(colour: Rgb): HTMLElement {
  const span = document.createElement("span");
  Object.assign(span.style, {
    width: "9px",
    height: "9px",
    borderRadius: "50%",
    background: css(colour),
    flex: "none",
  });
  return span;
}

function strip(colours: Rgb[]): HTMLElement {
  const span = document.createElement("span");
  const stops = colours.map((colour) => css(colour)).join(", ");
  Object.assign(span.style, {
    width: `${BAR}px`,
    height: "8px",
    borderRadius: "2px",
    background: `linear-gradient(to right, ${stops})`,
  });
  return span;
}

/** The legend in words, for those who do not see colours. */
export function legendLine({ title, swatches, bars, ends }: ColourKey): string {
  const kinds = swatches.map((swatch) => swatch.text).filter(Boolean);
  const range = ends && bars.length ? `from ${ends[0]} to ${ends[1]}` : "";
  return [title, kinds.join(", "), range].filter(Boolean).join(": ");
}

/** Paint the legend from a point on, in one line; gives nothing back, as pictures are wide. */
export function paintKey(
  context: CanvasRenderingContext2D,
  { title, swatches, bars, ends, notes }: ColourKey,
  at: { x: number; y: number },
  theme: Theme,
  scale: number,
): void {
  const ruler = new Ruler();
  const labels: Label[] = [];
  let { x } = at;
  const write = (words: string) => {
    if (!words) return;
    labels.push({ text: words, x, y: at.y, align: "left", width: 240, size: 11, colour: theme.secondary });
    x += Math.min(240, ruler.width(words, 11)) + 6;
  };
  context.save();
  context.scale(scale, scale);
  context.font = fontOf(11);
  write(title);
  for (const swatch of swatches) {
    for (const colour of swatch.colours) {
      context.fillStyle = css(colour);
      context.beginPath();
      context.arc(x + 5, at.y, 4.5, 0, 2 * Math.PI);
      context.fill();
      x += 13;
    }
    write(swatch.text);
    x += 6;
  }
  for (const bar of bars) {
    write(bar.text);
    if (ends) write(ends[0]);
    bar.colours.forEach((colour, step) => {
      context.fillStyle = css(colour);
      context.fillRect(x + (step * BAR) / bar.colours.length, at.y - 4, BAR / bar.colours.length + 0.5, 8);
    });
    x += BAR + 6;
    if (ends) write(ends[1]);
    x += 6;
  }
  for (const note of notes) write(note);
  context.restore();
  paintLabels(context, labels, scale);
}
