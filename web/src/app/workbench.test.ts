import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Settings } from "../contract";
import type { Address } from "./address";
import { requestOf } from "./link";
import { trace } from "./trace.fixture";
import { Workbench } from "./workbench.svelte";

const SETTINGS: Settings = {
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
      presets: [{ name: "cat", look_for: "", text: "the cat sat", pair: null, target: null, media: null }],
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
};

function message(props: object): ArrayBuffer {
  const header = new TextEncoder().encode(JSON.stringify({ kind: "x", props, arrays: [] }));
  const bytes = new Uint8Array(8 + header.length);
  bytes.set(new TextEncoder().encode("HSV1"));
  new DataView(bytes.buffer).setUint32(4, header.length, true);
  bytes.set(header, 8);
  return bytes.buffer;
}

/** A server that runs everything at once, and says what it was asked. */
function serve(more: (url: string, body: string) => Response | Promise<Response> | null = () => null) {
  const asked: string[] = [];
  vi.stubGlobal("fetch", async (url: string, options?: RequestInit) => {
    const body = String(options?.body ?? "");
    asked.push(`${url} ${body}`.trim());
    const special = await more(url, body);
    if (special) return special;
    if (url === "api/settings") return Response.json(SETTINGS);
    if (url === "api/runs") return new Response(`{"state":"done","trace":"t${JSON.parse(body).text.length}"}\n`);
    if (url.endsWith("/trace")) return new Response(message(trace()));
    return new Response(message({ heads: [], methods: [] }));
  });
  return asked;
}

class Bar implements Address {
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
}

let bar: Bar;
beforeEach(() => {
  bar = new Bar();
});
afterEach(() => vi.unstubAllGlobals());

async function opened(fragment = ""): Promise<Workbench> {
  bar.entries = [fragment];
  const bench = new Workbench({ kind: "page" }, bar);
  await vi.waitFor(() => expect(bench.shown || bench.problem).toBeTruthy());
  return bench;
}

describe("the workbench", () => {
  test("starts with the first example of the usual model", async () => {
    serve();
    const bench = await opened();
    expect(bench.name).toBe("cat");
    expect(bar.read()).toBe("model=builtin:gpt&text=the+cat+sat&at=L0H0");
  });

  test("opens a link: runs its input and goes where it says", async () => {
    serve();
    const bench = await opened("#model=builtin:gpt&text=Hi&view=head&at=L1H3&by=words");
    expect(bench.shown?.request?.text).toBe("Hi");
    expect(bench.selection).toMatchObject({ scale: "head", site: "L1", head: 3, shown: [3], by: "words" });
    expect(bench.draft.text).toBe("Hi");
  });

  test("going back undoes a change of the selection without another run", async () => {
    const asked = serve();
    const bench = await opened();
    bench.select({ scale: "head" });
    bench.select({ form: "matrix" });
    bar.back();
    expect(bench.selection).toMatchObject({ scale: "head", form: "auto" });
    expect(asked.filter((one) => one.startsWith("api/runs"))).toHaveLength(1);
  });

  test("going back to another input runs that again", async () => {
    serve();
    const bench = await opened();
    await bench.run(requestOf({ model: "builtin:gpt", text: "Another" }));
    bar.back();
    await vi.waitFor(() => expect(bench.shown?.request?.text).toBe("the cat sat"));
    expect(bench.runs.map((one) => one.request.text)).toEqual(["the cat sat", "Another"]);
  });

  test("a trace that the server forgot is made once more", async () => {
    const asked = serve();
    const bench = await opened();
    bench.select({ scale: "head", site: "L1" });
    const { SourceError } = await import("../source");
    bench.viewFailed(new SourceError("gone", "", "UnknownTrace", 404));
    await vi.waitFor(() => expect(asked.filter((one) => one.startsWith("api/runs"))).toHaveLength(2));
    await vi.waitFor(() => expect(bench.progress).toBeNull());
    expect(bench.selection).toMatchObject({ scale: "head", site: "L1" });
    expect(bench.viewProblem).toBeNull();
  });

  test("a run that fails leaves what was there", async () => {
    serve((url, body) =>
      url === "api/runs" && body.includes("bad")
        ? new Response('{"state":"failed","error":"InputError","message":"no","hint":"do"}\n')
        : null,
    );
    const bench = await opened();
    await bench.run(requestOf({ model: "builtin:gpt", text: "bad" }));
    expect(bench.problem).toMatchObject({ message: "no", hint: "do" });
    expect(bench.name).toBe("cat");
    expect(bar.entries).toHaveLength(1);
  });

  test("a run that fails leaves the form of its model, to try again", async () => {
    let isKnown = false;
    const whisper = () => ({ ...SETTINGS.models[0], name: "w", is_loaded: isKnown, kinds: isKnown ? ["audio"] : [] });
    serve((url) => {
      if (url === "api/settings") return Response.json({ ...SETTINGS, models: [...SETTINGS.models, whisper()] });
      if (url !== "api/runs") return null;
      isKnown = true; // it was loaded for the run
      return new Response('{"state":"failed","error":"InputError","message":"too long","hint":""}\n');
    });
    const bench = await opened("#model=w&media=preset:tone");
    await vi.waitFor(() => expect(bench.model?.kinds).toEqual(["audio"]));
    expect(bench.problem).toMatchObject({ message: "too long" });
    expect(bench.draft).toMatchObject({ form: "audio", media: "preset:tone" });
  });

  test("cancelling stops the run and says so", async () => {
    serve((url, body) => (url === "api/runs" && body.includes("slow") ? new Promise<Response>(() => {}) : null));
    const original = fetch;
    vi.stubGlobal("fetch", (url: string, options?: RequestInit) =>
      Promise.race([
        original(url, options),
        new Promise((_, reject) =>
          options?.signal?.addEventListener("abort", () => reject(new DOMException("", "AbortError"))),
        ),
      ]),
    );
    const bench = await opened();
    const running = bench.run(requestOf({ model: "builtin:gpt", text: "slow" }));
    expect(bench.isReady).toBe(false);
    bench.cancel();
    await running;
    expect(bench.wasCancelled).toBe(true);
    expect(bench.progress).toBeNull();
  });

  test("a link to an input that was kept elsewhere says so", async () => {
    serve();
    const bench = await opened("#model=builtin:gpt&kept=nothere");
    expect(bench.problem?.error).toBe("InputNotInLink");
  });

  test("scores give way to weights when tokens are left out, and that is said", async () => {
    serve();
    const bench = await opened("#model=builtin:gpt&text=Hi&view=head&what=scores");
    bench.select({ hide: ["first"] });
    expect(bench.selection.what).toBe("pattern");
    expect(bench.toast).toContain("weights are shown");
  });
});
