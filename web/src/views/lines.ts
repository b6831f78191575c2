/** The head view as two columns of tokens with lines between them. */

import { SEEN } from "../data/lines";
import { number } from "../data/measures";
import type { Exact } from "../data/rows";
import { fillBox, roundBox } from "../marks/boxes";
import type { Box } from "../marks/cells";
import { Curves } from "../marks/lines";
import type { Raster } from "../marks/raster";
import type { Side } from "../selection";
import { between, DARK, LIGHT, type Rgb, type Theme } from "../theme";
import { Arcs } from "./arcs";
import { Columns, type Token } from "./columns";
import { BESIDE, ICON, type Icons } from "./icons";
import type { Label, Ruler } from "./labels";
import type { DrawnHead, Scene } from "./scene";

const OTHER = { query: "key", key: "query" } as const;
const WORTH = 0.005; // weights from here on are written out
const IN_TIP = 12; // heads at most
const PASSING = 0.25; // how much of a line is seen whose other end is out of view: they gather at the edges

export interface Exactly {
  token: Token;
  of: Exact;
}

/** What one token gives or gets: for each shown head the numbers of the tokens opposite, and which lines are drawn. */
interface Ends {
  values: Float32Array;
  strength: Float32Array;
  isDrawn: Uint8Array;
}

export class LinesForm {
  scroll = 0;
  hovered: Token | null = null;
  matches: Token[] = [];
  match = -1;
  exact: Exactly | null = null;
  /** While scrolling, lines with one end out of view are left out: they are most of the work and least of the picture. */
  isMoving = false;
  columns: Columns | null = null;
  /** Of an image: its patches, beside their names. */
  icons: Icons | null = null;
  private scene: Scene | null = null;
  private theme: Theme | null = null;
  private arcs: Arcs | null = null;
  private matched: Record<Side, Set<number>> = { query: new Set(), key: new Set() };
  private ends: { token: Token; exact: Exactly | null; of: Ends[] } | null = null;

  constructor(private readonly ruler: Ruler) {}

  lay(scene: Scene, theme: Theme, width: number, height: number): void {
    const { queries, keys } = scene.layer;
    if (scene !== this.scene) {
      this.ends = null;
      const isBeside = scene.trees && scene.selection.axis === "vertical";
      this.arcs = isBeside && scene.trees ? new Arcs(scene.trees, scene, this.ruler) : null;
    }
    this.scene = scene;
    this.theme = theme;
    this.columns = new Columns({
      width,
      height,
      axis: scene.selection.axis,
      count: { query: queries.texts.length, key: keys.texts.length },
      text: {
        query: this.ruler.usual(queries.texts, 14) + (this.icons ? ICON + BESIDE : 0),
        key: this.ruler.usual(keys.texts, 14) + (this.icons ? ICON + BESIDE : 0),
      },
      nHeads: scene.shown.length,
      hasSegments: queries.segments.includes("B") || keys.segments.includes("B"),
      ...(this.arcs ? { aside: this.arcs.aside } : {}),
    });
    this.scroll = Math.max(0, Math.min(this.columns.furthest, this.scroll));
  }

  /** The token whose lines are shown alone: the one under the pointer, else the pinned one. */
  get focus(): Token | null {
    return this.hovered ?? this.pinned;
  }

  get pinned(): Token | null {
    const token = this.scene?.selection.token ?? null;
    return token && token.index < this.count(token.side) ? token : null;
  }

  find(matches: Token[]): void {
    this.matches = matches;
    this.matched = { query: new Set(), key: new Set() };
    for (const { side, index } of matches) this.matched[side].add(index);
  }

  /** Bring a token into view, if it is not. */
  reveal(token: Token): boolean {
    const columns = this.columns as Columns;
    if (columns.isSeen(token, this.scroll)) return false;
    this.scroll = columns.centred(token);
    return true;
  }

  paint(raster: Raster, scale: number): void {
    const { scene, theme } = this.all();
    raster.fill(theme.background);
    this.paintSegments(raster, scale);
    this.paintRelevance(raster, scale);
    this.arcs?.paint(raster, scale, this.all().columns, this.scroll, theme);
    const curves = this.curves(raster, scale);
    for (const drawnHead of scene.shown) {
      const { colour, dashed } = scene.colourOf(drawnHead, theme);
      if (scene.isSigned) {
        this.drawLines(curves, drawnHead, scale, dashed, -1);
        curves.flush(theme.negative);
        this.drawLines(curves, drawnHead, scale, dashed, 1);
        curves.flush(theme.positive);
      } else {
        this.drawLines(curves, drawnHead, scale, dashed, 0);
        curves.flush(colour);
      }
    }
    this.paintMap(raster, scale);
    this.paintIcons(raster, scale);
  }

  /** Over the faded picture: the token's own lines, and what is opposite. */
  paintFocus(raster: Raster, scale: number): void {
    const { scene, theme, columns } = this.all();
    const token = this.focus as Token;
    const other = OTHER[token.side];
    const ends = this.endsOf(token);
    const curves = this.curves(raster, scale);
    const { isSigned } = scene;
    this.paintPlate(raster, scale, token, theme.tint, 1);
    this.paintRelevance(raster, scale);
    const [first, last] = columns.visible(other, this.scroll);
    // Heads that agree would hide each other: their lines lie side by side.
    const apart = Math.min(2.2, (columns.pitch * 0.6) / ends.length);
    ends.forEach((end, which) => {
      const { colour, dashed } = scene.colourOf(scene.shown[which] as DrawnHead, theme);
      const aside = (which - (ends.length - 1) / 2) * apart;
      const at = (columns.at(token.side, token.index, this.scroll) + aside) * scale;
      for (let index = 0; index < end.strength.length; index++) {
        const strength = end.strength[index] as number;
        const tone = isSigned ? ((end.values[index] as number) < 0 ? theme.negative : theme.positive) : colour;
        if (end.isDrawn[index]) {
          const to = (columns.at(other, index, this.scroll) + aside) * scale;
          const [a, b] = token.side === "query" ? [at, to] : [to, at];
          curves.draw(a, b, Math.min(1, 0.06 + 0.94 * strength ** 0.75), (1.4 + 1.1 * strength) * scale, dashed);
          if (isSigned) curves.flush(tone);
        }
        if (index < first || index >= last || !(strength >= WORTH)) continue;
        this.paintEnd(raster, scale, other, index, which, tone, strength);
      }
      if (!isSigned) curves.flush(colour);
    });
    this.paintMap(raster, scale, ends);
    this.paintIcons(raster, scale);
  }

  labels(): Label[] {
    const { scene, theme, columns } = this.all();
    const { site, queries, keys } = scene.layer;
    const labels: Label[] = [];
    const focus = this.focus;
    const names = site.kind === "cross" ? { query: site.stack, key: site.key_stack } : { query: "query", key: "key" };
    for (const side of ["query", "key"] as const) {
      const reading = side === "query" ? queries : keys;
      const isFocus = (index: number) => focus?.index === index && (focus.side === side || scene.isSelf);
      const [first, last] = columns.visible(side, this.scroll);
      for (let index = first; index < last; index++) {
        const along = columns.at(side, index, this.scroll);
        if (along < columns.from - 2 || along > columns.to + 2 || reading.isLater[index]) continue;
        const hasIcon = columns.isVertical && this.icons?.has(side, index);
        const at = this.labelPlace(side, along);
        labels.push({
          ...at,
          x: at.x + (hasIcon ? (side === "query" ? -1 : 1) * (this.iconSize + BESIDE) : 0),
          text: reading.texts[index] as string,
          width: columns.isFlat && !columns.isVertical ? columns.pitch - 6 : columns.label[side],
          size: columns.pitch >= 19 ? 14 : columns.pitch >= 16 ? 13 : 12,
          colour: reading.isOff[index] || reading.isSpecial[index] ? theme.tertiary : theme.ink,
          isBold: isFocus(index),
          isStruck: reading.isOff[index] ?? false,
          isWritten: reading.isWritten[index] ?? false,
        });
      }
      labels.push(this.heading(side, names[side]));
      labels.push(...this.segmentLabels(side));
    }
    // Numbers of a key stand where the names of relations do.
    if (focus?.side !== "key") labels.push(...(this.arcs?.labels(columns, this.scroll, theme) ?? []));
    if (focus) labels.push(...this.numberLabels(focus));
    return labels;
  }

  private get iconSize(): number {
    return Math.min(ICON, this.all().columns.pitch - 2);
  }

  /** The patches in view, between their names and the lines. */
  private paintIcons(raster: Raster, scale: number): void {
    const { columns } = this.all();
    if (!this.icons || !columns.isVertical) return;
    const size = this.iconSize;
    for (const side of ["query", "key"] as const) {
      const [first, last] = columns.visible(side, this.scroll);
      const x = side === "query" ? columns.start - 10 - size / 2 : columns.end + 10 + size / 2;
      for (let index = first; index < last; index++) {
        this.icons.draw(raster, scale, side, index, { x, y: columns.at(side, index, this.scroll), size });
      }
    }
  }

  /** In words, where the numbers of several heads have no room beside the tokens: each head's strongest end. */
  tip(token: Token): string[] {
    const { scene, columns } = this.all();
    if (scene.shown.length === 1 || this.hasNumbers) return [];
    const opposite = token.side === "query" ? scene.layer.keys : scene.layer.queries;
    const [from, to] = columns.visible(token.side, this.scroll);
    if (token.index < from || token.index >= to) return [];
    const ends = this.endsOf(token).map(({ strength, values }, which) => {
      const most = strength.reduce((best, weight, index) => (weight > (strength[best] as number) ? index : best), 0);
      const name = (scene.shown[which] as DrawnHead).name;
      return {
        strength: strength[most] as number,
        text: `${name}  ${token.side === "query" ? "→" : "←"} ${opposite.texts[most]}  ${number(values[most] as number)}`,
      };
    });
    const worth = ends.filter((end) => end.strength >= WORTH);
    const strongest = new Set([...worth].sort((a, b) => b.strength - a.strength).slice(0, IN_TIP));
    const lines = worth.filter((end) => strongest.has(end)).map((end) => end.text);
    return worth.length > IN_TIP ? [...lines, `and ${worth.length - IN_TIP} weaker heads`] : lines;
  }

  /** Whether a number fits beside each token, for every head. */
  private get hasNumbers(): boolean {
    const { columns } = this.all();
    return columns.number >= (columns.isVertical || !columns.isFlat ? 24 : 13);
  }

  /** Numbers of the focused token, for the tip and the table. */
  endsOf(token: Token): Ends[] {
    const { scene } = this.all();
    const exact = this.exact && same(this.exact.token, token) ? this.exact : null;
    if (this.ends && same(this.ends.token, token) && this.ends.exact === exact) return this.ends.of;
    const of = scene.shown.map((drawnHead) => this.endOf(drawnHead, token, exact));
    this.ends = { token, exact, of };
    return of;
  }

  private endOf(drawnHead: DrawnHead, { side, index }: Token, exact: Exactly | null): Ends {
    const { scene } = this.all();
    const count = this.count(OTHER[side]);
    const end = {
      values: new Float32Array(count).fill(Number.NaN),
      strength: new Float32Array(count),
      isDrawn: new Uint8Array(count),
    };
    const { plane, lines } = drawnHead;
    const visit = (cell: number, other: number) => {
      end.values[other] = plane.values[cell] as number;
      end.strength[other] = plane.strength[cell] as number;
      const [query, key] = side === "query" ? [index, other] : [other, index];
      end.isDrawn[other] = lines.has(cell, query, key) ? 1 : 0;
    };
    if (side === "query") plane.row(index, visit);
    else plane.column(index, visit);
    if (!exact) return end;
    const heads = drawnHead.head < 0 ? scene.selection.shown : [drawnHead.head];
    end.values.fill(0);
    for (const head of heads) {
      const values = exact.of(head);
      for (let i = 0; i < count; i++) end.values[i] = (end.values[i] as number) + (values[i] as number) / heads.length;
    }
    const { between } = scene;
    const isOwn = side === "query" ? between.queries[index] : between.keys[index];
    const others = side === "query" ? between.keys : between.queries;
    for (let i = 0; i < count; i++) {
      end.strength[i] = scene.layer.strengthOf(end.values[i] as number);
      if (lines.floor !== null)
        end.isDrawn[i] = isOwn && others[i] && (end.strength[i] as number) >= lines.floor ? 1 : 0;
    }
    return end;
  }

  /** The lines of a head that have an end in view; of one sign, or of both (0). */
  private drawLines(
    curves: Curves,
    { plane, lines }: DrawnHead,
    scale: number,
    dashed: boolean,
    sign: -1 | 0 | 1,
  ): void {
    const { scene, columns } = this.all();
    const [firstQuery, lastQuery] = columns.visible("query", this.scroll);
    const [firstKey, lastKey] = columns.visible("key", this.scroll);
    const { strength, values } = plane;
    const nActive = scene.shown.length;
    const width = 1.5 * scale;
    const draw = (cell: number, query: number, key: number, share: number) => {
      if (!lines.has(cell, query, key)) return;
      if (sign && (values[cell] as number) * sign < 0) return;
      const alpha = opacity(strength[cell] as number, nActive) * share;
      if (alpha < SEEN) return;
      const from = columns.at("query", query, this.scroll) * scale;
      curves.draw(from, columns.at("key", key, this.scroll) * scale, alpha, width, dashed);
    };
    for (let query = firstQuery; query < lastQuery; query++) {
      plane.row(query, (cell, key) => {
        const isWhole = key >= firstKey && key < lastKey;
        if (isWhole || !this.isMoving) draw(cell, query, key, isWhole ? 1 : PASSING);
      });
    }
    if (lastQuery - firstQuery === plane.nQueries || this.isMoving) return;
    for (let key = firstKey; key < lastKey; key++) {
      plane.column(key, (cell, query) => {
        if (query < firstQuery || query >= lastQuery) draw(cell, query, key, PASSING);
      });
    }
  }

  private curves(raster: Raster, scale: number): Curves {
    const { columns } = this.all();
    const direction = columns.isVertical ? "across" : "down";
    // Lines may run to the very edge: those that go on beyond it show that there is more.
    const [from, to] = columns.isLong ? [(columns.from - 8) * scale, undefined] : [0, undefined];
    return new Curves(raster, columns.start * scale, columns.end * scale, direction, from, to);
  }

  private paintSegments(raster: Raster, scale: number): void {
    const { scene, theme, columns } = this.all();
    const { queries, keys } = scene.layer;
    for (const [side, reading] of [
      ["query", queries],
      ["key", keys],
    ] as const) {
      for (let index = 1; index < reading.texts.length; index++) {
        if (reading.segments[index] === reading.segments[index - 1]) continue;
        const along = columns.at(side, index, this.scroll) - columns.pitch / 2;
        if (along < columns.from || along > columns.to) continue;
        const length = columns.label[side] + columns.segment;
        const across = side === "query" ? columns.start - 10 - length : columns.end + 10;
        fillBox(raster, scaled(columns.box(Math.round(along), across, 1, length), scale), theme.line);
      }
    }
  }

  private paintPlate(raster: Raster, scale: number, { side, index }: Token, colour: Rgb, alpha: number): void {
    const { columns } = this.all();
    const along = columns.at(side, index, this.scroll);
    if (along < columns.from - columns.pitch || along > columns.to + columns.pitch) return;
    const breadth = columns.label[side] + 12;
    const length = Math.min(columns.pitch, 26) - 2;
    const across = side === "query" ? columns.start - breadth - 2 : columns.end + 2;
    const isFlatRow = !columns.isVertical && columns.isFlat;
    const long = isFlatRow ? columns.pitch - 2 : length;
    roundBox(raster, scaled(columns.box(along - long / 2, across, long, breadth), scale), 5 * scale, colour, alpha);
  }

  /** Behind the tokens: how relevant each is to the answer that was chosen. */
  private paintRelevance(raster: Raster, scale: number): void {
    const { scene, theme, columns } = this.all();
    for (const side of ["query", "key"] as const) {
      const values = scene.relevance[side];
      if (!scene.answer || !values) continue;
      const [first, last] = columns.visible(side, this.scroll);
      for (let index = first; index < last; index++) {
        const tone = scene.answer.tone(theme, values[index] as number);
        if (tone) this.paintPlate(raster, scale, { side, index }, tone.colour, tone.alpha);
      }
    }
  }

  /** Beside a token opposite: a box as dark as its weight; where there are several heads, one for each. */
  private paintEnd(
    raster: Raster,
    scale: number,
    side: Side,
    index: number,
    which: number,
    colour: Rgb,
    strength: number,
  ): void {
    const { scene, columns, theme } = this.all();
    const along = columns.at(side, index, this.scroll);
    const length = Math.min(columns.pitch, 26) - 3;
    const isOne = scene.shown.length === 1;
    const out = side === "key" ? 1 : -1;
    const edge = side === "key" ? columns.end : columns.start;
    const put = (offset: number, breadth: number, tone: Rgb, alpha: number) => {
      const across = out > 0 ? edge + offset : edge - offset - breadth;
      fillBox(raster, scaled(columns.box(along - length / 2, across, length, breadth), scale), tone, alpha);
    };
    const shade = 0.05 + 0.4 * strength;
    if (isOne) {
      put(1, 5, colour, Math.min(1, 0.2 + 0.8 * strength));
      put(7, columns.label[side] + columns.segment + columns.number + 2, between(colour, theme.background, 0.1), shade);
    } else {
      const offset = columns.label[side] + columns.segment + 10 + which * columns.number;
      put(offset, columns.number - 1, colour, shadeOf(strength));
    }
  }

  private numberLabels(token: Token): Label[] {
    const { scene, theme, columns } = this.all();
    const other = OTHER[token.side];
    const [first, last] = columns.visible(other, this.scroll);
    const isOne = scene.shown.length === 1;
    const out = other === "key" ? 1 : -1;
    const edge = other === "key" ? columns.end : columns.start;
    const labels: Label[] = [];
    if (!this.hasNumbers && !isOne) return labels;
    this.endsOf(token).forEach((end, which) => {
      for (let index = first; index < last; index++) {
        if (!((end.strength[index] as number) >= WORTH)) continue;
        const along = columns.at(other, index, this.scroll);
        const place = columns.label[other] + columns.segment + 10 + (which + (isOne ? 0.4 : 0.5)) * columns.number;
        const across = edge + out * place;
        labels.push({
          ...columns.point(along, across),
          text: written(end.values[index] as number),
          align: "centre",
          width: 60,
          size: columns.number >= 30 || !columns.isVertical ? 11 : 10,
          colour: isOne
            ? theme.secondary
            : this.inkOn(
                scene.shown[which] as DrawnHead,
                end.strength[index] as number,
                (end.values[index] as number) < 0,
              ),
          isUpright: !columns.isVertical && !columns.isFlat,
        });
      }
    });
    return labels;
  }

  /** Black or white, whichever reads better on the box of a head. */
  private inkOn(drawnHead: DrawnHead, strength: number, isNegative: boolean): Rgb {
    const { scene, theme } = this.all();
    const sign = isNegative ? theme.negative : theme.positive;
    const tone = scene.isSigned ? sign : scene.colourOf(drawnHead, theme).colour;
    const [red, green, blue] = between(theme.background, tone, shadeOf(strength));
    return 0.299 * red + 0.587 * green + 0.114 * blue > 128 ? LIGHT.ink : DARK.ink;
  }

  private labelPlace(side: Side, along: number): Pick<Label, "x" | "y" | "align" | "isUpright"> {
    const { columns } = this.all();
    const across = side === "query" ? columns.start - 10 : columns.end + 10;
    if (columns.isVertical) return { ...columns.point(along, across), align: side === "query" ? "right" : "left" };
    if (columns.isFlat) return { ...columns.point(along, across + (side === "query" ? -4 : 4)), align: "centre" };
    return { ...columns.point(along, across), align: side === "query" ? "left" : "right", isUpright: true };
  }

  private heading(side: Side, text: string): Label {
    const { theme, columns } = this.all();
    const across = side === "query" ? columns.start - 10 : columns.end + 10;
    const first = columns.isLong ? columns.from : columns.at(side, 0, 0) - columns.pitch / 2;
    const place = columns.isVertical
      ? columns.point(Math.max(16, first - 16), across)
      : columns.point(14, across + (side === "query" ? -6 : 6));
    const align = columns.isVertical && side === "query" ? "right" : "left";
    return { ...place, text, align, width: 160, size: 11, colour: theme.tertiary };
  }

  /** A and B, beside the first token of each that is in view. */
  private segmentLabels(side: Side): Label[] {
    const { scene, theme, columns } = this.all();
    const reading = side === "query" ? scene.layer.queries : scene.layer.keys;
    if (!columns.segment) return [];
    const [first, last] = columns.visible(side, this.scroll);
    const labels: Label[] = [];
    for (let index = first; index < last; index++) {
      const isNew = index === first || reading.segments[index] !== reading.segments[index - 1];
      if (!isNew) continue;
      const along = columns.at(side, index, this.scroll);
      const offset = 10 + columns.label[side] + columns.segment - 8;
      const across = side === "query" ? columns.start - offset : columns.end + offset;
      labels.push({
        ...columns.point(along, across),
        text: reading.segments[index] as string,
        align: "centre",
        width: 20,
        size: 11,
        colour: theme.tertiary,
        isBold: true,
      });
    }
    return labels;
  }

  /** The whole input at the side: what each token gets, where the window is, what was found. */
  private paintMap(raster: Raster, scale: number, ends: Ends[] | null = null): void {
    const { scene, theme, columns } = this.all();
    const { map } = columns;
    for (const [index, token] of this.matches.entries()) {
      this.paintPlate(
        raster,
        scale,
        token,
        index === this.match ? theme.accent : theme.tint,
        index === this.match ? 0.35 : 1,
      );
    }
    if (!map) return;
    const long = columns.isVertical ? map.height : map.width;
    const wide = columns.isVertical ? map.width : map.height;
    const side = columns.isVertical ? map.x : map.y;
    const n = Math.max(this.count("query"), this.count("key"));
    fillBox(raster, scaled(map, scale), theme.panel);
    const bars = ends ? null : [{ values: scene.received, colour: theme.tertiary }];
    const sets =
      bars ??
      (ends as Ends[]).map((end, which) => ({
        values: end.strength,
        colour: scene.colourOf(scene.shown[which] as DrawnHead, theme).colour,
      }));
    const pixels = Math.round(long * scale);
    for (const { values, colour } of sets) {
      let most = 1e-9;
      for (const value of values) most = Math.max(most, value);
      for (let pixel = 0; pixel < pixels; pixel++) {
        const from = Math.floor((pixel * values.length) / pixels);
        const to = Math.max(from + 1, Math.floor(((pixel + 1) * values.length) / pixels));
        let value = 0;
        for (let i = from; i < to; i++) value = Math.max(value, values[i] as number);
        const breadth = (wide - 6) * Math.sqrt(value / most);
        const bar = columns.box(columns.from + pixel / scale, side + 3, 1 / scale, breadth);
        fillBox(raster, scaled(bar, scale), colour, ends ? 0.8 : 0.55);
      }
    }
    for (const token of this.matches) {
      const along = columns.from + ((token.index + 0.5) / n) * long;
      fillBox(raster, scaled(columns.box(along - 1, side + wide - 8, 2, 8), scale), theme.accent);
    }
    const { from, length } = this.window(long);
    const view = scaled(columns.box(columns.from + from, side, length, wide), scale);
    roundBox(raster, view, 3 * scale, theme.accent, 0.14);
  }

  /** The part in view, along the map. */
  private window(long: number): { from: number; length: number } {
    const columns = this.columns as Columns;
    const total = columns.furthest + columns.room;
    return { from: (this.scroll / total) * long, length: Math.max(6, (columns.room / total) * long) };
  }

  /** The scroll that puts the middle of the window at a point of the map. */
  scrollTo(x: number, y: number): void {
    const columns = this.columns as Columns;
    const along = columns.isVertical ? y : x;
    const share = (along - columns.from) / columns.room;
    const total = columns.furthest + columns.room;
    this.scroll = Math.max(0, Math.min(columns.furthest, share * total - columns.room / 2));
  }

  private count(side: Side): number {
    const { queries, keys } = (this.scene as Scene).layer;
    return (side === "query" ? queries : keys).texts.length;
  }

  private all(): { scene: Scene; theme: Theme; columns: Columns } {
    return { scene: this.scene as Scene, theme: this.theme as Theme, columns: this.columns as Columns };
  }
}

/** How opaque the box of a head is beside a token. */
function shadeOf(strength: number): number {
  return 0.06 + 0.74 * strength;
}

/** Numbers in a column have the same digits. */
function written(value: number): string {
  return Math.abs(value) < 10 ? value.toFixed(2).replace("-", "−") : number(value);
}

/** How opaque a line is: its strength, less of it when many heads share the picture. */
function opacity(strength: number, nActive: number): number {
  return Math.min(1, strength / nActive ** 0.5);
}

export function same(a: Token | null, b: Token | null): boolean {
  return a === b || (!!a && !!b && a.side === b.side && a.index === b.index);
}

function scaled({ x, y, width, height }: Box, scale: number): Box {
  return { x: x * scale, y: y * scale, width: width * scale, height: height * scale };
}
