/** A plot with two linear axes, drawn as SVG. */

import { makeSvg } from "../elements";

export interface Axis {
  low: number;
  high: number;
  title: string;
  text: (value: number) => string;
}

const MARGIN = { left: 52, right: 14, top: 12, bottom: 40 };
const PREFERRED = [1, 2, 2.5, 5, 10];

/** An SVG with lines, numbers and names of both axes, and where a value lies on each. */
export class Plot {
  readonly svg: SVGSVGElement;

  constructor(
    readonly width: number,
    readonly height: number,
    private readonly across: Axis,
    private readonly up: Axis,
    label: string,
  ) {
    this.svg = makeSvg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
    this.drawAxes();
  }

  x(value: number): number {
    const { low, high } = this.across;
    return MARGIN.left + ((value - low) / (high - low || 1)) * (this.width - MARGIN.left - MARGIN.right);
  }

  y(value: number): number {
    const { low, high } = this.up;
    const bottom = this.height - MARGIN.bottom;
    return bottom - ((value - low) / (high - low || 1)) * (bottom - MARGIN.top);
  }

  /** A level line over the whole width. */
  level(value: number, attributes: Record<string, string | number>): SVGLineElement {
    const [x1, x2] = [MARGIN.left, this.width - MARGIN.right];
    return makeSvg("line", { x1, x2, y1: this.y(value), y2: this.y(value), ...attributes });
  }

  /** A band over the whole width. */
  band(low: number, high: number, attributes: Record<string, string | number>): SVGRectElement {
    const [top, bottom] = [this.y(high), this.y(low)];
    const width = this.width - MARGIN.left - MARGIN.right;
    return makeSvg("rect", { x: MARGIN.left, y: top, width, height: Math.max(1, bottom - top), ...attributes });
  }

  private drawAxes(): void {
    const { left, right, top, bottom } = {
      left: MARGIN.left,
      right: this.width - MARGIN.right,
      top: MARGIN.top,
      bottom: this.height - MARGIN.bottom,
    };
    const line = (x1: number, x2: number, y1: number, y2: number) =>
      makeSvg("line", { x1, x2, y1, y2, stroke: "var(--line)" });
    const text = (words: string, anchor: string, attributes: Record<string, string | number>) =>
      makeSvg("text", { "text-anchor": anchor, ...attributes }, [words]);
    for (const value of ticks(this.up.low, this.up.high, 5)) {
      const y = this.y(value);
      this.svg.append(line(left, right, y, y), text(this.up.text(value), "end", { x: left - 6, y: y + 3 }));
    }
    for (const value of ticks(this.across.low, this.across.high, this.width < 480 ? 4 : 8)) {
      const x = this.x(value);
      this.svg.append(line(x, x, top, bottom), text(this.across.text(value), "middle", { x, y: bottom + 14 }));
    }
    const turned = `translate(11 ${(top + bottom) / 2}) rotate(-90)`;
    this.svg.append(
      text(this.across.title, "middle", { x: (left + right) / 2, y: this.height - 6 }),
      text(this.up.title, "middle", { x: 0, y: 0, transform: turned }),
    );
  }
}

/** Round values between two ends, about `count` of them. */
export function ticks(low: number, high: number, count: number): number[] {
  if (!(high > low)) return [low];
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * (PREFERRED.find((factor) => factor * power >= rough) ?? 10);
  const values: number[] = [];
  for (let index = Math.ceil(low / step - 1e-9); index * step <= high + step * 1e-9; index++) {
    values.push(Number((index * step).toPrecision(12)));
  }
  return values;
}

/** Round values as they are written at an axis: all with as many digits. */
export function tickTexts(values: number[]): string[] {
  const texts = values.map(String);
  if (texts.some((text) => text.includes("e"))) return texts.map((text) => text.replaceAll("-", "−"));
  const digits = Math.max(...texts.map((text) => text.split(".")[1]?.length ?? 0));
  return values.map((value) => value.toFixed(digits).replace("-", "−"));
}

/** The ends of an axis: all values with a little room. */
export function endsOf(values: number[]): [low: number, high: number] {
  if (!values.length) return [0, 1];
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const room = (high - low || Math.abs(high) || 1) * 0.06;
  return [low - room, high + room];
}
