/** The tip beside the pointer, or under what has the focus. */

import { make } from "./elements";

export class Tip {
  constructor(private readonly element: HTMLElement) {}

  show(event: Event, lines: string[]): void {
    const { element } = this;
    element.replaceChildren(...lines.filter(Boolean).map((line, at) => make(at ? "div" : "b", {}, [line])));
    element.hidden = false;
    const box = element.getBoundingClientRect();
    const { x, y } = placeOf(event);
    const isLow = y + 16 + box.height > innerHeight;
    element.style.left = `${Math.max(4, Math.min(innerWidth - box.width - 4, x + 12))}px`;
    element.style.top = `${isLow ? Math.max(4, y - box.height - 10) : y + 16}px`;
  }

  hide(): void {
    this.element.hidden = true;
  }
}

function placeOf(event: Event): { x: number; y: number } {
  if (event instanceof MouseEvent && (event.clientX || event.clientY)) return { x: event.clientX, y: event.clientY };
  const { right, bottom } = (event.target as Element).getBoundingClientRect();
  return { x: right, y: bottom };
}
