/** The head view as a matrix: queries down, keys across, a panel for each head. */

import type { WindowProps } from "../contract";
import { number } from "../data/measures";
import { coded, pooled, type Region } from "../data/pooled";
import { fillBox, frame } from "../marks/boxes";
import { type Box, drawCells, ramp, signedRamp } from "../marks/cells";
import type { Raster } from "../marks/raster";
import type { Source } from "../source";
import type { Theme } from "../theme";
import { floats, type Grid } from "../wire";
import { Arcs } from "./arcs";
import type { Token } from "./columns";
import { ICON, type Icons } from "./icons";
import type { Label, Ruler } from "./labels";
import type { Painting } from "./painting";
import type { DrawnHead, Scene } from "./scene";

const MARGIN = 16;
const GAP = 18;
const TITLE = 22;
const READABLE = 13; // px: cells from here on have their tokens beside them
const MOST = 44;
const TICKS = 26; // px, for numbers where tokens have no room

export interface Spot {
  panel: number;
  query: number;
  key: number;
}

interface Panel {
  box: Box;
  hasRowNames: boolean;
}

interface Picture {
  rows: number;
  columns: number;
  bytes: Uint8Array;
}

export class MatrixForm {
  hovered: Spot | null = null;
  /** What is seen of the whole, null for all of it. */
  region: Region | null = null;
  /** The rectangle being drawn with the pointer, in cells. */
  chosen: Region | null = null;
  matches: Token[] = [];
  /** Of an image: its patches, beside their names. */
  icons: Icons | null = null;
  /** Cells painted by hand, drawn over the picture. */
  painting: Painting | null = null;
  private scene: Scene | null = null;
  private theme: Theme | null = null;
  private panels: Panel[] = [];
  private cell = { width: 1, height: 1 };
  private isReadable = false;
  private room = { left: 0, top: 0 };
  private windows = new Map<string, Picture & { values: Float32Array; isExact: boolean }>();

  constructor(private readonly ruler: Ruler) {}

  lay(scene: Scene, theme: Theme, width: number, height: number): void {
    if (scene !== this.scene) this.windows.clear();
    if (
      this.scene &&
      (scene.layer.queries.texts.length !== this.rowsIn(this.scene) ||
        scene.layer.keys.texts.length !== this.columnsIn(this.scene))
    ) {
      this.region = null;
    }
    this.scene = scene;
    this.theme = theme;
    const count = scene.shown.length;
    const { rows, columns } = this.seen();
    const nRows = rows[1] - rows[0];
    const nColumns = columns[1] - columns[0];
    const title = count > 1 ? TITLE : 0;
    const names = {
      left: Math.min(180, this.ruler.usual(scene.layer.queries.texts.slice(...rows), 13) + 14 + this.iconRoom),
      top: Math.min(120, this.ruler.usual(scene.layer.keys.texts.slice(...columns), 13) + 14 + this.iconRoom),
    };
    let best = { abreast: 1, side: 0, isReadable: false };
    for (const isReadable of [true, false]) {
      const room = isReadable ? names : { left: TICKS + 6, top: TICKS };
      for (let abreast = 1; abreast <= count; abreast++) {
        const down = Math.ceil(count / abreast);
        const wide = (width - 2 * MARGIN - (abreast - 1) * GAP) / abreast - room.left;
        const tall = (height - 2 * MARGIN - (down - 1) * GAP) / down - room.top - title;
        const side = Math.min(MOST, wide / nColumns, tall / nRows);
        if (isReadable && side < READABLE) continue;
        if (side > best.side + (best.isReadable ? 1e9 : 0)) best = { abreast, side, isReadable };
      }
      if (best.side) break;
    }
    this.isReadable = best.isReadable;
    this.room = best.isReadable ? names : { left: TICKS + 6, top: TICKS };
    // A long and thin rectangle fills its panel all the same: dots need not be square when they are no cells.
    const side = best.isReadable ? Math.floor(best.side) : Math.max(best.side, 0.01);
    this.cell = { width: side, height: side };
    const panel = { width: nColumns * side, height: nRows * side };
    const pitch = { x: panel.width + this.room.left + GAP, y: panel.height + this.room.top + title + GAP };
    const lines = Math.ceil(count / best.abreast);
    const left =
      Math.max(MARGIN, (width - Math.min(count, best.abreast) * pitch.x + GAP - this.room.left * 0.5) / 2) +
      this.room.left;
    const top = Math.max(MARGIN, (height - lines * pitch.y + GAP) / 2.6) + this.room.top + title;
    this.panels = scene.shown.map((_, index) => ({
      box: {
        x: Math.round(left + (index % best.abreast) * pitch.x),
        y: Math.round(top + Math.floor(index / best.abreast) * pitch.y),
        ...panel,
      },
      hasRowNames: true,
    }));
  }

  get isZoomed(): boolean {
    return this.region !== null;
  }

  paint(raster: Raster, scale: number): void {
    const { scene, theme } = this.all();
    raster.fill(theme.background);
    const isSigned = scene.isDifference || scene.selection.what === "scores";
    // Most differences are small: on the root scale they can be seen beside the large ones.
    const isRoot = scene.isDifference || !isSigned;
    const colours = isSigned ? signedRamp(theme) : ramp(theme);
    this.panels.forEach(({ box }, index) => {
      const drawnHead = scene.shown[index] as DrawnHead;
      const area = scaled(box, scale);
      const picture =
        this.windows.get(this.windowName(drawnHead)) ??
        pooled(drawnHead.plane, this.seen(), area.height, area.width, isSigned, isRoot);
      frame(raster, grown(area, 1), theme.line, 1);
      if (isSigned) drawSigned(raster, picture, area, colours);
      else drawCells(raster, picture.bytes, picture.rows, picture.columns, area, colours);
      this.paintSegments(raster, area);
      this.paintRelevance(raster, box, scale);
      this.paintIcons(raster, scale, box);
      this.paintArcs(raster, box, scale);
    });
  }

  /** The cells of gold dependencies, where they are large enough to be framed. */
  private paintArcs(raster: Raster, box: Box, scale: number): void {
    const { scene, theme } = this.all();
    if (!scene.trees || this.cell.height < 6) return;
    const { rows, columns } = this.seen();
    new Arcs(scene.trees, scene, this.ruler).paintCells(raster, scale, theme, (query, key) => {
      const isSeen = query >= rows[0] && query < rows[1] && key >= columns[0] && key < columns[1];
      return isSeen ? scaled(this.cellBox(box, query, key), scale) : null;
    });
  }

  /** Behind the names of rows and columns: how relevant each token is to the answer that was chosen. Without names, a
   *  strip along the edge. */
  private paintRelevance(raster: Raster, box: Box, scale: number): void {
    const { scene, theme } = this.all();
    const seen = this.seen();
    const { width, height } = this.cell;
    for (const side of ["query", "key"] as const) {
      const values = scene.relevance[side];
      if (!scene.answer || !values) continue;
      const [first, last] = side === "query" ? seen.rows : seen.columns;
      const long = this.isReadable ? (side === "query" ? this.room.left : this.room.top) - 6 : 5;
      for (let at = first; at < last; at++) {
        const tone = scene.answer.tone(theme, values[at] as number);
        if (!tone) continue;
        const area =
          side === "query"
            ? {
                x: box.x - 3 - long,
                y: box.y + (at - first) * height,
                width: long,
                height: Math.max(height, 1 / scale),
              }
            : { x: box.x + (at - first) * width, y: box.y - 3 - long, width: Math.max(width, 1 / scale), height: long };
        fillBox(raster, scaled(area, scale), tone.colour, tone.alpha);
      }
    }
  }

  private get iconRoom(): number {
    return this.icons ? ICON + 2 : 0;
  }

  private get iconSize(): number {
    return Math.min(ICON, this.cell.height - 2);
  }

  /** The patches of rows and columns, beside the matrix. */
  private paintIcons(raster: Raster, scale: number, box: Box): void {
    const { icons, iconSize: size } = this;
    if (!icons || !this.isReadable) return;
    const { rows, columns } = this.seen();
    for (let query = rows[0]; query < rows[1]; query++) {
      const y = box.y + (query - rows[0] + 0.5) * this.cell.height;
      icons.draw(raster, scale, "query", query, { x: box.x - 4 - size / 2, y, size });
    }
    for (let key = columns[0]; key < columns[1]; key++) {
      const x = box.x + (key - columns[0] + 0.5) * this.cell.width;
      icons.draw(raster, scale, "key", key, { x, y: box.y - 4 - size / 2, size });
    }
  }

  paintFocus(raster: Raster, scale: number): void {
    const { theme, scene } = this.all();
    const spot = this.hovered;
    const pinned = scene.selection.token;
    this.panels.forEach(({ box }, index) => {
      this.paintCells(raster, box, scale);
      if (pinned) this.band(raster, box, scale, pinned, 0.12);
      if (spot) {
        this.band(raster, box, scale, { side: "query", index: spot.query }, 0.16);
        this.band(raster, box, scale, { side: "key", index: spot.key }, 0.16);
        const cell = this.cellBox(box, spot.query, spot.key);
        if (spot.panel === index)
          frame(raster, grown(scaled(cell, scale), 1), theme.accent, Math.max(1, Math.round(scale)));
      }
      if (this.chosen) {
        const from = this.cellBox(box, this.chosen.rows[0], this.chosen.columns[0]);
        const to = this.cellBox(box, this.chosen.rows[1] - 1, this.chosen.columns[1] - 1);
        const area = { x: from.x, y: from.y, width: to.x + to.width - from.x, height: to.y + to.height - from.y };
        fillBox(raster, scaled(area, scale), theme.accent, 0.12);
        frame(raster, scaled(area, scale), theme.accent, Math.max(1, Math.round(scale)));
      }
    });
  }

  labels(): Label[] {
    const { scene, theme } = this.all();
    const { queries, keys } = scene.layer;
    const { rows, columns } = this.seen();
    const labels: Label[] = [];
    const matched = { query: new Set<number>(), key: new Set<number>() };
    for (const { side, index } of this.matches) matched[side].add(index);
    this.panels.forEach(({ box }, index) => {
      const drawnHead = scene.shown[index] as DrawnHead;
      if (this.panels.length > 1) {
        const { colour } = scene.colourOf(drawnHead, theme);
        const place = { x: box.x, y: box.y - this.room.top - TITLE / 2 + 2, align: "left" as const };
        labels.push({ ...place, text: "■", width: 20, size: 11, colour });
        labels.push({
          ...place,
          x: box.x + 16,
          text: drawnHead.name,
          width: box.width,
          size: 12,
          colour: theme.secondary,
        });
      }
      if (!this.isReadable) {
        labels.push(...this.ticks(box));
        return;
      }
      const size = Math.min(13, this.cell.height - 1);
      const tone = (reading: typeof queries, side: "query" | "key", at: number) =>
        matched[side].has(at) ? theme.accent : reading.isOff[at] || reading.isSpecial[at] ? theme.tertiary : theme.ink;
      for (let query = rows[0]; query < rows[1]; query++) {
        if (queries.isLater[query]) continue;
        labels.push({
          text: queries.texts[query] as string,
          x: box.x - 8 - (this.icons?.has("query", query) ? this.iconSize + 2 : 0),
          y: box.y + (query - rows[0] + 0.5) * this.cell.height,
          align: "right",
          width: this.room.left - 10,
          size,
          colour: tone(queries, "query", query),
          isBold: this.hovered?.query === query,
          isStruck: queries.isOff[query] ?? false,
          isWritten: queries.isWritten[query] ?? false,
        });
      }
      for (let key = columns[0]; key < columns[1]; key++) {
        if (keys.isLater[key]) continue;
        labels.push({
          text: keys.texts[key] as string,
          x: box.x + (key - columns[0] + 0.5) * this.cell.width,
          y: box.y - 8 - (this.icons?.has("key", key) ? this.iconSize + 2 : 0),
          align: "left",
          width: this.room.top - 10,
          size,
          colour: tone(keys, "key", key),
          isBold: this.hovered?.key === key,
          isStruck: keys.isOff[key] ?? false,
          isWritten: keys.isWritten[key] ?? false,
          isUpright: true,
        });
      }
    });
    return labels;
  }

  /** What is under the pointer, in words. */
  tip(): string[] {
    const { scene } = this.all();
    const { query, key } = this.hovered as Spot;
    const { queries, keys } = scene.layer;
    const lines = [`${queries.texts[query]} → ${keys.texts[key]}`, `query ${query}, key ${key}`];
    for (const token of [
      { side: "query", index: query },
      { side: "key", index: key },
    ] as const) {
      lines.push(...scene.relevanceOf(token).map((text) => `${token.side}: ${text}`));
    }
    for (const drawnHead of scene.shown) {
      const value = scene.isMasked(query, key) ? Number.NEGATIVE_INFINITY : this.valueAt(drawnHead, query, key);
      lines.push(`${drawnHead.name}  ${Number.isNaN(value) ? "not among the strongest" : number(value)}`);
    }
    return lines;
  }

  /** The numbers of the cells in view, row by row; without what is masked, switched off or not known. */
  table(limit: number): { rows: (string | number)[][]; total: number } {
    const { scene } = this.all();
    const { queries, keys } = scene.layer;
    const { rows: tall, columns: wide } = this.seen();
    const rows: (string | number)[][] = [];
    let total = 0;
    for (const drawnHead of scene.shown) {
      const { plane } = drawnHead;
      const window = this.windows.get(this.windowName(drawnHead));
      const exact = window?.isExact ? window : null;
      for (let query = tall[0]; query < tall[1]; query++) {
        if (queries.isOff[query]) continue;
        const add = (key: number, value: number) => {
          if (keys.isOff[key] || scene.isMasked(query, key) || !Number.isFinite(value)) return;
          if (++total > limit) return;
          const written = Number(value.toPrecision(6));
          rows.push([drawnHead.name, query, queries.texts[query] as string, key, keys.texts[key] as string, written]);
        };
        if (exact) {
          const start = (query - tall[0]) * exact.columns - wide[0];
          for (let key = wide[0]; key < wide[1]; key++) add(key, exact.values[start + key] as number);
        } else {
          plane.row(query, (cell, key) => {
            if (key >= wide[0] && key < wide[1]) add(key, plane.values[cell] as number);
          });
        }
      }
    }
    return { rows, total };
  }

  hit(x: number, y: number): Spot | null {
    const { rows, columns } = this.seen();
    for (const [panel, { box }] of this.panels.entries()) {
      const row = Math.floor((y - box.y) / this.cell.height);
      const column = Math.floor((x - box.x) / this.cell.width);
      if (row < 0 || column < 0 || row >= rows[1] - rows[0] || column >= columns[1] - columns[0]) continue;
      return { panel, query: rows[0] + row, key: columns[0] + column };
    }
    return null;
  }

  /** Zoom to a rectangle; one that is nearly everything is everything. */
  zoom(region: Region | null): void {
    const scene = this.scene as Scene;
    if (!region) {
      this.region = null;
      return;
    }
    const within = ([first, last]: [number, number], count: number): [number, number] => {
      const size = Math.max(Math.min(4, count), Math.min(count, Math.round(last - first)));
      const from = Math.max(0, Math.min(count - size, Math.round(first)));
      return [from, from + size];
    };
    const rows = within(region.rows, this.rowsIn(scene));
    const columns = within(region.columns, this.columnsIn(scene));
    const isAll = rows[1] - rows[0] === this.rowsIn(scene) && columns[1] - columns[0] === this.columnsIn(scene);
    this.region = isAll ? null : { rows, columns };
  }

  /** Closer or further, with the cell under the pointer staying where it is. */
  zoomAt(spot: Spot, factor: number): void {
    const { rows, columns } = this.seen();
    const around = ([first, last]: [number, number], at: number): [number, number] => {
      const size = Math.max(4, (last - first) * factor);
      const share = (at + 0.5 - first) / (last - first);
      return [at + 0.5 - share * size, at + 0.5 + (1 - share) * size];
    };
    this.zoom({ rows: around(rows, spot.query), columns: around(columns, spot.key) });
  }

  pan(x: number, y: number): void {
    if (!this.region) return;
    const { rows, columns } = this.region;
    const down = Math.round(y / this.cell.height);
    const across = Math.round(x / this.cell.width);
    this.zoom({ rows: [rows[0] + down, rows[1] + down], columns: [columns[0] + across, columns[1] + across] });
  }

  /** The rectangle between two spots of one panel. */
  span(from: Spot, to: Spot): Region {
    const order = (a: number, b: number): [number, number] => [Math.min(a, b), Math.max(a, b) + 1];
    return { rows: order(from.query, to.query), columns: order(from.key, to.key) };
  }

  /** Whether the picture can be had sharper than from the strongest keys alone. */
  needsWindows(source: Source): boolean {
    const { scene } = this.all();
    if (!source.isLive || scene.layer.isWhole || scene.layer.site.no_weights || scene.selection.what === "scores")
      return false;
    return scene.shown.some((drawnHead) => drawnHead.head >= 0 && !this.windows.has(this.windowName(drawnHead)));
  }

  /** How far a brush reaches around the cell under the pointer: about three pixels, where cells are smaller. */
  get brush(): number {
    return Math.floor(3 / this.cell.width);
  }

  /** Whether every weight is in the picture. */
  get isComplete(): boolean {
    const { scene } = this.all();
    return scene.layer.isWhole || scene.shown.every((drawnHead) => this.windows.has(this.windowName(drawnHead)));
  }

  /** How many weights a side one dot stands for, 1 when none are pooled. */
  pooledBy(scale: number): number {
    return Math.max(1, Math.ceil(1 / (this.cell.width * scale) - 0.01));
  }

  async loadWindows(source: Source, signal: AbortSignal): Promise<void> {
    const { scene } = this.all();
    const { rows, columns } = this.seen();
    const box = (this.panels[0] as Panel).box;
    const size = Math.max(16, Math.min(512, Math.ceil(Math.max(box.width, box.height))));
    await Promise.all(
      scene.shown.map(async (drawnHead) => {
        const name = this.windowName(drawnHead);
        if (drawnHead.head < 0 || this.windows.has(name)) return;
        const key = `window/${drawnHead.name}?rows=${rows.join(":")}&columns=${columns.join(":")}&size=${size}&what=${scene.layer.what}${scene.loaded.how}`;
        const part = await source.part<WindowProps>(key, signal);
        const grid = part.arrays.weights as Grid;
        const values = floats(grid);
        const [tall, wide] = grid.shape as [number, number];
        const isExact = part.props.cell[0] === 1 && part.props.cell[1] === 1;
        const bytes = coded(
          values.map((value) => scene.layer.strengthOf(value) * (scene.isDifference && value < 0 ? -1 : 1)),
          scene.isDifference,
          true,
        );
        this.windows.set(name, { rows: tall, columns: wide, bytes, values, isExact });
      }),
    );
  }

  private valueAt(drawnHead: DrawnHead, query: number, key: number): number {
    const window = this.windows.get(this.windowName(drawnHead));
    const { rows, columns } = this.seen();
    if (window?.isExact) return window.values[(query - rows[0]) * window.columns + key - columns[0]] as number;
    return drawnHead.plane.at(query, key);
  }

  private windowName(drawnHead: DrawnHead): string {
    const { rows, columns } = this.seen();
    return `${drawnHead.name} ${rows.join()} ${columns.join()}`;
  }

  seen(): Region {
    const scene = this.scene as Scene;
    return this.region ?? { rows: [0, this.rowsIn(scene)], columns: [0, this.columnsIn(scene)] };
  }

  private rowsIn(scene: Scene): number {
    return scene.layer.queries.texts.length;
  }

  private columnsIn(scene: Scene): number {
    return scene.layer.keys.texts.length;
  }

  private cellBox(box: Box, query: number, key: number): Box {
    const { rows, columns } = this.seen();
    return {
      x: box.x + (key - columns[0]) * this.cell.width,
      y: box.y + (query - rows[0]) * this.cell.height,
      width: Math.max(1, this.cell.width),
      height: Math.max(1, this.cell.height),
    };
  }

  private band(raster: Raster, box: Box, scale: number, { side, index }: Token, alpha: number): void {
    const { theme } = this.all();
    const { rows, columns } = this.seen();
    const [first, last] = side === "query" ? rows : columns;
    if (index < first || index >= last) return;
    const cell = this.cellBox(box, side === "query" ? index : rows[0], side === "key" ? index : columns[0]);
    const area =
      side === "query"
        ? { x: box.x, y: cell.y, width: box.width, height: cell.height }
        : { x: cell.x, y: box.y, width: cell.width, height: box.height };
    // Where cells are large the band is an outline, so that it does not tint what it points at.
    if (cell.height >= 6)
      frame(raster, grown(scaled(area, scale), 1), theme.accent, Math.max(1, Math.round(scale)), 3 * alpha);
    else fillBox(raster, scaled(area, scale), theme.accent, alpha);
  }

  private paintCells(raster: Raster, box: Box, scale: number): void {
    const { theme } = this.all();
    const { rows, columns } = this.seen();
    this.painting?.each((query, key) => {
      if (query < rows[0] || query >= rows[1] || key < columns[0] || key >= columns[1]) return;
      const cell = scaled(this.cellBox(box, query, key), scale);
      fillBox(raster, cell, theme.accent, 0.45);
      if (this.cell.width >= 6) frame(raster, cell, theme.accent, Math.max(1, Math.round(scale)));
    });
  }

  private paintSegments(raster: Raster, area: Box): void {
    const { scene, theme } = this.all();
    const { rows, columns } = this.seen();
    const { queries, keys } = scene.layer;
    for (let query = rows[0] + 1; query < rows[1]; query++) {
      if (queries.segments[query] === queries.segments[query - 1]) continue;
      const y = area.y + ((query - rows[0]) * area.height) / (rows[1] - rows[0]);
      fillBox(raster, { x: area.x, y: Math.round(y), width: area.width, height: 1 }, theme.tertiary, 0.6);
    }
    for (let key = columns[0] + 1; key < columns[1]; key++) {
      if (keys.segments[key] === keys.segments[key - 1]) continue;
      const x = area.x + ((key - columns[0]) * area.width) / (columns[1] - columns[0]);
      fillBox(raster, { x: Math.round(x), y: area.y, width: 1, height: area.height }, theme.tertiary, 0.6);
    }
  }

  /** Positions, where tokens have no room. */
  private ticks(box: Box): Label[] {
    const { theme } = this.all();
    const { rows, columns } = this.seen();
    const labels: Label[] = [];
    const words = { width: 60, size: 10, colour: theme.tertiary } as const;
    for (const at of steps(rows, box.height, 40)) {
      const y = box.y + (at - rows[0] + 0.5) * this.cell.height;
      labels.push({ ...words, text: String(at), x: box.x - 6, y, align: "right" });
    }
    for (const at of steps(columns, box.width, 52)) {
      const x = box.x + (at - columns[0] + 0.5) * this.cell.width;
      labels.push({ ...words, text: String(at), x, y: box.y - 10, align: "centre" });
    }
    return labels;
  }

  private all(): { scene: Scene; theme: Theme } {
    return { scene: this.scene as Scene, theme: this.theme as Theme };
  }
}

/** Round positions, as many as have room. */
function steps([first, last]: [number, number], pixels: number, apart: number): number[] {
  const least = ((last - first) * apart) / Math.max(1, pixels);
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= least) ?? 10 * power;
  const positions: number[] = [];
  for (let at = Math.ceil(first / step) * step; at < last; at += step) positions.push(at);
  return positions;
}

/** Signed bytes are pooled already, so that the stronger sign wins; drawing takes the nearest. */
function drawSigned(raster: Raster, { bytes, rows, columns }: Picture, area: Box, colours: Uint32Array): void {
  const left = Math.round(area.x);
  const top = Math.round(area.y);
  const width = Math.round(area.x + area.width) - left;
  const height = Math.round(area.y + area.height) - top;
  for (let y = Math.max(0, -top); y < height && top + y < raster.height; y++) {
    const row = Math.min(rows - 1, Math.floor(((y + 0.5) * rows) / height)) * columns;
    for (let x = Math.max(0, -left); x < width && left + x < raster.width; x++) {
      const column = Math.min(columns - 1, Math.floor(((x + 0.5) * columns) / width));
      raster.words[(top + y) * raster.width + left + x] = colours[bytes[row + column] as number] as number;
    }
  }
}

function scaled({ x, y, width, height }: Box, scale: number): Box {
  return { x: x * scale, y: y * scale, width: width * scale, height: height * scale };
}

function grown({ x, y, width, height }: Box, rim: number): Box {
  return { x: x - rim, y: y - rim, width: width + 2 * rim, height: height + 2 * rim };
}
