/** The head view along a sound: the waveform and the spectrogram over what frames, or written tokens, attend to in time. */

import { number } from "../data/measures";
import type { Sound } from "../data/media";
import { fillBox, frame, scaled } from "../marks/boxes";
import { type Box, ramp } from "../marks/cells";
import type { Raster } from "../marks/raster";
import { between, type Theme, themeOf } from "../theme";
import type { Token } from "./columns";
import type { Label, Ruler } from "./labels";
import { type Legend, rootLegend } from "./legend";
import type { Form, Panel, Sight, Spot } from "./media";
import { TimeAxis } from "./timeAxis";

const MARGIN = 16;
const GAP = 12;
const TITLE = 20;
const AXIS = 20;
const WAVE = 44;
const STRIP = 30;
const READABLE = 12; // px: rows from here on have their tokens beside them
const IN_TIP = 12;

export class TimeForm implements Form {
  private sight!: Sight;
  private theme!: Theme;
  /** The seconds in view. */
  private span: [number, number] | null = null;
  private heardBy: Sound | null = null;
  private plot = { x: 0, width: 1 };
  private wave: Box = { x: 0, y: 0, width: 1, height: 0 };
  private bands: Box = { x: 0, y: 0, width: 1, height: 0 };
  private boxes: Box[] = [];

  lay(sight: Sight, ruler: Ruler, width: number, height: number, element: HTMLElement): void {
    this.sight = sight;
    this.theme = themeOf(element);
    const { sound } = this;
    if (sound !== this.heardBy) {
      this.heardBy = sound;
      // Most of a long window is what a short sound was filled up with.
      this.span = sound.heard < 0.6 * sound.seconds ? [0, sound.heard * 1.15] : [0, sound.seconds];
    }
    const names = this.hasRows ? sight.scene.layer.queries.texts : sight.panels.map((panel) => panel.name);
    const least = ruler.width("spectrogram", 11) + 12;
    const left = MARGIN + Math.min(150, Math.max(least, ruler.usual(names, 12) + 12));
    this.plot = { x: left, width: Math.max(40, width - left - MARGIN) };
    let y = 12;
    this.wave = { ...this.plot, y, height: sound.envelope ? WAVE : 0 };
    y += this.wave.height + (sound.envelope ? 4 : 0);
    this.bands = { ...this.plot, y, height: sound.spectrogram ? Math.round(Math.min(120, height * 0.18)) : 0 };
    y += this.bands.height + AXIS + 6;
    const count = sight.panels.length;
    const title = this.hasRows && count > 1 ? TITLE : 0;
    const room = (height - y - MARGIN - (count - 1) * GAP) / count - title;
    const n = sight.scene.layer.queries.texts.length;
    const tall = this.hasRows ? Math.max(8, Math.min(room, n * 26)) : Math.max(6, Math.min(STRIP, room));
    this.boxes = sight.panels.map((_, index) => ({
      ...this.plot,
      y: Math.round(y + title + index * (tall + title + GAP)),
      height: Math.floor(tall),
    }));
  }

  paint(raster: Raster, scale: number): void {
    const { sight, theme, sound, axis } = this;
    raster.fill(theme.background);
    this.paintWave(raster, scale);
    this.paintBands(raster, scale);
    sight.panels.forEach((panel, index) => {
      const box = scaled(this.boxes[index] as Box, scale);
      frame(raster, { x: box.x - 1, y: box.y - 1, width: box.width + 2, height: box.height + 2 }, theme.line);
      this.paintPanel(raster, panel, box);
    });
    const { focus } = sight;
    const column = (index: number, colour: Theme["accent"], alpha: number) => {
      const [from, to] = [axis.left(index), axis.left(index + 1)];
      const top = this.wave.y;
      const bottom = Math.max(...this.boxes.map((box) => box.y + box.height));
      const x = Math.max(this.plot.x, from);
      const width = Math.min(Math.max(1.5, to - from), this.plot.x + this.plot.width - x);
      if (to > this.plot.x && width > 0) {
        fillBox(raster, scaled({ x, y: top, width, height: bottom - top }, scale), colour, alpha);
      }
    };
    if (focus && (!this.hasRows || focus.side === "key")) column(focus.index, theme.selection, 0.3);
    if (sight.beside && (!this.hasRows || sight.beside.side === "key")) column(sight.beside.index, theme.ink, 0.25);
    const end = axis.pixelAt(sound.heard);
    if (sound.heard < sound.seconds && end > this.plot.x && end < this.plot.x + this.plot.width) {
      const height = this.bands.y + this.bands.height - this.wave.y;
      fillBox(raster, scaled({ x: end, y: this.wave.y, width: 1, height }, scale), theme.warn, 0.8);
    }
    this.paintRowFocus(raster, scale);
  }

  labels(): Label[] {
    const { sight, theme, axis } = this;
    const labels: Label[] = [];
    const gutter = this.plot.x - MARGIN;
    const put = (text: string, y: number, more: Partial<Label> = {}) =>
      labels.push({
        text,
        x: this.plot.x - 8,
        y,
        align: "right",
        width: gutter,
        size: 12,
        colour: theme.ink,
        ...more,
      });
    if (this.wave.height) put("sound", this.wave.y + this.wave.height / 2, { size: 11, colour: theme.tertiary });
    if (this.bands.height)
      put("spectrogram", this.bands.y + this.bands.height / 2, { size: 11, colour: theme.tertiary });
    const y = this.bands.y + this.bands.height + AXIS / 2 + 2;
    for (const second of axis.ticks()) {
      const x = axis.pixelAt(second);
      put(`${Number(second.toFixed(3))} s`, y, { x, align: "centre", width: 60, size: 10, colour: theme.tertiary });
    }
    const { queries } = sight.scene.layer;
    const { focus } = sight;
    sight.panels.forEach((panel, index) => {
      const box = this.boxes[index] as Box;
      if (!this.hasRows) {
        put(panel.name, box.y + box.height / 2, { isBold: panel.head === sight.selection.head });
        return;
      }
      if (sight.panels.length > 1) {
        const isBold = panel.head === sight.selection.head;
        put(panel.name, box.y - TITLE / 2, { x: box.x, align: "left", width: box.width, isBold });
      }
      const step = box.height / queries.texts.length;
      if (step < READABLE) return;
      queries.texts.forEach((text, row) => {
        const isBold = focus?.side === "query" && focus.index === row;
        const colour = queries.isSpecial[row] || queries.isOff[row] ? theme.tertiary : theme.ink;
        put(text, box.y + (row + 0.5) * step, { isBold, colour, isStruck: queries.isOff[row] ?? false });
      });
    });
    return labels;
  }

  hit(x: number, y: number): Spot {
    const { sight } = this;
    const index = this.axis.frameAt(x);
    for (const [place, box] of this.boxes.entries()) {
      const panel = sight.panels[place] as Panel;
      const isBeside = y >= box.y && y < box.y + box.height;
      if (!this.hasRows && isBeside && x < this.plot.x && panel.head >= 0) return { head: panel.head };
      if (this.hasRows && y >= box.y - TITLE && y < box.y && sight.panels.length > 1 && panel.head >= 0) {
        return { head: panel.head };
      }
      if (!this.hasRows || !isBeside) continue;
      const { texts } = sight.scene.layer.queries;
      return {
        token: {
          side: "query",
          index: Math.min(texts.length - 1, Math.floor(((y - box.y) * texts.length) / box.height)),
        },
      };
    }
    if (index < 0) return null;
    const bottom = Math.max(...this.boxes.map((box) => box.y + box.height));
    if (y < this.wave.y || y > bottom) return null;
    const side = this.hasRows || sight.selection.direction === "to" ? "key" : "query";
    return { token: { side, index } };
  }

  tip(token: Token, at: { x: number; y: number }): string[] {
    const { sight, axis } = this;
    const { queries } = sight.scene.layer;
    const index = axis.frameAt(at.x);
    const when = (index: number) => `${axis.secondOf(index).toFixed(2)}–${axis.secondOf(index + 1).toFixed(2)} s`;
    if (this.hasRows && token.side === "query") {
      if (index < 0) return [queries.texts[token.index] as string];
      const lines = sight.panels.map(
        (panel) => `${panel.name}  ${number(sight.values(panel, token)[index] as number)}`,
      );
      return [`${queries.texts[token.index]} → ${when(index)}`, ...lines.slice(0, IN_TIP)];
    }
    const { focus } = sight;
    if (!this.hasRows && focus && (focus.index !== token.index || focus.side !== token.side)) {
      const arrow = focus.side === "query" ? [focus.index, token.index] : [token.index, focus.index];
      const lines = sight.panels.map(
        (panel) => `${panel.name}  ${number(sight.values(panel, focus)[token.index] as number)}`,
      );
      return [`${when(arrow[0] as number)} → ${when(arrow[1] as number)}`, ...lines.slice(0, IN_TIP)];
    }
    const lines = sight.panels.slice(0, IN_TIP).map((panel) => {
      const values = sight.values(panel, token);
      let best = -1;
      values.forEach((weight, place) => {
        if (!Number.isNaN(weight) && (best < 0 || weight > (values[best] as number))) best = place;
      });
      if (best < 0) return panel.name;
      const name = this.hasRows ? (queries.texts[best] as string) : when(best);
      return `${panel.name}  ${token.side === "query" ? "→" : "←"} ${name}  ${number(values[best] as number)}`;
    });
    return [when(token.index), ...lines];
  }

  told(): { line: string; notes: string[] } {
    const { sight, sound, axis } = this;
    const { focus, scene } = sight;
    const when = (index: number) => `${axis.secondOf(index).toFixed(2)} s`;
    const line = this.hasRows
      ? focus?.side === "query"
        ? `what ${scene.layer.queries.texts[focus.index]} attends to in time`
        : `what each written token attends to in time`
      : focus
        ? `${focus.side === "query" ? "from" : "to"} the frame at ${when(focus.index)}`
        : "what each frame gets, on average over all frames";
    const notes = [
      this.hasRows
        ? "each picture from nothing to its strongest weight, square-root scale"
        : "each strip from nothing to its strongest, square-root scale",
    ];
    const [from, to] = this.seen;
    if (from > 0 || to < sound.seconds) {
      const whole = sound.seconds.toFixed(2);
      notes.push(`${from.toFixed(2)} to ${to.toFixed(2)} of ${whole} s in view: the wheel shows more or less`);
    }
    if (sound.heard < sound.seconds * 0.98) {
      const share = this.shareAfter(sound.heard);
      notes.push(
        `the sound ends at ${sound.heard.toFixed(2)} s; ${Math.round(share * 100)} % of the weight lies after that`,
      );
    }
    if (sound.note) notes.push(sound.note);
    return { line, notes };
  }

  wheel(x: number, _y: number, delta: number): boolean {
    this.span = this.axis.zoomed(x, delta);
    return true;
  }

  // Time

  /** Whether rows are written tokens: what attends is not the sound itself. */
  private get hasRows(): boolean {
    return this.sight.scene.layer.site.kind === "cross";
  }

  private get sound(): Sound {
    return this.sight.sound as Sound;
  }

  private get nFrames(): number {
    return this.sight.scene.layer.keys.texts.length;
  }

  private get seen(): [number, number] {
    return this.span ?? [0, this.sound.seconds];
  }

  private get axis(): TimeAxis {
    const { plot, seen, nFrames, sound } = this;
    return new TimeAxis({ from: plot.x, width: plot.width }, seen, nFrames, sound.seconds);
  }

  private shareAfter(second: number): number {
    const { sight } = this;
    const first = Math.ceil((second * this.nFrames) / this.sound.seconds);
    let [after, all] = [0, 0];
    for (const { plane } of sight.panels) {
      plane.received().forEach((weight, index) => {
        all += weight;
        if (index >= first) after += weight;
      });
    }
    return all ? after / all : 0;
  }

  // Drawing

  private paintWave(raster: Raster, scale: number): void {
    const { theme, sound } = this;
    const { envelope } = sound;
    if (!envelope || !this.wave.height) return;
    const box = scaled(this.wave, scale);
    fillBox(raster, box, theme.panel);
    const count = envelope.length / 2;
    let most = 1e-6;
    for (const sample of envelope) most = Math.max(most, Math.abs(sample));
    const [from, to] = this.seen;
    for (let x = 0; x < box.width; x++) {
      const [a, b] = [0, 1].map(
        (offset) => ((from + ((x + offset) / box.width) * (to - from)) / sound.heard) * count,
      ) as [number, number];
      let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
      for (let i = Math.max(0, Math.floor(a)); i < Math.min(count, Math.max(Math.ceil(b), Math.floor(a) + 1)); i++) {
        low = Math.min(low, envelope[2 * i] as number);
        high = Math.max(high, envelope[2 * i + 1] as number);
      }
      if (high < low) continue;
      const middle = box.y + box.height / 2;
      const top = middle - (high / most) * (box.height / 2 - 1);
      const bottom = middle - (low / most) * (box.height / 2 - 1);
      fillBox(
        raster,
        { x: Math.round(box.x) + x, y: top, width: 1, height: Math.max(1, bottom - top) },
        theme.secondary,
        0.8,
      );
    }
  }

  private paintBands(raster: Raster, scale: number): void {
    const { theme, sound } = this;
    const { spectrogram } = sound;
    if (!spectrogram || !this.bands.height) return;
    const { bytes, bands, columns } = spectrogram;
    const box = scaled(this.bands, scale);
    const [from, to] = this.seen;
    const tones = Array.from({ length: 256 }, (_, byte) => between(theme.panel, theme.ink, (byte / 255) ** 1.5 * 0.9));
    const words = Uint32Array.from(tones, ([r, g, b]) => (0xff000000 | (b << 16) | (g << 8) | r) >>> 0);
    const [left, top] = [Math.round(box.x), Math.round(box.y)];
    for (let y = 0; y < Math.round(box.height) && top + y < raster.height; y++) {
      const band = bands - 1 - Math.min(bands - 1, Math.floor((y * bands) / box.height)); // low ones at the bottom
      for (let x = 0; x < Math.round(box.width) && left + x < raster.width; x++) {
        const second = from + ((x + 0.5) / box.width) * (to - from);
        const column = Math.max(0, Math.min(columns - 1, Math.floor((second / sound.seconds) * columns)));
        raster.words[(top + y) * raster.width + left + x] = words[bytes[band * columns + column] as number] as number;
      }
    }
  }

  boxAt(): null {
    return null;
  }

  legend(): Legend | null {
    if (!this.sight.panels.length) return null;
    const ticks = [0, 0.25, 1].map((share) => ({
      at: Math.sqrt(share),
      text: share === 1 ? "strongest" : String(share),
    }));
    return { ...rootLegend(this.theme, "attention weight, as a share of the strongest"), ticks };
  }

  /** A row a token, or one strip: the strongest of the frames that share a pixel. */
  private paintPanel(raster: Raster, panel: Panel, box: Box): void {
    const { sight, theme } = this;
    const { focus } = sight;
    const { plane } = panel;
    const rows = this.hasRows ? plane.nQueries : 1;
    const strip = !this.hasRows && (focus ? sight.values(panel, focus) : plane.received());
    let most = 1e-9;
    if (strip) for (const weight of strip) most = Math.max(most, Math.abs(weight || 0));
    else for (const weight of plane.strength) most = Math.max(most, weight);
    const colours = ramp(theme);
    const wide = Math.round(box.width);
    const [from, to] = this.seen;
    const perSecond = this.nFrames / this.sound.seconds;
    const line = new Float32Array(this.nFrames);
    const [left, top] = [Math.round(box.x), Math.round(box.y)];
    for (let row = 0; row < rows; row++) {
      line.fill(0);
      if (strip) line.set(strip.map((weight) => Math.abs(weight || 0)));
      else
        plane.row(row, (cell, key) => {
          line[key] = plane.strength[cell] as number;
        });
      const [first, last] = [
        top + Math.round((row * box.height) / rows),
        top + Math.round(((row + 1) * box.height) / rows),
      ];
      for (let x = 0; x < wide && left + x < raster.width; x++) {
        const a = Math.max(0, Math.floor((from + (x / wide) * (to - from)) * perSecond));
        const b = Math.min(
          this.nFrames,
          Math.max(a + 1, Math.floor((from + ((x + 1) / wide) * (to - from)) * perSecond)),
        );
        let value = 0;
        for (let i = a; i < b; i++) value = Math.max(value, line[i] as number);
        const word = colours[Math.round(255 * Math.sqrt(Math.min(1, value / most)))] as number;
        for (let y = first; y < last && y < raster.height; y++) raster.words[y * raster.width + left + x] = word;
      }
    }
  }

  /** The row in focus, framed, and its weights as a line of bars under the sound. */
  private paintRowFocus(raster: Raster, scale: number): void {
    const { sight, theme } = this;
    const { focus } = sight;
    if (!this.hasRows || focus?.side !== "query") return;
    const n = sight.scene.layer.queries.texts.length;
    for (const box of this.boxes) {
      const step = box.height / n;
      const row = { x: box.x - 1, y: box.y + focus.index * step - 1, width: box.width + 2, height: step + 2 };
      frame(raster, scaled(row, scale), theme.selection, Math.max(1, Math.round(scale)));
    }
  }
}
