/** The head view over the picture: what a patch looks at, or who looks at it, as colour on the patches. */

import { number } from "../data/measures";
import { type Picture, patchesOf, strongestPatches } from "../data/media";
import { hasBoxes, isSeparator, type Patches, patchesIn, type Region, regionOf } from "../data/patches";
import type { Plane } from "../data/plane";
import { stackOf } from "../data/trace";
import { contains, fillBox, frame, grown, roundBox, scaled } from "../marks/boxes";
import type { Box } from "../marks/cells";
import { faded, place, scaledTo } from "../marks/pictures";
import type { Raster } from "../marks/raster";
import { drawArrow } from "../marks/segments";
import { between, type Rgb, type Theme, themeOf } from "../theme";
import type { Token } from "./columns";
import type { Label, Ruler } from "./labels";
import { type Legend, overlayLegend, signedLegend } from "./legend";
import type { Form, Panel, Sight, Spot } from "./media";
import { CHIP, inWindow, layChips, layPictures, placesOf, snapped, TITLE } from "./pictureLayout";
import { PatchRelevance } from "./pictureRelevance";

const FADED = 0.38;
/** How weights become colour: less than in proportion, so that weak ones are seen too, and never hiding the picture. */
const ROOT = 0.6;
const COVER = 0.85;
const GRID_FROM = 7; // px: patches from here on have lines between them
const IN_TIP = 12; // heads at most
const CHIP_SHARE = 0.34; // of the height, for words over the picture
const OTHER = { query: "key", key: "query" } as const;

/** A token that is no patch: a special one, or a word that looks at the picture. */
interface Chip {
  side: "query" | "key";
  index: number;
  text: string;
  box: Box;
}

export class PictureForm implements Form {
  private sight: Sight | null = null;
  private theme: Theme | null = null;
  private boxes: Box[] = [];
  /** A picture before those of the heads, while an answer is explained. */
  private answer: { relevance: PatchRelevance; box: Box } | null = null;
  private chips: Chip[] = [];
  /** How far the chips are scrolled, where there are more than there is room for; and how far they can be. */
  private scroll = { top: 0, most: 0, bottom: 0, focus: -1 };
  /** Whether there is room for numbers on the chips. */
  private hasRoom = false;
  private places: Patches | null = null;
  /** A part of the picture that the user marked. */
  region: Region | null = null;
  private patches: Record<"query" | "key", Int32Array> = { query: new Int32Array(), key: new Int32Array() };
  /** The token of each patch. */
  private tokens: Record<"query" | "key", Int32Array> = { query: new Int32Array(), key: new Int32Array() };
  private base: { name: string; plain: Uint32Array; pale: Uint32Array; width: number } | null = null;
  private leads = new WeakMap<Plane, ReturnType<typeof strongestPatches>>();

  lay(sight: Sight, ruler: Ruler, width: number, height: number, element: HTMLElement): void {
    if (sight.scene !== this.sight?.scene) this.leads = new WeakMap();
    this.sight = sight;
    this.theme = themeOf(element);
    const { layer } = sight.scene;
    const { trace } = sight.host;
    const { site } = layer;
    this.patches = {
      query: patchesOf(layer.queries, stackOf(trace, site.stack), site),
      key: patchesOf(layer.keys, stackOf(trace, site.key_stack), site),
    };
    this.places = patchesIn(stackOf(trace, site.key_stack), site, sight.picture as Picture);
    const { count } = this.places;
    this.tokens = { query: placesOf(this.patches.query, count), key: placesOf(this.patches.key, count) };
    const top = this.layChips(ruler, width, height);
    this.layPanels(width, height, top);
  }

  paint(raster: Raster, scale: number): void {
    const { sight, theme } = this.all();
    raster.fill(theme.background);
    this.paintChips(raster, scale);
    const { pale, plain, width } = this.scaledPicture(scale);
    if (this.answer) this.paintAnswer(raster, scale, this.answer, pale, width);
    sight.panels.forEach((panel, index) => {
      const box = this.boxes[index] as Box;
      const at = { x: Math.round(box.x * scale), y: Math.round(box.y * scale) };
      this.placePicture(raster, pale, width, at, scaled(box, scale));
      // Arrows alone say enough: under them the picture should be seen.
      if (sight.focus || !sight.selection.arrows) this.paintWeights(raster, scale, panel, box);
      this.paintGrid(raster, scale, box);
      if (sight.selection.arrows) this.paintArrows(raster, scale, panel, box);
      this.paintFocus(raster, scale, box, plain, width);
      this.paintRegion(raster, scale, box);
      const isChosen = sight.panels.length > 1 && panel.head === sight.selection.head;
      // Copies of a picture beside each other have a frame each.
      if (!isChosen && (sight.picture as Picture).areas.length > 1) return;
      frame(
        raster,
        grown(scaled(box, scale), 1),
        isChosen ? theme.selection : theme.line,
        Math.max(1, Math.round(scale)),
      );
    });
  }

  labels(): Label[] {
    const { sight, theme } = this.all();
    const labels: Label[] = [];
    const { focus } = sight;
    if (this.answer) {
      const { relevance, box } = this.answer;
      const y = box.y - TITLE / 2;
      const isNarrow = box.width < 300;
      labels.push({
        text: relevance.title,
        x: box.x,
        y,
        align: "left",
        width: box.width * (isNarrow ? 1 : 0.5),
        size: 12,
        colour: theme.ink,
      });
      if (!isNarrow) {
        labels.push({
          text: relevance.sum,
          x: box.x + box.width,
          y,
          align: "right",
          width: box.width * 0.5,
          size: 11,
          colour: theme.tertiary,
        });
      }
    }
    const isOne = sight.panels.length === 1;
    const values = this.hasRoom && focus ? sight.values(sight.panels[0] as Panel, focus) : null;
    for (const chip of this.chips) {
      const isFocus = focus !== null && focus.side === chip.side && focus.index === chip.index;
      const other = focus && this.chipIn(chip, OTHER[focus.side]);
      const value = values && other !== null && other >= 0 ? (values[other] as number) : Number.NaN;
      const middle = chip.box.y + CHIP / 2;
      labels.push({
        text: chip.text, x: chip.box.x + 8, y: middle, align: "left", width: chip.box.width - 10, size: 12,
        colour: theme.ink, isBold: isFocus,
      }); // biome-ignore format: one label
      if (!Number.isNaN(value)) {
        const x = chip.box.x + chip.box.width - 8;
        labels.push({
          text: number(value),
          x,
          y: middle,
          align: "right",
          width: 48,
          size: 11,
          colour: theme.secondary,
        });
      }
    }
    sight.panels.forEach((panel, index) => {
      const box = this.boxes[index] as Box;
      const { strongest, special } = this.shares(panel);
      const isChosen = panel.head === sight.selection.head;
      const y = box.y - TITLE / 2;
      labels.push({
        text: panel.name, x: box.x, y, align: "left", width: box.width * 0.6, size: 12, colour: theme.ink, isBold: isChosen && !isOne,
      }); // biome-ignore format: one label
      const title =
        box.width < 150 ? number(strongest) : [`strongest ${number(strongest)}`, special].filter(Boolean).join(" · ");
      if (strongest > 0) {
        const width = box.width * (box.width < 150 ? 0.4 : 0.8);
        labels.push({ text: title, x: box.x + box.width, y, align: "right", width, size: 11, colour: theme.tertiary });
      }
    });
    return labels;
  }

  hit(x: number, y: number): Spot {
    const { sight } = this.all();
    for (const chip of this.chips) {
      if (contains(chip.box, x, y)) return { token: { side: chip.side, index: chip.index } };
    }
    if (this.answer && contains(this.answer.box, x, y)) return this.patchAt(this.answer.box, x, y);
    for (const [index, box] of this.boxes.entries()) {
      const panel = sight.panels[index] as Panel;
      if (panel.head >= 0 && contains({ x: box.x, y: box.y - TITLE, width: box.width * 0.4, height: TITLE }, x, y)) {
        return { head: panel.head };
      }
      if (contains(box, x, y)) return this.patchAt(box, x, y);
    }
    return null;
  }

  /** Marks what lies between two points of a picture whose image tokens stand in a text; false where none is. */
  mark(from: { x: number; y: number }, to: { x: number; y: number }): boolean {
    const { sight } = this.all();
    const { site } = sight.scene.layer;
    const box = this.boxes.find((candidate) => contains(candidate, from.x, from.y));
    const isPlaced = hasBoxes(stackOf(sight.host.trace, site.key_stack), site);
    this.region = box && isPlaced ? regionOf((sight.picture as Picture).areas, box, from, to) : null;
    return this.region !== null;
  }

  tip(token: Token, { x, y }: { x: number; y: number }): string[] {
    if (!this.answer) return this.weightsTold(token);
    const { relevance, box } = this.answer;
    if (contains(box, x, y)) return relevance.tip(x, y, box);
    const [first, ...lines] = this.weightsTold(token);
    return [first as string, ...this.all().sight.scene.relevanceOf(token), ...lines];
  }

  private weightsTold(token: Token): string[] {
    const { sight } = this.all();
    const { focus, panels } = sight;
    const names = sight.scene.layer;
    const text = ({ side, index }: Token) => (side === "query" ? names.queries : names.keys).texts[index] as string;
    if (focus && (focus.side !== token.side || focus.index !== token.index)) {
      // The pair of the pinned token and the one under the pointer, which stands for its twin on the other side.
      const other = this.twin(token, OTHER[focus.side]);
      if (other < 0) return [text(token)];
      const arrow = focus.side === "query" ? `${text(focus)} → ${text(token)}` : `${text(token)} → ${text(focus)}`;
      const lines = panels.map((panel) => `${panel.name}  ${number(sight.values(panel, focus)[other] as number)}`);
      return [arrow, ...lines.slice(0, IN_TIP)];
    }
    const opposite_ = token.side === "query" ? names.keys : names.queries;
    const lines = panels.slice(0, IN_TIP).map((panel) => {
      const values = sight.values(panel, token);
      let best = -1;
      values.forEach((weight, index) => {
        if (!Number.isNaN(weight) && (best < 0 || weight > (values[best] as number))) best = index;
      });
      const sign = token.side === "query" ? "→" : "←";
      return best < 0
        ? panel.name
        : `${panel.name}  ${sign} ${opposite_.texts[best]}  ${number(values[best] as number)}`;
    });
    return [`${token.side === "query" ? "from" : "to"} ${text(token)}`, ...lines];
  }

  told(): { line: string; notes: string[] } {
    const { sight } = this.all();
    const { focus, scene, selection, picture } = sight;
    const reading = focus?.side === "key" ? scene.layer.keys : scene.layer.queries;
    const many = scene.layer.queries.texts.length.toLocaleString("en");
    const line = focus
      ? `${focus.side === "query" ? "from" : "to"} ${reading.texts[focus.index]}`
      : selection.arrows
        ? "from each patch to the patch that it looks at most"
        : `what each patch gets, on average over ${many} queries`;
    const notes = [sight.focus || !selection.arrows ? this.scaleTold() : ""].filter(Boolean);
    if (this.answer) notes.unshift(this.answer.relevance.legend);
    else if (scene.answer && sight.panels.length) notes.unshift("no relevance of single patches here");
    if (selection.arrows && selection.mass < 1)
      notes.push(`the strongest ${Math.round(selection.mass * 100)} % of arrows`);
    if (selection.rollout)
      notes.push("½ attention of all heads + ½ of the patch itself, multiplied through the layers");
    if (selection.rollout && (selection.hide.length || selection.off.length)) {
      notes.push("rollout is of all tokens, those hidden too");
    }
    if (picture?.note) notes.push(picture.note);
    return { line, notes };
  }

  legend(): Legend | null {
    const { sight, theme } = this.all();
    const { selection, panels } = sight;
    if (!panels.length || (selection.arrows && !sight.focus)) return null;
    const quantity = selection.rollout ? "rollout" : selection.what === "scores" ? "score" : "attention";
    const first = this.shares(panels[0] as Panel);
    const ends =
      panels.length === 1 ? [number(first.weakest), number(first.strongest)] : ["weakest", "strongest patch"];
    if (this.isSigned) {
      const legend = signedLegend(theme, `${quantity}${sight.scene.isDifference ? ", A − B" : ""}`, 1, "linear");
      const last = ends[1] as string;
      return { ...legend, ticks: [`−${last}`, "0", `+${last}`].map((text, at) => ({ at: at / 2, text })) };
    }
    return overlayLegend((share) => between(theme.panel, heat(theme, share), COVER * share), quantity, ends, ROOT);
  }

  boxAt({ x, y }: { x: number; y: number }): Box | null {
    for (const box of this.answer ? [this.answer.box, ...this.boxes] : this.boxes) {
      const patch = contains(box, x, y) ? this.all().places.at(box, x, y) : -1;
      if (patch >= 0) return this.patchBox(box, patch);
    }
    return this.chips.find((chip) => contains(chip.box, x, y))?.box ?? null;
  }

  private get isSigned(): boolean {
    const { selection, scene } = this.all().sight;
    return selection.what === "scores" || (scene.isDifference && !selection.rollout);
  }

  private scaleTold(): string {
    const { sight } = this.all();
    const isOne = sight.panels.length === 1;
    const weakest = sight.panels.map((panel) => this.shares(panel).weakest).filter((weight) => weight > 0);
    const from = weakest.length
      ? isOne
        ? `the weakest (${number(weakest[0] as number)})`
        : "nothing or, where it is not much less, the weakest"
      : "nothing";
    return `colours from ${from} to the strongest patch${isOne ? "" : " of each picture"}`;
  }

  // Where things are

  /** Whether the picture stands within a text, so that what is no patch is mostly words. */
  private get isText(): boolean {
    const { host, scene } = this.all().sight;
    return stackOf(host.trace, scene.layer.site.key_stack).kind === "text";
  }

  /** The side that the pointer chooses from: patches that look, or that are looked at. */
  private get pointed(): "query" | "key" {
    const { sight } = this.all();
    if (!this.patches.query.some((patch) => patch >= 0)) return "key";
    return sight.selection.direction === "from" ? "query" : "key";
  }

  private layChips(ruler: Ruler, width: number, height: number): number {
    const { sight } = this.all();
    const { layer } = sight.scene;
    const chips: Omit<Chip, "box">[] = [];
    const sides = sight.scene.isSelf ? [this.pointed] : (["query", "key"] as const);
    for (const side of sides) {
      const reading = side === "query" ? layer.queries : layer.keys;
      this.patches[side].forEach((patch, index) => {
        const text = reading.texts[index] as string;
        if (patch < 0 && !isSeparator(text)) chips.push({ side, index, text });
      });
    }
    this.hasRoom = chips.length <= 8 && sight.panels.length === 1;
    const wide = chips.map((chip) => Math.min(200, Math.ceil(ruler.width(chip.text, 12)) + (this.hasRoom ? 62 : 20)));
    const { boxes, bottom } = layChips(wide, width);
    const focus = chips.findIndex(({ side, index }) => sight.focus?.side === side && sight.focus.index === index);
    const window = inWindow(boxes, bottom, height * CHIP_SHARE, this.scroll, focus);
    this.scroll = { ...window, focus };
    this.chips = chips
      .map((chip, index) => {
        const box = boxes[index] as Box;
        return { ...chip, box: { ...box, y: box.y - window.top } };
      })
      .filter(({ box }) => box.y >= 0 && box.y + box.height <= window.bottom);
    return window.bottom;
  }

  /** Turns over chips that there is no room for. */
  wheel(_x: number, y: number, delta: number): boolean {
    const { top, most, bottom } = this.scroll;
    if (!most || y > bottom) return false;
    this.scroll.top = Math.max(0, Math.min(most, top + Math.sign(delta) * (CHIP + 4)));
    return true;
  }

  private layPanels(width: number, height: number, top: number): void {
    const { sight } = this.all();
    const picture = sight.picture as { width: number; height: number };
    const shape = picture.height / picture.width;
    const stack = stackOf(sight.host.trace, sight.scene.layer.site.key_stack);
    const relevance = PatchRelevance.of(sight.scene.answer, stack, sight.picture as Picture);
    const count = sight.panels.length + (relevance ? 1 : 0);
    const boxes = layPictures({ width, height, top, count, shape });
    this.answer = relevance && { relevance, box: boxes.shift() as Box };
    this.boxes = boxes;
  }

  private patchAt(box: Box, x: number, y: number): Spot {
    const patch = this.all().places.at(box, x, y);
    const side = this.pointed;
    const token = patch < 0 ? -1 : (this.tokens[side][patch] as number);
    return token >= 0 ? { token: { side, index: token } } : null;
  }

  /** How large a patch is in a panel. */
  private cell(box: Box): { width: number; height: number } {
    return this.all().places.cell(box);
  }

  private patchBox(box: Box, patch: number): Box {
    return this.all().places.box(patch, box);
  }

  /** The same patch (or special token) on the other side; −1 where it is not there. */
  private twin({ side, index }: Token, wanted: "query" | "key"): number {
    if (side === wanted) return index;
    const patch = this.patches[side][index] as number;
    if (patch >= 0) return this.tokens[wanted][patch] as number;
    return this.all().sight.scene.isSelf ? index : -1;
  }

  private chipIn(chip: Chip, wanted: "query" | "key"): number {
    return this.twin({ side: chip.side, index: chip.index }, wanted);
  }

  // Drawing

  private scaledPicture(scale: number): { plain: Uint32Array; pale: Uint32Array; width: number } {
    const { sight, theme } = this.all();
    const { width, height } = this.boxes[0] as Box;
    const size = [Math.round(width * scale), Math.round(height * scale)] as const;
    const name = `${size.join()} ${theme.name}`;
    if (this.base?.name === name) return this.base;
    const plain = scaledTo(sight.picture as NonNullable<Sight["picture"]>, ...size);
    this.base = { name, plain, pale: faded(plain, theme.background, FADED), width: size[0] };
    return this.base;
  }

  /** What is drawn on each token of the side that has patches to colour. */
  private drawn(panel: Panel): { values: Float32Array; side: "query" | "key" } {
    const { sight } = this.all();
    const { focus } = sight;
    if (!focus) return { values: panel.plane.received(), side: "key" };
    return { values: sight.values(panel, focus), side: OTHER[focus.side] };
  }

  /** The strongest patch, and what counts as nothing: zero, unless even the weakest is a good part of the strongest. */
  private shares(panel: Panel): { strongest: number; weakest: number; special: string } {
    const { values, side } = this.drawn(panel);
    let [strongest, least, rest] = [0, Number.POSITIVE_INFINITY, 0];
    this.patches[side].forEach((patch, index) => {
      const value = values[index] as number;
      if (patch >= 0) least = Math.min(least, value || 0);
      if (!(Math.abs(value) > 0) || !Number.isFinite(value)) return;
      if (patch >= 0) strongest = Math.max(strongest, Math.abs(value));
      else rest += value;
    });
    const { scene, selection } = this.all().sight;
    const isWeight = selection.what === "pattern" && !scene.isDifference;
    const weakest = isWeight && least > 0.2 * strongest ? least : 0;
    return {
      strongest,
      weakest,
      special: rest > 0.0005 && side === "key" && isWeight ? `${this.isText ? "text" : "special"} ${number(rest)}` : "",
    };
  }

  private paintWeights(raster: Raster, scale: number, panel: Panel, box: Box): void {
    const { theme } = this.all();
    const { values, side } = this.drawn(panel);
    const { strongest, weakest } = this.shares(panel);
    if (!(strongest > 0)) return;
    const { isSigned } = this;
    const area = scaled(box, scale);
    this.patches[side].forEach((patch, index) => {
      const value = values[index] as number;
      if (patch < 0 || !(Math.abs(value) > 0) || !Number.isFinite(value)) return;
      const share = isSigned
        ? Math.abs(value) / strongest
        : (Math.max(0, value - weakest) / (strongest - weakest || 1)) ** ROOT;
      const colour = isSigned ? (value < 0 ? theme.negative : theme.positive) : heat(theme, share);
      fillBox(raster, snapped(scaled(this.patchBox(box, patch), scale), area), colour, COVER * share);
    });
  }

  /** The picture; between the copies of it that a model reads, nothing. */
  private placePicture(
    raster: Raster,
    words: Uint32Array,
    width: number,
    at: { x: number; y: number },
    box: Box,
  ): void {
    const { areas } = this.all().sight.picture as Picture;
    place(raster, words, width, at.x, at.y);
    if (areas.length < 2) return;
    const { theme } = this.all();
    const height = words.length / width;
    fillBox(raster, { x: at.x, y: at.y, width, height }, theme.background);
    for (const {
      box: [left, top, right, bottom],
    } of areas) {
      const area = snapped(
        {
          x: box.x + left * box.width,
          y: box.y + top * box.height,
          width: (right - left) * box.width,
          height: (bottom - top) * box.height,
        },
        { x: at.x, y: at.y, width, height },
      );
      this.paintPatch(raster, area, box, words, width);
      frame(raster, grown(area, 1), theme.line, 1);
    }
  }

  private paintAnswer(
    raster: Raster,
    scale: number,
    { relevance, box }: { relevance: PatchRelevance; box: Box },
    pale: Uint32Array,
    width: number,
  ): void {
    const { sight, theme } = this.all();
    const area = scaled(box, scale);
    place(raster, pale, width, Math.round(area.x), Math.round(area.y));
    relevance.paint(raster, area, theme);
    this.paintGrid(raster, scale, box);
    const line = Math.max(1, Math.round(scale));
    for (const token of [sight.focus, sight.beside]) {
      const patch = token ? (this.patches[token.side][token.index] as number) : -1;
      if (patch >= 0) frame(raster, grown(scaled(this.patchBox(box, patch), scale), line), theme.ink, line, 0.8);
    }
    frame(raster, grown(area, 1), theme.line, line);
  }

  private paintGrid(raster: Raster, scale: number, box: Box): void {
    const { sight, theme, places } = this.all();
    const cell = this.cell(box);
    if (Math.min(cell.width, cell.height) < GRID_FROM) return;
    const alpha = Math.min(cell.width, cell.height) < 14 ? 0.25 : 0.45;
    const area = scaled(box, scale);
    if (hasBoxes(stackOf(sight.host.trace, sight.scene.layer.site.key_stack), sight.scene.layer.site)) {
      for (let patch = 0; patch < places.count; patch++) {
        const { x, y, width, height } = snapped(scaled(this.patchBox(box, patch), scale), area);
        fillBox(raster, { x: x + width - 1, y, width: 1, height }, theme.background, alpha);
        fillBox(raster, { x, y: y + height - 1, width: width - 1, height: 1 }, theme.background, alpha);
      }
      return;
    }
    const [rows, columns] = sight.scene.layer.site.grid ?? [1, 1];
    const [right, bottom] = [Math.min(box.width, columns * cell.width), Math.min(box.height, rows * cell.height)];
    for (let column = 1; column <= columns && column * cell.width < box.width - 0.5; column++) {
      const x = Math.round((box.x + column * cell.width) * scale);
      fillBox(raster, { x, y: area.y, width: 1, height: bottom * scale }, theme.background, alpha);
    }
    for (let row = 1; row <= rows && row * cell.height < box.height - 0.5; row++) {
      const y = Math.round((box.y + row * cell.height) * scale);
      fillBox(raster, { x: area.x, y, width: right * scale, height: 1 }, theme.background, alpha);
    }
  }

  /** The patch in focus, in its own colours; the one under the pointer beside it. */
  private paintFocus(raster: Raster, scale: number, box: Box, plain: Uint32Array, width: number): void {
    const { sight, theme } = this.all();
    const line = Math.max(1, Math.round(scale));
    const { focus, beside } = sight;
    if (focus) {
      const patch = this.patches[focus.side][focus.index] as number;
      if (patch >= 0) {
        const cell = snapped(scaled(this.patchBox(box, patch), scale), scaled(box, scale));
        this.paintPatch(raster, cell, scaled(box, scale), plain, width);
        frame(raster, grown(cell, line * 2), theme.background, line, 0.9);
        frame(raster, grown(cell, line), theme.selection, line * 2);
      }
    }
    if (beside) {
      const patch = this.patches[beside.side][beside.index] as number;
      if (patch >= 0) frame(raster, grown(scaled(this.patchBox(box, patch), scale), line), theme.ink, line, 0.8);
    }
  }

  private paintRegion(raster: Raster, scale: number, box: Box): void {
    const { theme } = this.all();
    const line = Math.max(1, Math.round(scale));
    for (const [left, top, right, bottom] of this.region?.shares ?? []) {
      const x = box.x + left * box.width;
      const y = box.y + top * box.height;
      const marked = scaled({ x, y, width: (right - left) * box.width, height: (bottom - top) * box.height }, scale);
      frame(raster, grown(marked, line), theme.background, line * 3, 0.9);
      frame(raster, marked, theme.accent, line * 2);
    }
  }

  private paintPatch(raster: Raster, cell: Box, area: Box, plain: Uint32Array, width: number): void {
    const [left, top] = [Math.round(area.x), Math.round(area.y)];
    const height = plain.length / width;
    for (let y = Math.max(0, cell.y - top); y < Math.min(height, cell.y + cell.height - top); y++) {
      const from = Math.max(0, cell.x - left);
      const to = Math.min(width, cell.x + cell.width - left);
      if (top + y >= 0 && top + y < raster.height && to > from) {
        raster.words.set(plain.subarray(y * width + from, y * width + to), (top + y) * raster.width + left + from);
      }
    }
  }

  private paintArrows(raster: Raster, scale: number, panel: Panel, box: Box): void {
    const { sight, theme } = this.all();
    let leads = this.leads.get(panel.plane);
    if (!leads) {
      leads = strongestPatches(panel.plane, this.patches.query, this.patches.key);
      this.leads.set(panel.plane, leads);
    }
    const { focus } = sight;
    const cell = this.cell(box);
    const head = Math.max(3, Math.min(9, cell.width * 0.35)) * scale;
    const most = leads[0]?.weight ?? 1;
    const middle = (patch: number) => {
      const cell = scaled(this.patchBox(box, patch), scale);
      return { x: cell.x + cell.width / 2, y: cell.y + cell.height / 2 };
    };
    leads.slice(0, Math.ceil(leads.length * sight.selection.mass)).forEach(({ query, key, weight }) => {
      if (focus && (focus.side === "query" ? query : key) !== focus.index) return;
      const from = middle(this.patches.query[query] as number);
      const to = middle(this.patches.key[key] as number);
      const alpha = 0.25 + 0.75 * Math.sqrt(weight / most);
      const width = Math.max(1, Math.min(2, cell.width / 12)) * scale;
      drawArrow(raster, from, to, { colour: theme.background, alpha: alpha * 0.7, width: width + 1.6 * scale }, head);
      drawArrow(raster, from, to, { colour: theme.warn, alpha, width }, head);
    });
  }

  private paintChips(raster: Raster, scale: number): void {
    const { sight, theme } = this.all();
    const { focus, panels } = sight;
    const values = focus && panels.length === 1 ? sight.values(panels[0] as Panel, focus) : null;
    for (const chip of this.chips) {
      const box = scaled(chip.box, scale);
      const isFocus = focus !== null && focus.side === chip.side && focus.index === chip.index;
      roundBox(raster, box, 5 * scale, isFocus ? theme.selection : theme.line);
      roundBox(raster, grown(box, -Math.max(1, Math.round(scale))), 4 * scale, isFocus ? theme.tint : theme.panel);
      const other = focus ? this.chipIn(chip, OTHER[focus.side]) : -1;
      const value = values && other >= 0 ? (values[other] as number) : 0;
      if (value > 0 && sight.selection.what === "pattern") {
        roundBox(
          raster,
          grown(box, -Math.max(1, Math.round(scale))),
          4 * scale,
          heat(theme, 0.3),
          0.6 * Math.sqrt(value),
        );
      }
    }
  }

  private all(): { sight: Sight; theme: Theme; places: Patches } {
    return { sight: this.sight as Sight, theme: this.theme as Theme, places: this.places as Patches };
  }
}

/** The upper half of the ramp: over a picture the lower one would be lost. */
function heat(theme: Theme, share: number): Rgb {
  return between(theme.ramp[1], theme.ramp[2], share);
}
