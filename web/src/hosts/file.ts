/** A saved file: its parts are in the page, each gzipped, as base64 in a script element of a type no browser runs. */

import type { SavedProps } from "../contract";
import { type Source, SourceError } from "../source";
import { decode, type Part } from "../wire";
import { partCache } from "./partCache";

/** The parts that lie in an element, or, when it holds none, anywhere in its page. */
export function fileSource(root: Element): Source {
  const own = root.querySelectorAll<HTMLScriptElement>("script[data-key]");
  const elements = own.length ? own : root.ownerDocument.querySelectorAll<HTMLScriptElement>("script[data-key]");
  const scripts = new Map([...elements].map((script) => [script.dataset.key ?? "", script]));
  return { ...inlineSource((key) => scripts.get(key)?.textContent ?? null), has: (key) => scripts.has(key) };
}

export function inlineSource(text: (key: string) => string | null): Source {
  const load = async (key: string): Promise<Part<unknown>> => {
    const content = text(key);
    if (content === null) {
      throw new SourceError(
        `This saved page does not hold ${described(key)}.`,
        "It was left out to keep the file small. Open the input in the workbench to see it, or save a page of that place.",
        "NotSaved",
      );
    }
    return decode(await unpacked(content));
  };
  return { isLive: false, part: partCache(load) };
}

/** What the file opens with. */
export async function saved(source: Source): Promise<SavedProps> {
  return (await source.part<SavedProps>("saved")).props;
}

/** The file again, as it was opened but for the place this one opens at. */
export function copyOfPage(root: HTMLElement, opensAt: string): Blob {
  const page = root.ownerDocument.documentElement;
  const copy = page.cloneNode(true) as HTMLElement;
  for (const unpacked of copy.querySelectorAll("[data-unpacked]")) unpacked.remove(); // by the loader, from what stays
  const places = [...copy.querySelectorAll<HTMLElement>("[data-headscope]")];
  for (const place of places) {
    for (const child of [...place.children]) if (!child.matches("script[data-key]")) child.remove();
    delete place.dataset.ready;
    delete place.dataset.theme;
  }
  const own = places[[...page.querySelectorAll("[data-headscope]")].indexOf(root)];
  if (own) own.dataset.opensAt = opensAt;
  return new Blob([`<!doctype html>\n${copy.outerHTML}\n`], { type: "text/html" });
}

async function unpacked(base64: string): Promise<ArrayBuffer> {
  const text = atob(base64.trim());
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

function described(key: string): string {
  const [path = "", options = ""] = key.split("?");
  const [kind, place = ""] = path.split("/");
  const what = new URLSearchParams(options).get("what");
  if (kind === "layer") return `${what && what !== "pattern" ? `the ${what} of ` : ""}layer ${place}`;
  if (kind === "row") return `the exact numbers of this token in ${place}`;
  if (kind === "neuron" || kind === "vectors") return `the neurons of ${place}`;
  if (kind === "window") return `the whole matrix of ${place}`;
  return `“${key}”`;
}
