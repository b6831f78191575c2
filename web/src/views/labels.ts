/** Text of a view: real text in the page (for screen readers, selection of scripts, right-to-left), painted in a picture. */

import { css, FONT, type Rgb } from "../theme";

export interface Label {
  text: string;
  /** Where the text begins (left), ends (right) or is centred; always its middle in height. */
  x: number;
  y: number;
  align: "left" | "right" | "centre";
  /** Longer text ends in an ellipsis. */
  width: number;
  size: number;
  colour: Rgb;
  isBold?: boolean;
  isStruck?: boolean;
  /** Written by the model itself: quietly underlined. */
  isWritten?: boolean;
  /** Changed by an edit: a thick line under it. */
  isEdited?: boolean;
  /** Part of the model's answer: a thick line in its colour. */
  isAnswer?: boolean;
  /** Turned to read upwards, about its own point. */
  isUpright?: boolean;
}

const SHIFT = { left: "0", right: "-100%", centre: "-50%" };
const DIRECTION = { left: "left", right: "right", centre: "center" };

/** The labels in the page; elements are kept and moved, so that scrolling makes none. */
export class Labels {
  readonly element = document.createElement("div");
  private readonly spans: HTMLSpanElement[] = [];
  private readonly shown: (Label | null)[] = [];

  constructor() {
    Object.assign(this.element.style, { position: "absolute", inset: "0", overflow: "hidden", pointerEvents: "none" });
    this.element.style.fontFamily = FONT;
    this.element.style.fontVariantNumeric = "tabular-nums";
  }

  show(labels: Label[]): void {
    labels.forEach((label, index) => {
      this.place(this.spans[index] ?? this.grow(), label, this.shown[index] ?? null);
      this.shown[index] = label;
    });
    for (let index = labels.length; index < this.spans.length; index++) {
      if (this.shown[index]) (this.spans[index] as HTMLSpanElement).hidden = true;
      this.shown[index] = null;
    }
  }

  private grow(): HTMLSpanElement {
    const span = document.createElement("span");
    Object.assign(span.style, {
      position: "absolute",
      left: "0",
      top: "0",
      whiteSpace: "pre",
      overflow: "hidden",
      textOverflow: "ellipsis",
      transformOrigin: "0 0",
      lineHeight: "1.4",
      unicodeBidi: "isolate",
    });
    span.dir = "auto";
    this.spans.push(span);
    this.element.append(span);
    return span;
  }

  /** Touches only what is different from what the span shows, as every touch costs. */
  private place(span: HTMLSpanElement, label: Label, before: Label | null): void {
    const { style } = span;
    const isNew = (name: keyof Label) => before === null || before[name] !== label[name];
    if (!before) span.hidden = false;
    if (isNew("text")) span.textContent = label.text;
    if (isNew("x") || isNew("y") || isNew("align") || isNew("isUpright")) {
      const turn = label.isUpright ? "rotate(-90deg) " : "";
      style.transform = `translate(${label.x}px, ${label.y}px) ${turn}translate(${SHIFT[label.align]}, -50%)`;
    }
    if (isNew("width")) style.maxWidth = `${label.width}px`;
    if (isNew("align")) style.textAlign = DIRECTION[label.align];
    if (isNew("size")) style.fontSize = `${label.size}px`;
    if (isNew("isBold")) style.fontWeight = label.isBold ? "600" : "400";
    if (isNew("colour")) style.color = css(label.colour);
    if (isNew("isStruck") || isNew("isWritten") || isNew("isEdited") || isNew("isAnswer")) {
      style.textDecoration = decorationOf(label);
      style.textUnderlineOffset = "3px";
    }
  }
}

function decorationOf({ isStruck, isWritten, isEdited, isAnswer }: Label): string {
  if (isStruck) return "line-through";
  return isEdited || isAnswer ? "underline solid 2px" : isWritten ? "underline dotted from-font" : "none";
}

/** The same labels, painted. */
export function paintLabels(context: CanvasRenderingContext2D, labels: Label[], scale: number): void {
  context.save();
  context.scale(scale, scale);
  context.textBaseline = "middle";
  for (const label of labels) {
    context.save();
    context.translate(label.x, label.y);
    if (label.isUpright) context.rotate(-Math.PI / 2);
    context.font = fontOf(label.size, label.isBold);
    context.fillStyle = css(label.colour);
    context.direction = isRightToLeft(label.text) ? "rtl" : "ltr";
    context.textAlign = label.align === "centre" ? "center" : label.align;
    const text = shortened(context, label.text, label.width);
    context.fillText(text, 0, 0);
    const isMarked = label.isEdited || label.isAnswer;
    if (label.isStruck || label.isWritten || isMarked) {
      const length = context.measureText(text).width;
      const from = label.align === "left" ? 0 : label.align === "right" ? -length : -length / 2;
      context.globalAlpha = label.isStruck || isMarked ? 1 : 0.5;
      context.fillRect(from, label.isStruck ? 0 : label.size * 0.6, length, isMarked ? 2 : 1);
    }
    context.restore();
  }
  context.restore();
}

export function fontOf(size: number, isBold = false): string {
  return `${isBold ? 600 : 400} ${size}px ${FONT}`;
}

export class Ruler {
  private readonly context = document.createElement("canvas").getContext("2d") as CanvasRenderingContext2D;
  private readonly widths = new Map<string, number>();

  /** How wide a text is. */
  width(text: string, size: number): number {
    const name = `${size} ${text}`;
    let width = this.widths.get(name);
    if (width === undefined) {
      this.context.font = fontOf(size);
      width = this.context.measureText(text).width;
      this.widths.set(name, width);
    }
    return width;
  }

  /** The widest of a few, or what nearly all of many fit into: one long token should not take the room of all. A sample
   *  of them, evenly spread, when they are very many. */
  usual(texts: string[], size: number): number {
    const step = Math.max(1, Math.floor(texts.length / 400));
    const widths: number[] = [];
    for (let i = 0; i < texts.length; i += step) widths.push(this.width(texts[i] as string, size));
    widths.sort((a, b) => a - b);
    const most = widths.at(-1) ?? 0;
    return Math.max(Math.min(most, 110), widths[Math.ceil((widths.length - 1) * (widths.length > 24 ? 0.96 : 1))] ?? 0);
  }
}

function shortened(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width + 0.5) return text;
  const letters = Array.from(text);
  let low = 0;
  let high = letters.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(`${letters.slice(0, middle).join("")}…`).width <= width) low = middle;
    else high = middle - 1;
  }
  return `${letters.slice(0, low).join("")}…`;
}

/** By the first strong letter, as `dir="auto"` does. */
function isRightToLeft(text: string): boolean {
  const strong = /\p{L}/u.exec(text)?.[0] ?? "";
  return /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u.test(strong);
}
