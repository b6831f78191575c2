/** What the pointer does on the atlas: move, zoom, turn, select by lasso or box, hover, click. */

import type { Spot } from "./atlasOverlay";
import type { Grip } from "./atlasTools";

/** What the pointer needs of the view it moves over. */
export interface Handled {
  readonly isSingle: boolean;
  readonly isSolid: boolean;
  readonly grip: Grip;
  pan(across: number, down: number): void;
  turn(across: number, down: number): void;
  zoomAt(factor: number, at: Spot): void;
  hover(at: Spot | null, event: PointerEvent | null): void;
  click(at: Spot): void;
  doubleClick(at: Spot): void;
  /** The lasso so far; null when it was let go of. */
  draw(path: Spot[]): void;
  select(path: Spot[], isMore: boolean): void;
}

const STILL = 4; // px that a click may move
const DOUBLE = 350; // ms

type Drag = { kind: "pan" | "turn"; last: Spot } | { kind: "lasso" | "box"; path: Spot[]; isMore: boolean };

export class AtlasPointer {
  private drag: Drag | null = null;
  private begun: Spot | null = null;
  private hasMoved = false;
  private readonly touches = new Map<number, Spot>();
  private lastClick = { time: 0, x: 0, y: 0 };
  private readonly listeners = new AbortController();

  constructor(
    private readonly element: HTMLElement,
    private readonly view: Handled,
  ) {
    const { signal } = this.listeners;
    const on = <Name extends keyof HTMLElementEventMap>(name: Name, act: (event: HTMLElementEventMap[Name]) => void) =>
      element.addEventListener(name, act, { signal, passive: false });
    on("pointerdown", (event) => this.press(event));
    on("pointermove", (event) => this.move(event));
    on("pointerup", (event) => this.release(event));
    on("pointercancel", (event) => this.cancel(event));
    on("pointerleave", () => this.drag || view.hover(null, null));
    on("wheel", (event) => this.wheel(event));
  }

  destroy(): void {
    this.listeners.abort();
  }

  private at(event: MouseEvent): Spot {
    const { left, top } = this.element.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  }

  private press(event: PointerEvent): void {
    if (event.button !== 0) return;
    const at = this.at(event);
    this.touches.set(event.pointerId, at);
    if (this.touches.size > 1) {
      this.endPath();
      this.drag = null;
      this.hasMoved = true;
      return;
    }
    this.begun = at;
    this.hasMoved = false;
    this.drag = this.begin(event, at);
    this.element.setPointerCapture(event.pointerId);
  }

  private begin(event: PointerEvent, at: Spot): Drag {
    const { isSingle, isSolid, grip } = this.view;
    const isMore = event.ctrlKey || event.metaKey;
    if (isSingle && (event.shiftKey || grip === "lasso")) return { kind: "lasso", path: [at], isMore };
    if (isSingle && (event.altKey || grip === "box")) return { kind: "box", path: [at], isMore };
    return { kind: isSolid && isSingle && !event.ctrlKey ? "turn" : "pan", last: at };
  }

  private move(event: PointerEvent): void {
    const at = this.at(event);
    if (this.touches.size > 1) {
      this.pinch(event, at);
      return;
    }
    const { drag, begun } = this;
    if (!drag || !begun) {
      this.view.hover(at, event);
      return;
    }
    if (!this.hasMoved && Math.hypot(at.x - begun.x, at.y - begun.y) < STILL) return;
    if (!this.hasMoved) this.view.hover(null, null);
    this.hasMoved = true;
    if ("last" in drag) {
      const [across, down] = [at.x - drag.last.x, at.y - drag.last.y];
      if (drag.kind === "pan") this.view.pan(across, down);
      else this.view.turn(across, down);
      drag.last = at;
      return;
    }
    const first = drag.path[0] as Spot;
    if (drag.kind === "lasso") drag.path.push(at);
    else drag.path = [first, { x: at.x, y: first.y }, at, { x: first.x, y: at.y }];
    this.view.draw(drag.path);
  }

  /** Two fingers: what is under them stays under them. */
  private pinch(event: PointerEvent, at: Spot): void {
    const before = this.touches.get(event.pointerId);
    const other = [...this.touches].find(([id]) => id !== event.pointerId)?.[1];
    if (!before || !other) return;
    const apart = (spot: Spot) => Math.max(8, Math.hypot(spot.x - other.x, spot.y - other.y));
    const middle = { x: (at.x + other.x) / 2, y: (at.y + other.y) / 2 };
    this.view.pan((at.x - before.x) / 2, (at.y - before.y) / 2);
    this.view.zoomAt(apart(at) / apart(before), middle);
    this.touches.set(event.pointerId, at);
  }

  private release(event: PointerEvent): void {
    this.touches.delete(event.pointerId);
    const { drag } = this;
    const at = this.at(event);
    if (this.element.hasPointerCapture(event.pointerId)) this.element.releasePointerCapture(event.pointerId);
    this.drag = null;
    if (drag && "path" in drag && this.hasMoved) {
      this.view.draw([]);
      this.view.select(drag.path, drag.isMore);
      return;
    }
    if (!drag || this.hasMoved) return;
    const isDouble =
      event.timeStamp - this.lastClick.time < DOUBLE &&
      Math.hypot(at.x - this.lastClick.x, at.y - this.lastClick.y) < 2 * STILL;
    this.lastClick = { time: isDouble ? 0 : event.timeStamp, ...at };
    if (isDouble) this.view.doubleClick(at);
    else this.view.click(at);
  }

  private cancel(event: PointerEvent): void {
    this.touches.delete(event.pointerId);
    this.endPath();
    this.drag = null;
  }

  private endPath(): void {
    if (this.drag && "path" in this.drag) this.view.draw([]);
  }

  private wheel(event: WheelEvent): void {
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 20 : event.deltaMode === 2 ? 400 : 1;
    const turn = Math.max(-160, Math.min(160, event.deltaY * unit));
    this.view.zoomAt(Math.exp(-turn * 0.0028), this.at(event));
  }
}
