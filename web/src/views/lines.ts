/** The head view as two columns of tokens with lines between them. */

import { SEEN } from "../data/lines";
import type { Exact } from "../data/rows";
import { fillBox, roundBox, scaled } from "../marks/boxes";
import { Curves } from "../marks/lines";
import type { Raster } from "../marks/raster";
import type { Side } from "../selection";
import { between, type Rgb, type Theme } from "../theme";
import { Arcs } from "./arcs";
import { Columns, same, type Token } from "./columns";
import { type Ends, endOf, strongestEnds, WORTH } from "./ends";
import { BESIDE, ICON, type Icons } from "./icons";
import type { Label, Ruler } from "./labels";
import { numberLabels, shadeOf, tokenLabels } from "./linesLabels";
import type { DrawnHead, Scene } from "./scene";

const OTHER = { query: "key", key: "query" } as const;
const PASSING = 0.25; // how much of a line is seen whose other end is out of view: they gather at the edges

/** Exact numbers of one token. */
export interface Exactly {
  token: Token;
  of: Exact;
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
      nHeads: scene.drawnHeads.length,
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
    for (const drawnHead of scene.drawnHeads) {
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
    this.paintEdited(curves, scale);
    this.paintMap(raster, scale);
    this.paintIcons(raster, scale);
  }

  /** Dashed, over all others: the lines of weights that an edit set. */
  private paintEdited(curves: Curves, scale: number): void {
    const { scene, theme, columns } = this.all();
    for (const { query, key } of scene.drawnHeads.flatMap(({ edited }) => edited)) {
      if (key < 0) continue;
      const [from, to] = [columns.at("query", query, this.scroll), columns.at("key", key, this.scroll)];
      curves.draw(from * scale, to * scale, 1, 2 * scale, true);
    }
    curves.flush(theme.warn);
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
      const { colour, dashed } = scene.colourOf(scene.drawnHeads[which] as DrawnHead, theme);
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
    const { focus, scroll } = this;
    const written = { scene, theme, columns, scroll, focus, icons: this.icons, iconSize: this.iconSize };
    const labels = tokenLabels(written);
    // Numbers of a key stand where the names of relations do.
    if (focus?.side !== "key") labels.push(...(this.arcs?.labels(columns, scroll, theme) ?? []));
    const hasRoom = this.hasNumbers || scene.drawnHeads.length === 1;
    if (focus && hasRoom) labels.push(...numberLabels(written, focus, this.endsOf(focus)));
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
    if (scene.drawnHeads.length === 1 || this.hasNumbers) return [];
    const [from, to] = columns.visible(token.side, this.scroll);
    if (token.index < from || token.index >= to) return [];
    return strongestEnds(scene, token, this.endsOf(token));
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
    const of = scene.drawnHeads.map((drawnHead) => endOf(scene, drawnHead, token, exact?.of ?? null));
    this.ends = { token, exact, of };
    return of;
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
    const nActive = scene.drawnHeads.length;
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
    const isOne = scene.drawnHeads.length === 1;
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
        colour: scene.colourOf(scene.drawnHeads[which] as DrawnHead, theme).colour,
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

/** How opaque a line is: its strength, less of it when many heads share the picture. */
function opacity(strength: number, nActive: number): number {
  return Math.min(1, strength / nActive ** 0.5);
}
