/** The picture of the neuron view: a row a key, a column for every step from query and key to the head's output. */

import { weightText } from "../data/measures";
import { type Of, product, type Terms, variation, weighted } from "../data/neuron";
import { fillBox, frame, scaled } from "../marks/boxes";
import { type Box, signedRamp } from "../marks/cells";
import type { Raster } from "../marks/raster";
import { drawStrip } from "../marks/strip";
import type { Theme } from "../theme";
import type { Label, Ruler } from "./labels";
import { type Column, type Figure, type Heat, layOut, layOutEvery, type Name, SHORT, TITLES } from "./neuronLayout";
import { EVERY_TOP, FOOT, NeuronRows, STRIP, TOP } from "./neuronRows";
import { type Content, type Spot, tipOf } from "./neuronTip";
import { dotsTitle } from "./neuronWords";

const FIGURES: Record<Exclude<Figure, "dots">, string> = { capped: "capped", bias: "bias" };
const WORDS: Record<Of, string> = { query: "query q", key: "key k", value: "value v", mixed: "output" };

export class NeuronPicture {
  scroll = 0;
  hovered: Spot | null = null;
  found = new Set<number>();
  current = -1;
  columns: Column[] = [];
  forced: Heat[] = [];
  private content: Content | null = null;
  private theme: Theme | null = null;
  private size = { width: 1, height: 1 };
  private rows = new NeuronRows(0, 1, false);

  constructor(private readonly ruler: Ruler) {}

  lay(content: Content, theme: Theme, width: number, height: number): void {
    this.content = content;
    this.theme = theme;
    this.size = { width, height };
    this.rows = new NeuronRows(content.tokens.texts.length, height, content.every !== null);
    const narrow = width < 640 ? 84 : 150;
    const tokens = Math.max(56, Math.min(narrow, this.ruler.usual(content.tokens.texts, 13) + 14));
    const { terms } = content;
    if (!terms) {
      this.columns = layOutEvery(width, tokens, content.order.length);
      this.forced = [];
      return;
    }
    const figures: Figure[] = ["dots"];
    if (terms.capped) figures.push("capped");
    if (terms.bias) figures.push("bias");
    const room = { width, tokens, dim: terms.props.dim, valueDim: terms.props.value_dim, figures, fold: content.fold };
    ({ columns: this.columns, forced: this.forced } = layOut(room));
  }

  paint(raster: Raster, scale: number): void {
    const { theme, content } = this.all();
    raster.fill(theme.background);
    const colours = signedRamp(theme);
    const [first, last] = this.range();
    for (let row = first; row < last; row++) {
      if (row === content.query.row) this.tint(raster, row, scale);
      for (const column of this.columns) this.paintCell(raster, scale, colours, column, row);
      if (content.terms?.allowed?.[row] === 0) this.fade(raster, row, scale);
    }
    const { theme: ink } = this.all();
    // Rows pass under what stays.
    fillBox(raster, scaled({ x: 0, y: 0, width: this.size.width, height: this.rows.first }, scale), ink.background);
    if (content.terms) {
      const y = this.rows.foot;
      fillBox(raster, scaled({ x: 0, y, width: this.size.width, height: FOOT }, scale), ink.background);
      fillBox(raster, scaled({ x: 0, y, width: this.size.width, height: 1 }, scale), ink.line);
    }
    this.paintStill(raster, scale, colours);
    for (const column of this.columns) if (column.isFolded) this.paintFolded(raster, scale, column);
  }

  paintFocus(raster: Raster, scale: number): void {
    const { theme, content } = this.all();
    const spot = this.hovered;
    if (!spot) return;
    if (typeof spot.row === "number" && this.rows.isInView(spot.row, this.scroll)) {
      const y = this.rowY(spot.row);
      fillBox(
        raster,
        scaled({ x: 8, y, width: this.size.width - 16, height: this.rows.pitch }, scale),
        theme.selection,
        0.07,
      );
    }
    if (spot.place < 0) return;
    const pairs: Name[] =
      spot.column === "every"
        ? ["every"]
        : spot.column === "key" || spot.column === "product"
          ? ["key", "product"]
          : ["value", "weighted"];
    const [first, last] = this.range();
    const bottom = Math.min(this.size.height - (content.terms ? FOOT : 0), this.rowY(last - 1) + this.rows.pitch);
    for (const column of this.columns) {
      if (!pairs.includes(column.name) || column.isFolded) continue;
      const cell = column.width / this.count(column.name);
      const x = column.x + spot.place * cell;
      const top = Math.max(this.rows.first, this.rowY(first));
      const rim = { x: x - 1, y: top, width: Math.max(cell, 1) + 2, height: bottom - top };
      frame(raster, scaled(rim, scale), theme.selection, Math.max(1, Math.round(scale)), 0.55);
      if (typeof spot.row === "number" && column.name === spot.column) {
        const y = this.rowY(spot.row);
        const own = { x: x - 1, y: y + 1, width: Math.max(cell, 1) + 2, height: this.rows.pitch - 2 };
        if (this.rows.isInView(spot.row, this.scroll))
          frame(raster, scaled(own, scale), theme.ink, Math.max(1, Math.round(scale)));
      }
    }
  }

  labels(): Label[] {
    const { theme, content } = this.all();
    const { terms } = content;
    const labels: Label[] = [];
    const [first, last] = this.range();
    const token = this.columns[0] as Column;
    for (let row = first; row < last; row++) {
      const y = this.rowY(row) + this.rows.pitch / 2;
      if (!this.rows.isInView(row, this.scroll)) continue;
      const isMasked = terms?.allowed?.[row] === 0;
      const isQuery = row === content.query.row;
      labels.push({
        text: content.tokens.texts[row] as string,
        x: token.x,
        y,
        align: "left",
        width: token.width,
        size: 13,
        isEdited: content.edited.has(row),
        isAnswer: content.tokens.isAnswer[row] ?? false,
        colour:
          this.found.has(row) || (content.tokens.isAnswer[row] && !content.edited.has(row))
            ? theme.accent
            : content.edited.has(row)
              ? theme.warn
              : isMasked || content.tokens.isSpecial[row]
                ? theme.tertiary
                : theme.ink,
        isBold: isQuery || this.hovered?.row === row || row === this.current,
      });
      if (!terms) continue;
      for (const column of this.columns) labels.push(...this.figure(column, row, y, isMasked));
    }
    labels.push(...this.stillLabels());
    return labels;
  }

  private figure(column: Column, row: number, y: number, isMasked: boolean): Label[] {
    const { theme, content } = this.all();
    const terms = content.terms as Terms;
    const common = { y, size: 12, colour: isMasked ? theme.tertiary : theme.secondary };
    const right = { ...common, x: column.x + column.width, align: "right" as const, width: column.width };
    if (column.name === "dots" || column.name === "capped" || column.name === "bias") {
      return [{ ...right, text: fixed(terms[column.name]?.[row] ?? Number.NaN) }];
    }
    if (column.name !== "softmax") return [];
    if (isMasked) return [{ ...right, text: "masked" }];
    return [
      {
        ...right,
        text: terms.two ? fixed(terms.weights[row] as number) : weightText(terms.weights[row] as number),
        colour: theme.ink,
      },
    ];
  }

  /** What a column holds, and the size that has the full colour; in few letters where there is no room for more. */
  private heatTitle(name: Heat, room: number): string {
    const full = `±${fixed(this.full(name))}`;
    const title = `${TITLES[name]}  ${full}`;
    return this.ruler.width(title, 11) * 1.08 <= room ? title : `${SHORT[name]} ${full}`;
  }

  /** Titles, and what is written beside the rows that stay. */
  private stillLabels(): Label[] {
    const { theme, content } = this.all();
    const { terms, every } = content;
    const token = this.columns[0] as Column;
    const small = { size: 11, colour: theme.secondary };
    const beside = (text: string, y: number): Label => ({
      ...small,
      text,
      x: token.x,
      y: y + STRIP / 2,
      align: "left",
      width: token.width + 6,
    });
    if (every) {
      const column = this.columns[1] as Column;
      const about = content.vectors.about(every);
      const title = `${WORDS[every]} of all tokens${about ? `  ±${fixed(about.largest)}` : ""}`;
      return [
        { ...small, text: title, x: column.x, y: TOP.titles, align: "left", width: column.width, isBold: true },
        beside("mean", EVERY_TOP.mean),
        beside("varies", EVERY_TOP.spread),
      ];
    }
    if (!terms) return [];
    const labels: Label[] = [];
    for (const [place, column] of this.columns.entries()) {
      const { name, x, width, isFolded } = column;
      // Figures are written at the right of their column: a title before them has room to the next one's.
      const next = this.columns[place + 1];
      const room = width + (next && next.name in TITLES ? 4 : 30);
      if (isFolded) {
        const at = { x: x + width / 2, y: this.rows.first + 76, align: "left" as const, width: 90, isUpright: true };
        labels.push({ ...small, ...at, text: TITLES[name as Heat] });
        continue;
      }
      const softmax = terms.two ? `softmax ±${fixed(this.fullWeight())}` : "softmax";
      const title = name === "token" ? (width < 70 ? "token" : "key token") : name === "softmax" ? softmax : "";
      const isHeat = name in TITLES;
      const text = isHeat
        ? this.heatTitle(name as Heat, room)
        : title || (name === "dots" ? dotsTitle(terms.props) : FIGURES[name as keyof typeof FIGURES]);
      const align = isHeat || name === "token" ? "left" : "right";
      labels.push({
        ...small,
        text,
        x: align === "left" ? x : x + width,
        y: TOP.titles,
        align,
        width: width + 10,
        isBold: true,
      });
    }
    const query = this.place("query");
    if (query) {
      labels.push(beside(`q of ${content.query.text}`, TOP.strip));
    }
    const output = this.place("output");
    const bar = this.columns.find((column) => column.name === "softmax");
    const y = this.rows.foot + (FOOT - STRIP) / 2;
    if (output) {
      const width = Math.max(40, output.x - 20 - (bar ? bar.x + bar.width : 0));
      const sum = terms.props.is_output_edited ? "output, edited" : width > 122 ? "output, the sum of a · v" : "output";
      const text = terms.two ? "output, A − B" : sum;
      labels.push({ ...small, text, x: output.x - 10, y: y + STRIP / 2, align: "right", width });
    }
    if (terms.sink !== null && bar) {
      labels.push(beside(`sink  ${fixed(terms.props.sink ?? Number.NaN)}`, y));
      labels.push({
        ...small,
        text: weightText(terms.sink),
        x: bar.x + bar.width,
        y: y + STRIP / 2,
        align: "right",
        width: 60,
        colour: theme.ink,
        size: 12,
      });
    }
    return labels;
  }

  /** What is under the pointer, in words and exact numbers. */
  tip(): string[] {
    return this.hovered ? tipOf(this.all().content, this.hovered) : [];
  }

  hit(x: number, y: number): Spot | null {
    const column = this.columns.find((candidate) => x >= candidate.x - 4 && x < candidate.x + candidate.width + 4);
    if (!column) return null;
    const still = this.still(y, x);
    if (still) return still;
    const row = this.rows.at(y, this.scroll);
    if (row === null) return null;
    return { row, column: column.name, ...this.neuronAt(column, x) };
  }

  /** A folded column, or the title of an open one, under a point: what a click folds or opens. */
  title(x: number, y: number): Heat | null {
    const column = this.columns.find(
      (candidate) => candidate.name in TITLES && x >= candidate.x - 3 && x < candidate.x + candidate.width + 3,
    );
    if (!column) return null;
    const isTitle = y < TOP.strip - 4;
    return column.isFolded || isTitle ? (column.name as Heat) : null;
  }

  // Inside

  private range(): [number, number] {
    return this.rows.visible(this.scroll);
  }

  private rowY(row: number): number {
    return this.rows.top(row, this.scroll);
  }

  private count(name: Name): number {
    const { content } = this.all();
    if (name === "every") return content.order.length;
    const dims = content.terms?.props;
    return (name === "key" || name === "product" ? dims?.dim : dims?.value_dim) ?? 1;
  }

  private full(name: Heat): number {
    const terms = this.content?.terms as Terms;
    if (name === "product" || name === "weighted") return terms.largest[name];
    return terms.props.largest[name] ?? 1;
  }

  /** Of a difference: the weight whose bar is full. */
  private fullWeight(): number {
    const weights = this.content?.terms?.weights;
    return weights?.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-4) ?? 1;
  }

  private neuronAt(column: Column, x: number): { neuron: number; place: number } {
    const isHeat = column.name in TITLES || column.name === "every";
    const inside = (x - column.x) / column.width;
    if (!isHeat || column.isFolded || inside < 0 || inside >= 1) return { neuron: -1, place: -1 };
    const place = Math.floor(inside * this.count(column.name));
    return { place, neuron: this.orderOf(column.name)?.[place] ?? place };
  }

  private orderOf(name: Name): Int32Array | null {
    return name === "key" || name === "product" || name === "every" ? (this.content?.order ?? null) : null;
  }

  private still(y: number, x: number): Spot | null {
    const rows: [Spot["row"], number][] = this.content?.every
      ? [
          ["mean", EVERY_TOP.mean],
          ["spread", EVERY_TOP.spread],
        ]
      : [
          ["query", TOP.strip],
          ["output", this.rows.foot + (FOOT - STRIP) / 2],
        ];
    for (const [row, top] of rows) {
      const column = this.place(row);
      if (!column || y < top || y > top + STRIP) continue;
      const neuron = this.neuronAt(column, x);
      if (neuron.neuron >= 0) return { row, column: column.name, ...neuron };
    }
    return null;
  }

  /** The column over or under which a row that stays is drawn. */
  private place(row: Spot["row"]): Column | null {
    const open = (name: Name) => this.columns.find((column) => column.name === name && !column.isFolded) ?? null;
    if (row === "query") return open("key") ?? open("product");
    if (row === "output") return open("weighted") ?? open("value");
    return open("every");
  }

  private paintCell(raster: Raster, scale: number, colours: Uint32Array, column: Column, row: number): void {
    const { theme, content } = this.all();
    const { terms, vectors } = content;
    const box = { x: column.x, y: this.rowY(row) + 2, width: column.width, height: this.rows.pitch - 4 };
    if (column.isFolded) return;
    const draw = (values: Float32Array | null, full: number) => {
      if (values) drawStrip(raster, values, this.orderOf(column.name), scaled(box, scale), colours, full);
      else fillBox(raster, scaled({ ...box, y: box.y + box.height / 2, height: 1 }, scale), theme.line);
    };
    if (column.name === "every") {
      draw(vectors.row(content.every as Of, row), vectors.about(content.every as Of)?.largest ?? 1);
    } else if (!terms) {
      return;
    } else if (column.name === "key" || column.name === "value") {
      draw(vectors.row(column.name, row), this.full(column.name));
    } else if (column.name === "product") {
      draw(product(terms, vectors, row), this.full("product"));
    } else if (column.name === "weighted") {
      draw(weighted(terms, vectors, row), this.full("weighted"));
    } else if (column.name === "softmax") {
      this.bar(raster, scale, column, this.rowY(row) + this.rows.pitch / 2, terms.weights[row] as number);
    }
  }

  private bar(raster: Raster, scale: number, column: Column, middle: number, weight: number): void {
    const { theme } = this.all();
    const room = column.width - 42;
    if (room < 12) return;
    const box = { x: column.x, y: middle - 4, width: room, height: 8 };
    fillBox(raster, scaled(box, scale), theme.line, 0.5);
    if (this.content?.terms?.two) {
      const length = (room / 2) * Math.min(1, Math.abs(weight) / this.fullWeight());
      const from = box.x + room / 2 - (weight < 0 ? length : 0);
      const colour = weight < 0 ? theme.negative : theme.positive;
      fillBox(raster, scaled({ ...box, x: from, width: length }, scale), colour);
      fillBox(
        raster,
        scaled({ x: box.x + room / 2 - 0.5, y: middle - 5, width: 1, height: 10 }, scale),
        theme.tertiary,
      );
      return;
    }
    fillBox(raster, scaled({ ...box, width: room * Math.max(0, Math.min(1, weight)) }, scale), theme.accent);
  }

  private paintStill(raster: Raster, scale: number, colours: Uint32Array): void {
    const { theme, content } = this.all();
    const { terms, every, vectors } = content;
    const strip = (column: Column | null, y: number, values: Float32Array, full: number) => {
      if (!column) return;
      const box = { x: column.x, y, width: column.width, height: STRIP };
      drawStrip(raster, values, this.orderOf(column.name), scaled(box, scale), colours, full);
      frame(raster, rimOf(scaled(box, scale)), theme.line);
    };
    if (terms) {
      const y = this.rows.foot + (FOOT - STRIP) / 2;
      strip(this.place("query"), TOP.strip, terms.query, terms.props.largest.query ?? 1);
      strip(this.place("output"), y, terms.mixed, terms.props.largest.mixed ?? 1);
      const bar = this.columns.find((column) => column.name === "softmax");
      if (terms.sink !== null && bar) this.bar(raster, scale, bar, y + STRIP / 2, terms.sink);
      return;
    }
    const about = every && vectors.about(every);
    const column = this.place("mean");
    if (!about || !column) return;
    strip(column, EVERY_TOP.mean, about.mean, about.largest);
    const share = variation(about.mean, about.spread);
    const cell = column.width / share.length;
    content.order.forEach((neuron, place) => {
      const height = Math.max(1, STRIP * (share[neuron] as number));
      const box = {
        x: column.x + place * cell,
        y: EVERY_TOP.spread + STRIP - height,
        width: Math.max(1, cell - 1),
        height,
      };
      fillBox(raster, scaled(box, scale), theme.secondary, 0.8);
    });
  }

  private paintFolded(raster: Raster, scale: number, { x, width }: Column): void {
    const { theme } = this.all();
    const bottom = this.rows.foot - 8;
    const height = Math.max(
      20,
      Math.min(bottom - this.rows.first, this.rowY(this.range()[1] - 1) + this.rows.pitch - this.rows.first),
    );
    fillBox(raster, scaled({ x, y: this.rows.first, width, height }, scale), theme.line, 0.45);
  }

  private tint(raster: Raster, row: number, scale: number): void {
    const { theme } = this.all();
    fillBox(
      raster,
      scaled({ x: 8, y: this.rowY(row), width: this.size.width - 16, height: this.rows.pitch }, scale),
      theme.tint,
    );
  }

  /** What is masked takes no part: it stays to be seen, faintly. */
  private fade(raster: Raster, row: number, scale: number): void {
    const { theme } = this.all();
    const x = (this.columns[0] as Column).x + (this.columns[0] as Column).width;
    const box = { x, y: this.rowY(row) + 1, width: this.size.width - x, height: this.rows.pitch - 2 };
    fillBox(raster, scaled(box, scale), theme.background, 0.72);
  }

  private all(): { content: Content; theme: Theme } {
    if (!this.content || !this.theme) throw new Error("nothing is laid out yet");
    return { content: this.content, theme: this.theme };
  }
}

function fixed(value: number): string {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  const digits = size >= 1000 ? 0 : size >= 0.01 || size === 0 ? 2 : 3;
  const text = value.toFixed(digits);
  // What rounds to nothing has no sign.
  return text.replace("-", Number(text) === 0 ? "" : "−");
}

function rimOf({ x, y, width, height }: Box): Box {
  return { x: Math.round(x) - 1, y: Math.round(y) - 1, width: Math.round(width) + 2, height: Math.round(height) + 2 };
}
