/** The head view as a matrix: queries down, keys across, a panel for each head. */

import type { WindowProps } from "../contract";
import { number } from "../data/measures";
import { coded, pooled, type Region } from "../data/pooled";
import { fillBox, frame, grown, hatch, scaled } from "../marks/boxes";
import { type Box, drawCells, drawSigned, ramp, signedRamp } from "../marks/cells";
import type { Raster } from "../marks/raster";
import type { Side } from "../selection";
import type { Source } from "../source";
import type { Theme } from "../theme";
import { floats, type Grid } from "../wire";
import { Arcs } from "./arcs";
import type { Token } from "./columns";
import { ICON, type Icons } from "./icons";
import type { Label, Ruler } from "./labels";
import { labelsOf } from "./matrixLabels";
import { cellAt, fitted, layPanels, moved, scaledAround } from "./matrixLayout";
import type { Painting } from "./painting";
import type { DrawnHead, Scene } from "./scene";

export interface Spot {
  panel: number;
  query: number;
  key: number;
}

interface Panel {
  box: Box;
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
    const count = scene.drawnHeads.length;
    const { rows, columns } = this.seen();
    const nRows = rows[1] - rows[0];
    const nColumns = columns[1] - columns[0];
    const names = {
      left: Math.min(180, this.ruler.usual(scene.layer.queries.texts.slice(...rows), 13) + 14 + this.iconRoom),
      top: Math.min(120, this.ruler.usual(scene.layer.keys.texts.slice(...columns), 13) + 14 + this.iconRoom),
    };
    const layout = layPanels({ width, height, count, nRows, nColumns, names });
    this.isReadable = layout.isReadable;
    this.room = layout.room;
    this.cell = { width: layout.side, height: layout.side };
    this.panels = layout.boxes.map((box) => ({ box }));
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
      const drawnHead = scene.drawnHeads[index] as DrawnHead;
      const area = scaled(box, scale);
      const picture =
        this.windows.get(this.windowName(drawnHead)) ??
        pooled(drawnHead.plane, this.seen(), area.height, area.width, isSigned, isRoot);
      frame(raster, grown(area, 1), theme.line, 1);
      const draw = isSigned ? drawSigned : drawCells;
      draw(raster, picture.bytes, picture.rows, picture.columns, area, colours);
      this.paintMask(raster, box, scale);
      this.paintSegments(raster, area);
      this.paintRelevance(raster, box, scale);
      this.paintIcons(raster, scale, box);
      this.paintArcs(raster, box, scale);
      this.paintEdited(raster, drawnHead, box, scale);
    });
  }

  /** Frames around the weights that an edit set, or around the whole row. */
  private paintEdited(raster: Raster, { edited }: DrawnHead, box: Box, scale: number): void {
    const { theme } = this.all();
    const { rows, columns } = this.seen();
    for (const { query, key } of edited) {
      if (query < rows[0] || query >= rows[1] || (key >= 0 && (key < columns[0] || key >= columns[1]))) continue;
      const cell = this.cellBox(box, query, Math.max(key, columns[0]));
      const area = key < 0 ? { ...cell, x: box.x, width: box.width } : cell;
      frame(raster, grown(scaled(area, scale), scale), theme.warn, Math.max(1, Math.round(1.5 * scale)));
    }
  }

  /** Scores that the mask takes away are not zero: they are hatched. */
  private paintMask(raster: Raster, box: Box, scale: number): void {
    const { scene, theme } = this.all();
    if (scene.selection.what !== "scores" || scene.isDifference) return;
    const { rows, columns } = this.seen();
    for (let query = rows[0]; query < rows[1]; query++) {
      let first = columns[0];
      while (first < columns[1] && !scene.isMasked(query, first)) first++;
      if (first === columns[1]) continue;
      const { x, y, height } = this.cellBox(box, query, first);
      hatch(
        raster,
        scaled({ x, y, width: box.x + box.width - x, height }, scale),
        theme.tertiary,
        Math.round(6 * scale),
      );
    }
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
        if (spot.panel === index) {
          frame(raster, grown(scaled(cell, scale), 2), theme.background, Math.max(1, Math.round(scale)));
          frame(raster, grown(scaled(cell, scale), 1), theme.selection, Math.max(1, Math.round(scale)));
        }
      }
      if (this.chosen) {
        const from = this.cellBox(box, this.chosen.rows[0], this.chosen.columns[0]);
        const to = this.cellBox(box, this.chosen.rows[1] - 1, this.chosen.columns[1] - 1);
        const area = { x: from.x, y: from.y, width: to.x + to.width - from.x, height: to.y + to.height - from.y };
        fillBox(raster, scaled(area, scale), theme.selection, 0.12);
        frame(raster, scaled(area, scale), theme.selection, Math.max(1, Math.round(scale)));
      }
    });
  }

  labels(): Label[] {
    const { scene, theme } = this.all();
    const { cell, isReadable, room, matches, hovered } = this;
    const boxes = this.panels.map(({ box }) => box);
    const iconRoom = (side: Side, index: number) => (this.icons?.has(side, index) ? this.iconSize + 2 : 0);
    return labelsOf({ scene, theme, boxes, seen: this.seen(), cell, isReadable, room, matches, hovered, iconRoom });
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
    for (const drawnHead of scene.drawnHeads) {
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
    for (const drawnHead of scene.drawnHeads) {
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
    const seen = this.seen();
    for (const [panel, { box }] of this.panels.entries()) {
      const spot = cellAt(box, this.cell, seen, x, y);
      if (spot) return { panel, ...spot };
    }
    return null;
  }

  /** Zoom to a rectangle; one that is nearly everything is everything. */
  zoom(region: Region | null): void {
    this.region = region && fitted(region, this.whole());
  }

  /** Closer or further, with the cell under the pointer staying where it is. */
  zoomAt(spot: Spot, factor: number): void {
    this.zoom(scaledAround(this.seen(), spot, factor));
  }

  pan(x: number, y: number): void {
    if (this.region) this.zoom(moved(this.region, Math.round(y / this.cell.height), Math.round(x / this.cell.width)));
  }

  /** Whether the picture can be had sharper than from the strongest keys alone. */
  needsWindows(source: Source): boolean {
    const { scene } = this.all();
    if (!source.isLive || scene.layer.isWhole || scene.layer.site.no_weights || scene.selection.what === "scores")
      return false;
    return scene.drawnHeads.some((drawnHead) => drawnHead.head >= 0 && !this.windows.has(this.windowName(drawnHead)));
  }

  /** How far a brush reaches around the cell under the pointer: about three pixels, where cells are smaller. */
  get brush(): number {
    return Math.floor(3 / this.cell.width);
  }

  /** Whether every weight is in the picture. */
  get isComplete(): boolean {
    const { scene } = this.all();
    return scene.layer.isWhole || scene.drawnHeads.every((drawnHead) => this.windows.has(this.windowName(drawnHead)));
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
      scene.drawnHeads.map(async (drawnHead) => {
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
    return this.region ?? this.whole();
  }

  private whole(): Region {
    const scene = this.scene as Scene;
    return { rows: [0, this.rowsIn(scene)], columns: [0, this.columnsIn(scene)] };
  }

  private rowsIn(scene: Scene): number {
    return scene.layer.queries.texts.length;
  }

  private columnsIn(scene: Scene): number {
    return scene.layer.keys.texts.length;
  }

  /** Where a cell is. */
  boxOf({ panel, query, key }: Spot): Box {
    return this.cellBox((this.panels[panel] as Panel).box, query, key);
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
      frame(raster, grown(scaled(area, scale), 1), theme.selection, Math.max(1, Math.round(scale)), 3 * alpha);
    else fillBox(raster, scaled(area, scale), theme.selection, alpha);
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

  private all(): { scene: Scene; theme: Theme } {
    return { scene: this.scene as Scene, theme: this.theme as Theme };
  }
}
