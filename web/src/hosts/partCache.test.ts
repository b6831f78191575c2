import { expect, test, vi } from "vitest";
import type { Part } from "../wire";
import { partCache } from "./partCache";

function part(bytes: number): Part<unknown> {
  const values = new Uint8Array(bytes);
  return { kind: "layer", props: {}, arrays: { weights: { dtype: "uint8", shape: [bytes], code: "linear", values } } };
}

test("what was asked for before is given again, and once when asked for twice", async () => {
  const load = vi.fn(async () => part(8));
  const get = partCache(load);
  await Promise.all([get("a"), get("a")]);
  await get("a");
  expect(load).toHaveBeenCalledTimes(1);
});

test("what was not used for longest goes first when there is too much", async () => {
  const load = vi.fn(async () => part(8));
  const get = partCache(load, 16);
  await get("a");
  await get("b");
  await get("a");
  await get("c");
  await get("a");
  expect(load).toHaveBeenCalledTimes(3);
  await get("b");
  expect(load).toHaveBeenCalledTimes(4);
});

test("the request is stopped when nobody waits for it any more, not before", async () => {
  let stopped = false;
  const get = partCache((_, signal) => {
    signal.addEventListener("abort", () => {
      stopped = true;
    });
    return new Promise(() => {});
  });
  const [first, other] = [new AbortController(), new AbortController()];
  const waits = [get("a", first.signal), get("a", other.signal)].map((wait) => wait.catch((problem) => problem.name));
  first.abort();
  expect(await waits[0]).toBe("AbortError");
  expect(stopped).toBe(false);
  other.abort();
  expect(await waits[1]).toBe("AbortError");
  expect(stopped).toBe(true);
});

test("a failure is not remembered", async () => {
  let count = 0;
  const get = partCache(async () => {
    if (count++ === 0) throw new Error("no");
    return part(1);
  });
  await expect(get("a")).rejects.toThrow("no");
  await expect(get("a")).resolves.toBeTruthy();
});
