import { expect, test, vi } from "vitest";
import { SourceError } from "../source";
import { Updates } from "./updates";

/** An update that the test ends when it likes. */
function pending() {
  let [resolve, reject]: [() => void, (problem: Error) => void] = [() => {}, () => {}];
  const done = new Promise<void>((...ways) => {
    [resolve, reject] = ways;
  });
  return { show: vi.fn((_: AbortSignal) => done), resolve, reject };
}

test("a newer update aborts the older, and both resolve when the newer is there", async () => {
  const updates = new Updates(() => {});
  const [older, newer] = [pending(), pending()];
  const done: string[] = [];
  const both = [
    updates.begin(older.show).then(() => done.push("older")),
    updates.begin(newer.show).then(() => done.push("newer")),
  ];
  expect(older.show.mock.calls[0]?.[0].aborted).toBe(true);
  expect(updates.signal.aborted).toBe(false);
  older.resolve();
  await new Promise((resolve) => setTimeout(resolve));
  expect(done).toEqual([]);
  newer.resolve();
  await Promise.all(both);
  expect(done.sort()).toEqual(["newer", "older"]);
});

test("only what goes wrong in the newest update is said", async () => {
  const fail = vi.fn();
  const updates = new Updates(fail);
  const [older, newer] = [pending(), pending()];
  const both = [updates.begin(older.show), updates.begin(newer.show)];
  older.reject(new Error("overtaken"));
  newer.reject(new SourceError("gone", "", "UnknownTrace", 404));
  await Promise.all(both);
  expect(fail.mock.calls.map(([problem]) => problem.message)).toEqual(["gone"]);
});

test("a request that was aborted is no failure", async () => {
  const fail = vi.fn();
  const updates = new Updates(fail);
  await updates.begin(() => Promise.reject(new DOMException("", "AbortError")));
  expect(fail).not.toHaveBeenCalled();
});

test("an update resolves when the view goes, and its failure is nobody's", async () => {
  const fail = vi.fn();
  const updates = new Updates(fail);
  const last = pending();
  const done = updates.begin(last.show);
  updates.end();
  expect(last.show.mock.calls[0]?.[0].aborted).toBe(true);
  last.reject(new Error("too late"));
  await expect(done).resolves.toBeUndefined();
  expect(fail).not.toHaveBeenCalled();
});
