import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { requestOf } from "../request";
import { SourceError } from "../source";
import { Bar, computed, confirmed, opened, SETTINGS, serve } from "./workbench.fixture";

let bar: Bar;
beforeEach(() => {
  bar = new Bar();
});
afterEach(() => vi.unstubAllGlobals());

describe("the workbench", () => {
  test("starts with the first example of the usual model", async () => {
    serve();
    const bench = await opened(bar);
    expect(bench.name).toBe("cat");
    expect(bar.read()).toBe("model=builtin:gpt&text=the+cat+sat&at=L0H0");
  });

  test("opens a link: runs its input after a click and goes where it says", async () => {
    serve();
    const bench = await confirmed(await opened(bar, "#model=builtin:gpt&text=Hi&view=head&at=L1H3&by=words"));
    expect(bench.shown?.request?.text).toBe("Hi");
    expect(bench.selection).toMatchObject({ scale: "head", site: "L1", head: 3, heads: [3], by: "words" });
    expect(bench.form.draft.text).toBe("Hi");
  });

  test("going back undoes a change of the selection without another run", async () => {
    const asked = serve();
    const bench = await opened(bar);
    bench.select({ scale: "head" });
    bench.select({ form: "matrix" });
    bar.back();
    expect(bench.selection).toMatchObject({ scale: "head", form: "auto" });
    expect(computed(asked)).toHaveLength(1);
  });

  test("going back to another input shows its run, which the server holds", async () => {
    const asked = serve();
    const bench = await opened(bar);
    await bench.run(requestOf({ model: "builtin:gpt", text: "Another" }));
    bar.back();
    await vi.waitFor(() => expect(bench.shown?.request?.text).toBe("the cat sat"));
    expect(computed(asked)).toHaveLength(2);
    expect(bench.runs.map((run) => run.request.text)).toEqual(["the cat sat", "Another"]);
  });

  test("a trace that the server forgot is made once more", async () => {
    const asked = serve();
    const bench = await opened(bar);
    await bench.run(requestOf({ model: "builtin:gpt", text: "Another" }));
    bench.select({ scale: "head", site: "L1" });
    bench.viewFailed(new SourceError("gone", "", "UnknownTrace", 404));
    await vi.waitFor(() => expect(computed(asked)).toHaveLength(3));
    await vi.waitFor(() => expect(bench.requests.progress).toBeNull());
    expect(bench.selection).toMatchObject({ scale: "head", site: "L1" });
    expect(bench.viewProblem).toBeNull();
  });

  test("a run that fails leaves what was there", async () => {
    serve((url, body) =>
      url === "api/runs" && body.includes("bad")
        ? new Response('{"state":"failed","error":"InputError","message":"no","hint":"do"}\n')
        : null,
    );
    const bench = await opened(bar);
    await bench.run(requestOf({ model: "builtin:gpt", text: "bad" }));
    expect(bench.requests.problem).toMatchObject({ message: "no", hint: "do" });
    expect(bench.name).toBe("cat");
    expect(bar.entries).toHaveLength(1);
  });

  test("a run that fails leaves the form of its model, to try again", async () => {
    let isKnown = false;
    const whisper = () => ({ ...SETTINGS.models[0], name: "w", is_loaded: isKnown, kinds: isKnown ? ["audio"] : [] });
    serve((url) => {
      if (url === "api/settings") return Response.json({ ...SETTINGS, models: [...SETTINGS.models, whisper()] });
      if (url !== "api/runs") return null; // also where it is only looked up
      isKnown = true; // it was loaded for the run
      return new Response('{"state":"failed","error":"InputError","message":"too long","hint":""}\n');
    });
    const bench = await confirmed(await opened(bar, "#model=w&media=preset:tone"));
    await vi.waitFor(() => expect(bench.form.model?.kinds).toEqual(["audio"]));
    expect(bench.requests.problem).toMatchObject({ message: "too long" });
    expect(bench.form.draft).toMatchObject({ form: "audio", media: "preset:tone" });
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
    const bench = await opened(bar);
    const running = bench.run(requestOf({ model: "builtin:gpt", text: "slow" }));
    expect(bench.isReady).toBe(false);
    bench.requests.cancel();
    await running;
    expect(bench.requests.wasCancelled).toBe(true);
    expect(bench.requests.progress).toBeNull();
  });

  test("a link to an input that was kept elsewhere says so", async () => {
    serve();
    const bench = await opened(bar, "#model=builtin:gpt&kept=nothere");
    expect(bench.requests.problem?.error).toBe("InputNotInLink");
  });

  test("scores give way to weights when tokens are left out, and that is said", async () => {
    serve();
    const bench = await confirmed(await opened(bar, "#model=builtin:gpt&text=Hi&view=head&what=scores"));
    bench.select({ hide: ["first"] });
    expect(bench.selection.what).toBe("pattern");
    expect(bench.toast).toContain("weights are shown");
  });
});
