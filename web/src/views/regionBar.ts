/** What there is to know of a marked part of the picture, and to do with it: a bar over the view. */

import { number } from "../data/measures";
import type { Region } from "../data/patches";

interface Marked {
  region: Region;
  /** How many image tokens it touches, and the attention that they get together. */
  count: number;
  share: number;
  /** The word that looks; null for all of them. */
  query: number | null;
  word: string;
  /** The layer, and the heads that are drawn. */
  site: string;
  heads: string[];
  /** Puts an edit; null where nothing can be run. */
  edit: ((call: string) => void) | null;
}

export class RegionBar {
  private readonly element = document.createElement("div");

  constructor(
    stage: HTMLElement,
    private readonly close: () => void,
  ) {
    this.element.className = "region-bar";
    this.element.setAttribute("role", "group");
    this.element.setAttribute("aria-label", "Marked region");
    Object.assign(this.element.style, {
      position: "absolute",
      left: "50%",
      bottom: "8px",
      transform: "translateX(-50%)",
      display: "none",
      flexWrap: "wrap",
      alignItems: "center",
      gap: "4px 10px",
      width: "max-content",
      maxWidth: "calc(100% - 24px)",
      boxSizing: "border-box",
      padding: "5px 10px",
      border: "1px solid var(--line)",
      borderRadius: "8px",
      background: "var(--panel)",
      color: "var(--ink)",
      font: "12px system-ui, sans-serif",
      boxShadow: "0 2px 10px rgb(0 0 0 / 14%)",
    });
    stage.append(this.element);
  }

  show({ region, count, share, query, word, site, heads, edit }: Marked): void {
    const [head = site] = heads;
    const isOne = heads.length === 1;
    const who = query === null ? "an average query" : `“${word}”`;
    const line = document.createElement("span");
    line.setAttribute("role", "status");
    const gets = `${number(share)} of the attention of ${who}${isOne ? ` in ${head}` : ", mean of the heads shown"}`;
    line.textContent = `${count} image token${count === 1 ? "" : "s"}: ${gets}`;
    const places = isOne && head !== site ? [head, site] : [site];
    const parts: HTMLElement[] = [line];
    if (count && edit && query === null) {
      const hint = document.createElement("span");
      hint.textContent = "Choose a word to block it from here.";
      hint.style.color = "var(--secondary)";
      parts.push(hint);
    } else if (count && edit && query !== null) {
      for (const place of places) {
        const title = `In ${place}, “${word}” no longer sees this region; the rest of its row shares the weight`;
        parts.push(button(`Block for “${word}” in ${place}`, title, () => edit(blocking(place, query, region))));
      }
    }
    this.element.replaceChildren(...parts, button("✕", "Clear the region (Esc)", this.close));
    this.element.style.display = "flex";
  }

  hide(): void {
    this.element.style.display = "none";
  }

  /** Whether an event is on the bar. */
  holds(target: EventTarget | null): boolean {
    return target instanceof Node && this.element.contains(target);
  }

  destroy(): void {
    this.element.remove();
  }
}

/** The Python of the edit: the region in pixels of the picture as it was given, so that it holds for every copy of it. */
export function blocking(place: string, query: number, { source }: Region): string {
  return `block('${place}', [${query}], 'box:${source.join(",")}')`;
}

function button(text: string, title: string, act: () => void): HTMLButtonElement {
  const element = document.createElement("button");
  Object.assign(element, { type: "button", textContent: text, title });
  if (text.length === 1) element.setAttribute("aria-label", title);
  Object.assign(element.style, {
    border: "1px solid var(--line)",
    borderRadius: "6px",
    padding: "2px 8px",
    background: "var(--background)",
    color: "inherit",
    font: "inherit",
    cursor: "pointer",
  });
  element.addEventListener("click", act);
  return element;
}
