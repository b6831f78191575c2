import { afterEach, expect, test, vi } from "vitest";
import type { RunEvent } from "../contract";
import { requestOf } from "../request";
import { run, settings, tokenIn } from "./servedPage";

const request = requestOf({ model: "m", text: "a" });
afterEach(() => vi.unstubAllGlobals());

function answer(body: string | ReadableStream, status = 200, headers: Record<string, string> = {}) {
  vi.stubGlobal("fetch", async () => new Response(body, { status, headers }));
}

function pieces(...texts: string[]): ReadableStream {
  return new ReadableStream({
    start(controller) {
      for (const text of texts) controller.enqueue(new TextEncoder().encode(text));
      controller.close();
    },
  });
}

test("a run is heard line by line, wherever the pieces break", async () => {
  answer(
    pieces('{"state":"queued","ahead":2}\n{"sta', 'te":"running","layer":1}\n', '{"state":"done","trace":"t1"}\n'),
  );
  const heard: string[] = [];
  const id = await run(request, (event: RunEvent) => heard.push(event.state), new AbortController().signal);
  expect(id).toBe("t1");
  expect(heard).toEqual(["queued", "running", "done"]);
});

test("a failed run gives its reason and its hint", async () => {
  answer(pieces('{"state":"failed","error":"InputError","message":"too long","hint":"cut it"}\n'));
  const failed = run(request, () => {}, new AbortController().signal);
  await expect(failed).rejects.toMatchObject({ message: "too long", hint: "cut it", error: "InputError" });
});

test("a run that ends without an end is said to be broken off", async () => {
  answer(pieces('{"state":"running"}\n'));
  await expect(run(request, () => {}, new AbortController().signal)).rejects.toMatchObject({ error: "Unreachable" });
});

test("a full queue says when to come back", async () => {
  answer('{"error":"QueueFull","message":"8 runs are waiting"}', 429, { "retry-after": "7" });
  await expect(settings()).rejects.toMatchObject({ status: 429, wait: 7, message: "8 runs are waiting" });
});

test("whoever is signed out is told how to get in", async () => {
  answer("{}", 401);
  await expect(settings()).rejects.toMatchObject({ status: 401, hint: expect.stringContaining("paste it") });
});

test("a token is found in an address, or is the text itself", () => {
  expect(tokenIn(" http://127.0.0.1:8765/?token=ab-C_1&text=x ")).toBe("ab-C_1");
  expect(tokenIn("ab-C_1\n")).toBe("ab-C_1");
  expect(tokenIn("  ")).toBe("");
});

test("a server that is gone is said to be gone", async () => {
  vi.stubGlobal("fetch", async () => {
    throw new TypeError("failed to fetch");
  });
  await expect(settings()).rejects.toMatchObject({ status: 0, error: "Unreachable" });
});
