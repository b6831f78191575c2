import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Bar, computed, confirmed, message, opened, serve } from "../workbench.fixture";

const ALL = ["L0H0", "L0H1"];

let bar: Bar;
beforeEach(() => {
  bar = new Bar();
});
afterEach(() => vi.unstubAllGlobals());

/** A server that finds every head that it is asked about mixed. */
function serveTests() {
  let heads: string[] = [];
  const asked = serve((url, body) => {
    if (url.startsWith("api/tasks") && body.includes('"trust"')) {
      const { head } = JSON.parse(body).options;
      heads = head ? [head] : ALL;
    }
    if (!url.startsWith("api/results")) return null;
    const badges = heads.map((head) => ({ head, verdict: "mixed", sentence: "", figures: {} }));
    return new Response(message({ answer: "'a'", same_output: 0.05, n_permutations: 10, badges }));
  });
  return () => computed(asked).filter((call) => call.includes('"trust"'));
}

test("nothing is tested until somebody asks, whatever the link says", async () => {
  const asked = serveTests();
  const bench = await confirmed(await opened(bar, "#model=builtin:gpt&text=Hi&view=head&at=L0H1"));
  expect(bench.trust.tested).toBeNull();
  expect(asked()).toEqual([]);
});

test("a test of one head gives its badge, one of all heads every badge", async () => {
  const asked = serveTests();
  const bench = await opened(bar);
  await bench.trust.test("L0H1");
  expect(bench.trust.badge("L0H1")?.verdict).toBe("mixed");
  expect(bench.trust.badge("L0H0")).toBeUndefined();
  await bench.trust.test();
  expect(ALL.every((head) => bench.trust.badge(head))).toBe(true);
  expect(asked()).toHaveLength(2);
  expect(bench.trust.progress).toBeNull();
});

test("an edited run has badges of its own, and those of the run before come back with it", async () => {
  const asked = serveTests();
  const bench = await opened(bar);
  await bench.trust.test("L0H1");
  bench.edit("silence('L0H0')");
  await vi.waitFor(() => expect(bench.shown?.request?.edits).toEqual(["silence('L0H0')"]));
  expect(bench.trust.tested).toBeNull();
  bar.back();
  await vi.waitFor(() => expect(bench.shown?.request?.edits).toEqual([]));
  expect(bench.trust.badge("L0H1")).toBeDefined();
  expect(asked()).toHaveLength(1);
});

test("what the server refuses is said", async () => {
  serve((url, body) =>
    url.startsWith("api/tasks") && body.includes('"trust"')
      ? new Response('{"state":"failed","error":"InputError","message":"too short","hint":""}\n')
      : null,
  );
  const bench = await opened(bar);
  await bench.trust.test();
  expect(bench.trust.problem?.message).toBe("too short");
  expect(bench.trust.tested).toBeNull();
});

test("a test that is stopped says so, and leaves the earlier badges", async () => {
  serveTests();
  const bench = await opened(bar);
  await bench.trust.test("L0H1");
  const original = fetch;
  vi.stubGlobal("fetch", (url: string, options?: RequestInit) =>
    url.startsWith("api/tasks")
      ? new Promise((_, reject) =>
          options?.signal?.addEventListener("abort", () => reject(new DOMException("", "AbortError"))),
        )
      : original(url, options),
  );
  const testing = bench.trust.test();
  expect(bench.trust.progress?.state).toBe("queued");
  bench.trust.cancel();
  await testing;
  expect(bench.trust.wasStopped).toBe(true);
  expect(bench.trust.badge("L0H1")).toBeDefined();
});
