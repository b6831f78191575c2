/** A server and an address bar for tests of the workbench. */

import { expect, vi } from "vitest";
import type { Settings } from "../contract";
import { trace } from "../data/trace.fixture";
import type { Address } from "../hosts/address";
import { Workbench } from "./workbench.svelte";

export const SETTINGS: Settings = {
  version: "0",
  models: [
    {
      name: "builtin:gpt",
      about: "",
      is_loaded: true,
      kinds: ["text"],
      shape: "2 × 4",
      covers: "",
      coverage: "",
      max_tokens: 512,
      writes: true,
      languages: [],
      tasks: [],
      presets: [{ name: "cat", look_for: "", text: "the cat sat", pair: null, target: null, media: null, sort: "" }],
    },
  ],
  allows_hub: false,
  allows_folders: false,
  saves_models: false,
  max_characters: 1000,
  max_turns: 10,
  default_model: "builtin:gpt",
  patterns: [],
  use_cases: [],
  max_media_bytes: 0,
  corpus: "",
  samples: [],
  is_corpus_builtin: false,
  sweeps: [],
  atlases: [],
  max_atlas_points: 20000,
};

export function message(props: object): ArrayBuffer {
  const header = new TextEncoder().encode(JSON.stringify({ kind: "x", props, arrays: [] }));
  const bytes = new Uint8Array(8 + header.length);
  bytes.set(new TextEncoder().encode("HSV1"));
  new DataView(bytes.buffer).setUint32(4, header.length, true);
  bytes.set(header, 8);
  return bytes.buffer;
}

/** A server that runs everything at once, keeps it, and says what it was asked. */
export function serve(more: (url: string, body: string) => Response | Promise<Response> | null = () => null) {
  const asked: string[] = [];
  const kept = new Set<string>();
  vi.stubGlobal("fetch", async (url: string, options?: RequestInit) => {
    const body = String(options?.body ?? "");
    asked.push(`${url} ${body}`.trim());
    const special = await more(url, body);
    if (special) return special;
    if (url === "api/settings") return Response.json(SETTINGS);
    if (/^api\/(runs|tasks)\b/.test(url)) {
      const [path] = url.split("?");
      if (url.includes("only_kept") && !kept.has(`${path} ${body}`)) return new Response('{"state":"absent"}\n');
      kept.add(`${path} ${body}`);
      const id = path === "api/runs" ? `"trace":"t${JSON.parse(body).text.length}"` : '"result":"r"';
      return new Response(`{"state":"done",${id}}\n`);
    }
    if (/\/trace(\?|$)/.test(url)) return new Response(message(trace()));
    return new Response(message({ heads: [], methods: [] }));
  });
  return asked;
}

export class Bar implements Address {
  entries = [""];
  at = 0;
  #moved = () => {};
  read = () => this.entries[this.at] ?? "";
  write(fragment: string, history: "keep" | "replace") {
    if (history === "replace") this.entries[this.at] = fragment;
    else if (this.read() !== fragment) this.entries.splice(++this.at, Number.POSITIVE_INFINITY, fragment);
  }
  listen(moved: () => void) {
    this.#moved = moved;
    return () => {};
  }
  back() {
    this.at--;
    this.#moved();
  }
  /** Somebody else changes the address. */
  go(fragment: string) {
    this.write(fragment, "keep");
    this.#moved();
  }
}

/** A page that was opened at a fragment, once it shows something or waits. */
export async function opened(bar: Bar, fragment = ""): Promise<Workbench> {
  bar.entries = [fragment];
  const bench = new Workbench({ kind: "page" }, bar);
  await vi.waitFor(() => expect(bench.shown || bench.requests.problem || bench.links.pending).toBeTruthy());
  return bench;
}

/** Click Run, as soon as that is possible, and wait for what comes of it. */
export async function confirmed(bench: Workbench): Promise<Workbench> {
  await vi.waitFor(() => expect(bench.links.canConfirm).toBe(true), 5000);
  bench.links.confirm();
  await vi.waitFor(() =>
    expect(bench.requests.progress === null && (bench.shown || bench.requests.problem)).toBeTruthy(),
  );
  return bench;
}

/** What the server was asked to compute: a run, a task, a model. */
export function computed(asked: string[]): string[] {
  return asked.filter((call) => /^api\/(runs|tasks|models)\b/.test(call) && !call.includes("only_kept"));
}
