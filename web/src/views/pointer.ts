/** What the pointer does in the head view: hover, pin, switch off, scroll, zoom. */

import type { Selection } from "../selection";
import { same, type Token } from "./columns";
import type { Ruler } from "./labels";
import type { LinesForm } from "./lines";
import type { MatrixForm, Spot } from "./matrix";
import { spanOf } from "./matrixLayout";
import type { Scene } from "./scene";
import { type Host, onScreen } from "./view";

/** What the pointer needs of the view it moves over. */
export interface Handled {
  readonly host: Host;
  readonly lines: LinesForm;
  readonly matrix: MatrixForm;
  readonly ruler: Ruler;
  readonly scene: Scene | null;
  readonly selection: Selection | null;
  readonly isLines: boolean;
  readonly page: number;
  drawFocus(): void;
  wantExact(token: Token | null): void;
  switchToken(token: Token, from: Pick<Selection, "off" | "token">): void;
  scrollBy(distance: number): boolean;
  soon(): void;
  zoomed(act: () => void): void;
}

type Drag =
  | { kind: "map" }
  | { kind: "scroll"; last: number }
  | { kind: "zoom"; from: Spot }
  | { kind: "pan"; x: number; y: number }
  | { kind: "paint" };

export class Pointer {
  private drag: Drag | null = null;
  private hasDragged = false;
  /** The token of the first of two clicks: what is under the second may have moved. */
  private first: Token | null = null;
  /** What was pinned and switched off before it. */
  private before: Pick<Selection, "token" | "off"> | null = null;
  private readonly listeners = new AbortController();

  constructor(
    private readonly stage: HTMLElement,
    private readonly view: Handled,
  ) {
    this.listen();
  }

  destroy(): void {
    this.listeners.abort();
  }

  private listen(): void {
    const { signal } = this.listeners;
    const on = <Name extends keyof HTMLElementEventMap>(name: Name, act: (event: HTMLElementEventMap[Name]) => void) =>
      this.stage.addEventListener(name, act, { signal, passive: false });
    on("pointermove", (event) => this.move(event));
    on("pointerleave", () => this.drag || this.hover(null));
    on("pointerdown", (event) => this.press(event));
    on("pointerup", (event) => this.release(event));
    on("pointercancel", () => this.endDrag());
    on("click", (event) => this.click(event));
    on("dblclick", () => {
      if (!this.view.isLines && this.view.matrix.isZoomed) this.view.zoomed(() => this.view.matrix.zoom(null));
    });
    on("wheel", (event) => this.wheel(event));
  }

  private at(event: MouseEvent): { x: number; y: number } {
    const { left, top } = this.stage.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  }

  private move(event: PointerEvent): void {
    if (!this.view.scene) return;
    const { x, y } = this.at(event);
    if (this.drag) {
      this.dragTo(this.drag, x, y);
      return;
    }
    if (this.view.isLines) {
      const token = this.view.lines.columns?.hit(x, y, this.view.lines.scroll) ?? null;
      this.stage.style.cursor = token ? "pointer" : "default";
      this.hover(token);
      this.tipToken(token, event);
      return;
    }
    const spot = this.view.matrix.hit(x, y);
    this.stage.style.cursor = spot ? "crosshair" : "default";
    const isSame =
      spot?.panel === this.view.matrix.hovered?.panel &&
      spot?.query === this.view.matrix.hovered?.query &&
      spot?.key === this.view.matrix.hovered?.key;
    this.view.matrix.hovered = spot;
    if (!isSame) this.view.drawFocus();
    const at = spot ? { x: event.clientX, y: event.clientY } : null;
    const around = spot && onScreen(this.stage, this.view.matrix.boxOf(spot));
    this.view.host.tip(at, spot ? this.view.matrix.tip() : [], around);
  }

  private hover(token: Token | null): void {
    if (!this.view.isLines) {
      if (this.view.matrix.hovered) {
        this.view.matrix.hovered = null;
        this.view.drawFocus();
      }
      this.view.host.tip(null);
      return;
    }
    if (same(token, this.view.lines.hovered)) return;
    this.view.lines.hovered = token;
    this.view.host.hover?.(token);
    this.view.drawFocus();
    this.view.wantExact(this.view.lines.focus);
    if (!token) this.view.host.tip(null);
  }

  /** The whole text of a token that is cut short, and its numbers where they have no room in the picture. */
  private tipToken(token: Token | null, event: PointerEvent): void {
    const { columns } = this.view.lines;
    if (!token || !columns || !this.view.scene) return;
    const reading = token.side === "query" ? this.view.scene.layer.queries : this.view.scene.layer.keys;
    const text = reading.texts[token.index] as string;
    const room = columns.isFlat && !columns.isVertical ? columns.pitch - 6 : columns.label[token.side];
    const isCut = this.view.ruler.width(text, columns.pitch >= 19 ? 14 : 13) > room;
    const figures = [...this.view.scene.relevanceOf(token), ...this.view.lines.tip(token)];
    const lines = isCut || figures.length ? [text, ...figures] : [];
    this.view.host.tip(lines.length ? { x: event.clientX, y: event.clientY } : null, lines);
  }

  private press(event: PointerEvent): void {
    if (event.button !== 0 || !this.view.scene) return;
    const { x, y } = this.at(event);
    this.hasDragged = false;
    if (this.view.isLines) {
      const { columns } = this.view.lines;
      if (!columns?.isLong) return;
      const { map } = columns;
      const isOnMap = map && x >= map.x && x <= map.x + map.width && y >= map.y && y <= map.y + map.height;
      this.drag = isOnMap ? { kind: "map" } : { kind: "scroll", last: columns.isVertical ? y : x };
      if (isOnMap) this.dragTo(this.drag, x, y);
    } else {
      const spot = this.view.matrix.hit(x, y);
      if (spot && this.view.host.painting && !event.shiftKey) this.paint(spot);
      else if (event.shiftKey && this.view.matrix.isZoomed) this.drag = { kind: "pan", x, y };
      else if (spot) this.drag = { kind: "zoom", from: spot };
    }
    if (this.drag) this.stage.setPointerCapture(event.pointerId);
  }

  /** Begin a stroke; what follows is no click. */
  private paint(spot: Spot): void {
    this.drag = { kind: "paint" };
    this.hasDragged = true;
    this.view.host.painting?.begin(spot.query, spot.key, this.view.matrix.brush);
    this.view.host.tip(null);
    this.view.drawFocus();
  }

  private dragTo(drag: Drag, x: number, y: number): void {
    if (drag.kind === "map") {
      this.hasDragged = true;
      this.view.lines.scrollTo(x, y);
      this.view.soon();
    } else if (drag.kind === "scroll") {
      const at = this.view.lines.columns?.isVertical ? y : x;
      if (!this.hasDragged && Math.abs(at - drag.last) < 4) return;
      this.hasDragged = true;
      this.view.scrollBy(drag.last - at);
      drag.last = at;
    } else if (drag.kind === "paint") {
      const spot = this.view.matrix.hit(x, y);
      if (spot) this.view.host.painting?.to(spot.query, spot.key, this.view.matrix.brush);
      this.view.drawFocus();
    } else if (drag.kind === "pan") {
      this.hasDragged = true;
      const before = this.view.matrix.region;
      this.view.matrix.pan(drag.x - x, drag.y - y);
      if (this.view.matrix.region !== before) [drag.x, drag.y] = [x, y];
      this.view.soon();
    } else {
      const spot = this.view.matrix.hit(x, y);
      if (!spot || spot.panel !== drag.from.panel) return;
      const region = spanOf(drag.from, spot);
      this.hasDragged ||= region.rows[1] - region.rows[0] > 1 && region.columns[1] - region.columns[0] > 1;
      this.view.matrix.chosen = this.hasDragged ? region : null;
      this.view.matrix.hovered = null;
      this.view.host.tip(null);
      this.view.drawFocus();
    }
  }

  private release(event: PointerEvent): void {
    const { drag } = this;
    if (drag && this.stage.hasPointerCapture(event.pointerId)) this.stage.releasePointerCapture(event.pointerId);
    const { chosen } = this.view.matrix;
    if (drag?.kind === "zoom" && chosen) this.view.zoomed(() => this.view.matrix.zoom(chosen));
    else if (drag?.kind === "pan") this.view.zoomed(() => {});
    else if (drag?.kind === "paint") this.view.host.painting?.end();
    this.endDrag();
  }

  private endDrag(): void {
    this.drag = null;
    this.view.matrix.chosen = null;
  }

  private click(event: MouseEvent): void {
    if (this.hasDragged || !this.view.scene || !this.view.selection) return;
    const { x, y } = this.at(event);
    if (event.detail <= 1) {
      this.first = this.view.isLines
        ? (this.view.lines.columns?.hit(x, y, this.view.lines.scroll) ?? null)
        : this.rowAt(x, y);
      this.before = { token: this.view.selection.token, off: this.view.selection.off };
    }
    const token = this.first;
    if (!token) {
      if (this.view.selection.token && this.view.isLines) this.view.host.select({ token: null });
      return;
    }
    const reading = token.side === "query" ? this.view.scene.layer.queries : this.view.scene.layer.keys;
    const isSecond = event.detail === 2 && this.before !== null;
    if (isSecond && !this.view.isLines) return;
    if (reading.isLater[token.index]) return;
    if (isSecond || event.altKey || reading.isOff[token.index]) {
      // The first click of two pinned it, or switched it on: start again from before that.
      if (event.detail <= 2) this.view.switchToken(token, isSecond && this.before ? this.before : this.view.selection);
      return;
    }
    if (event.detail > 2) return;
    const isPinned = same(this.view.selection.token, token);
    this.view.host.select({ token: isPinned ? null : token });
  }

  private rowAt(x: number, y: number): Token | null {
    const spot = this.view.matrix.hit(x, y);
    return spot ? { side: "query", index: spot.query } : null;
  }

  private wheel(event: WheelEvent): void {
    if (!this.view.scene) return;
    const lineHeight = event.deltaMode === 1 ? 20 : event.deltaMode === 2 ? this.view.page : 1;
    if (this.view.isLines) {
      const { columns } = this.view.lines;
      if (!columns?.isLong || event.ctrlKey) return;
      event.preventDefault();
      const delta = Math.abs(event.deltaY) > Math.abs(event.deltaX) ? event.deltaY : event.deltaX;
      this.view.scrollBy(delta * lineHeight);
      const { x, y } = this.at(event);
      this.view.lines.hovered = columns.hit(x, y, this.view.lines.scroll);
      return;
    }
    const { x, y } = this.at(event);
    const spot = this.view.matrix.hit(x, y);
    if (!spot) return;
    event.preventDefault();
    this.view.host.tip(null);
    if (event.shiftKey)
      this.view.zoomed(() =>
        this.view.matrix.pan(
          (event.deltaX || event.deltaY) * 0.5,
          event.shiftKey && event.deltaX ? event.deltaY * 0.5 : 0,
        ),
      );
    else
      this.view.zoomed(() =>
        this.view.matrix.zoomAt(spot, Math.exp(Math.max(-120, Math.min(120, event.deltaY * lineHeight)) * 0.003)),
      );
  }
}
