import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Later } from "./later";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("only what was asked for last is done, after the pause", () => {
  const later = new Later();
  const [first, second] = [vi.fn(async () => {}), vi.fn(async () => {})];
  later.after(80, first);
  vi.advanceTimersByTime(79);
  later.after(80, second);
  vi.advanceTimersByTime(79);
  expect(second).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(second).toHaveBeenCalledOnce();
  expect(first).not.toHaveBeenCalled();
});

test("what is under way is aborted by what comes next, and by cancelling", () => {
  const later = new Later();
  const signals: AbortSignal[] = [];
  const act = async (signal: AbortSignal) => void signals.push(signal);
  later.after(0, act);
  vi.runAllTimers();
  later.after(0, act);
  vi.runAllTimers();
  expect(signals.map((signal) => signal.aborted)).toEqual([true, false]);
  later.cancel();
  expect(signals[1]?.aborted).toBe(true);
});

test("a failure is nobody's", async () => {
  const later = new Later();
  later.after(0, () => Promise.reject(new Error("gone")));
  await vi.runAllTimersAsync();
});
