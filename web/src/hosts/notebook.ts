/** A notebook: parts by messages to the kernel that holds the trace. One of each for every place a widget is shown in;
 *  what several places of one widget share is the widget's own state, in its model. */

import { atlasFrom, atlasParams, cleanedAtlas } from "../atlasSelection";
import type { Problem } from "../contract";
import { cleaned } from "../selection";
import { fragmentOf, selectionFrom, selectionParams } from "../selectionLink";
import { type Source, SourceError } from "../source";
import { decode } from "../wire";
import type { Address } from "./address";
import { partCache } from "./partCache";

/** What we use of a widget's model, as anywidget hands it over. */
export interface WidgetModel {
  get(name: string): unknown;
  set(name: string, value: unknown): void;
  save_changes(): void;
  send(content: unknown): void;
  on(name: string, heard: (...args: never[]) => void): void;
  off(name: string, heard: (...args: never[]) => void): void;
}

interface Answer {
  answer: string;
  problem?: Problem;
}

interface Waiting {
  resolve(bytes: ArrayBuffer): void;
  reject(problem: unknown): void;
}

/** The kernel answers one after the other: what waits here can still be taken back. */
const MOST_ASKED = 3;
/** A kernel that is busy answers late, one that was restarted never: after so many ms that is said. */
const PATIENCE = 30_000;

/** Questions to the kernel, answered in bytes. */
export class Kernel {
  readonly #name = Math.random().toString(36).slice(2);
  readonly #asked = new Map<string, Waiting>();
  #queue: (() => void)[] = [];
  #count = 0;

  constructor(private readonly model: WidgetModel) {
    model.on("msg:custom", this.#hear);
  }

  /** Without `patience`, the answer is waited for as long as it takes. */
  ask(question: object, signal?: AbortSignal, patience = 0): Promise<ArrayBuffer> {
    signal?.throwIfAborted();
    return new Promise((resolve, reject) => {
      const id = `${this.#name}:${this.#count++}`;
      const put = () => {
        this.#asked.set(id, { resolve, reject });
        this.model.send({ ask: id, ...question });
        if (patience) setTimeout(() => this.#giveUp(id), patience);
      };
      signal?.addEventListener("abort", () => {
        this.#queue = this.#queue.filter((message) => message !== put);
        reject(new DOMException("no longer wanted", "AbortError"));
      });
      this.#queue.push(put);
      this.#next();
    });
  }

  destroy() {
    this.model.off("msg:custom", this.#hear);
    this.#queue = [];
    this.#asked.clear();
  }

  #giveUp(id: string) {
    this.#asked
      .get(id)
      ?.reject(
        new SourceError(
          "The kernel does not answer.",
          "It may be busy: choose again when it is done. If it was restarted, run the cell again.",
          "Unreachable",
        ),
      );
    if (this.#asked.delete(id)) this.#next();
  }

  #next() {
    while (this.#queue.length && this.#asked.size < MOST_ASKED) this.#queue.shift()?.();
  }

  #hear = (content: Answer, buffers: DataView[] = []) => {
    const waiting = this.#asked.get(content?.answer);
    if (!waiting) return; // of another place that shows the same widget
    this.#asked.delete(content.answer);
    this.#next();
    const bytes = buffers[0];
    if (content.problem) {
      const { message, hint, error } = content.problem;
      waiting.reject(new SourceError(message, hint, error));
    } else if (bytes) {
      // A copy of its own: arrays in it begin at multiples of 8 bytes from its start.
      const whole = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength).slice();
      waiting.resolve(whole.buffer);
    } else {
      waiting.reject(new SourceError("The kernel sent an empty answer.", "Run the cell again.", "Unreachable"));
    }
  };
}

export function kernelSource(kernel: Kernel): Source {
  // The first question waits for a kernel that is busy, beside the picture of the view.
  const load = async (key: string, signal: AbortSignal) =>
    decode(await kernel.ask({ key }, signal, key === "saved" ? 0 : PATIENCE));
  return { isLive: true, part: partCache(load) };
}

/** The place that the widget is at, instead of a page's address: Python and all that show the widget share it. */
export function widgetAddress(model: WidgetModel): Address {
  return {
    read: () => {
      const selection = (model.get("_selection") ?? {}) as Record<string, unknown>;
      const params = isOfAtlas(selection) ? atlasParams(cleanedAtlas(selection)) : selectionParams(cleaned(selection));
      return fragmentOf(new URLSearchParams(params));
    },
    write(fragment) {
      const params = new URLSearchParams(fragment);
      const isAtlas = isOfAtlas((model.get("_selection") ?? {}) as Record<string, unknown>);
      model.set("_selection", isAtlas ? atlasFrom(params) : selectionFrom(params));
      model.save_changes();
    },
    listen(moved) {
      model.on("change:_selection", moved);
      return () => model.off("change:_selection", moved);
    },
  };
}

/** Whether a selection is that of an atlas. */
function isOfAtlas(selection: Record<string, unknown>): boolean {
  return "coordinates" in selection;
}
