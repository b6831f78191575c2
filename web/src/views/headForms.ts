/** The head view in whichever form fits: between tokens (lines, matrix), over a picture, along a sound. */

import { formOf } from "../data/media";
import type { Selection, Side } from "../selection";
import { mountHead as mountTokens } from "./head";
import { mountMedia } from "./media";
import type { Host, Mounted } from "./view";

const KINDS = { lines: "tokens", matrix: "tokens", image: "image", time: "time" } as const;

type Kind = (typeof KINDS)[keyof typeof KINDS];

export function mountHead(element: HTMLElement, host: Host): Mounted {
  return new HeadForms(element, host);
}

/** One of them at a time; a change of form puts another in its place. */
class HeadForms implements Mounted {
  private kind: Kind | null = null;
  private inner: Mounted | null = null;

  constructor(
    private readonly element: HTMLElement,
    private readonly host: Host,
  ) {}

  update(selection: Selection): Promise<void> {
    const kind = KINDS[formOf(selection, this.host.trace)];
    if (kind !== this.kind || !this.inner) {
      this.inner?.destroy();
      this.kind = kind;
      this.inner = kind === "tokens" ? mountTokens(this.element, this.host) : mountMedia(this.element, this.host, kind);
    }
    return this.inner.update(selection);
  }

  redraw(): void {
    this.inner?.redraw();
  }

  picture(): Promise<HTMLCanvasElement> {
    return this.inner ? this.inner.picture() : Promise.resolve(document.createElement("canvas"));
  }

  numbers(limit: number): ReturnType<Mounted["numbers"]> {
    return this.inner?.numbers(limit) ?? { columns: [], rows: [], total: 0 };
  }

  key(event: KeyboardEvent): boolean {
    return this.inner?.key(event) ?? false;
  }

  find(text: string, direction: 1 | -1): { index: number; total: number } {
    return this.inner?.find?.(text, direction) ?? { index: -1, total: 0 };
  }

  highlight(token: { side: Side; index: number } | null): void {
    this.inner?.highlight?.(token);
  }

  get kept(): number | null {
    return this.inner?.kept ?? null;
  }

  destroy(): void {
    this.inner?.destroy();
    this.inner = null;
  }
}
