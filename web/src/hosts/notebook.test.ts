import { expect, test, vi } from "vitest";
import { DEFAULT } from "../selection";
import { Kernel, kernelSource, type WidgetModel, widgetAddress } from "./notebook";

/** A widget's model, as far as we use it. */
function testModel(state: Record<string, unknown> = {}) {
  const hearing = new Map<string, Set<(...args: unknown[]) => void>>();
  const sent: { ask: string; key?: string }[] = [];
  const model = {
    get: (name: string) => state[name],
    set(name: string, value: unknown) {
      state[name] = value;
      for (const listener of hearing.get(`change:${name}`) ?? []) listener();
    },
    save_changes: vi.fn(),
    send: (content: { ask: string }) => sent.push(content),
    on: (name: string, heard: never) => hearing.set(name, (hearing.get(name) ?? new Set()).add(heard)),
    off: (name: string, heard: never) => hearing.get(name)?.delete(heard),
  };
  const say = (...args: unknown[]) => {
    for (const listener of hearing.get("msg:custom") ?? []) listener(...args);
  };
  return { model: model as unknown as WidgetModel, sent, say, hearing };
}

function message(props: object): DataView {
  const header = new TextEncoder().encode(JSON.stringify({ kind: "trace", props, arrays: [] }));
  // In the middle of a larger buffer, as messages arrive.
  const whole = new Uint8Array(13 + header.length);
  whole.set(new TextEncoder().encode("HSV1"), 5);
  new DataView(whole.buffer).setUint32(9, header.length, true);
  whole.set(header, 13);
  return new DataView(whole.buffer, 5);
}

test("a part is asked for by its key and read from the answer's buffer", async () => {
  const { model, sent, say } = testModel();
  const part = kernelSource(new Kernel(model)).part("trace");
  expect(sent).toMatchObject([{ key: "trace" }]);
  say({ answer: sent[0]?.ask }, [message({ model: "m" })]);
  expect((await part).props).toEqual({ model: "m" });
});

test("answers to another place that shows the same widget are not ours", async () => {
  const { model, sent, say } = testModel();
  const [first, other] = [new Kernel(model), new Kernel(model)].map((kernel) => kernelSource(kernel).part("trace"));
  expect(sent[0]?.ask).not.toBe(sent[1]?.ask);
  say({ answer: sent[1]?.ask }, [message({ model: "second" })]);
  say({ answer: sent[0]?.ask }, [message({ model: "first" })]);
  expect((await first)?.props).toEqual({ model: "first" });
  expect((await other)?.props).toEqual({ model: "second" });
});

test("what the kernel refuses is said in its words", async () => {
  const { model, sent, say } = testModel();
  const part = kernelSource(new Kernel(model)).part("layer/L9");
  say({ answer: sent[0]?.ask, problem: { error: "UnknownHeadError", message: "no L9", hint: "" } });
  await expect(part).rejects.toMatchObject({ message: "no L9", error: "UnknownHeadError" });
});

test("what is no longer wanted is not asked for, when it had to wait", async () => {
  const { model, sent, say } = testModel();
  const kernel = new Kernel(model);
  const first = [0, 1, 2].map((key) => kernel.ask({ key }));
  const stop = new AbortController();
  const dropped = kernel.ask({ key: "dropped" }, stop.signal);
  const last = kernel.ask({ key: "last" });
  expect(sent).toHaveLength(3);
  stop.abort();
  await expect(dropped).rejects.toMatchObject({ name: "AbortError" });
  say({ answer: sent[0]?.ask }, [message({})]);
  await first[0];
  expect(sent[3]).toMatchObject({ key: "last" });
  say({ answer: sent[3]?.ask }, [message({})]);
  await last;
});

test("the place is the widget's, and a change by Python is heard until the end", () => {
  const { model, hearing } = testModel({ _selection: { ...DEFAULT, scale: "head", site: "L3", head: 2, heads: [2] } });
  const address = widgetAddress(model);
  const moved = vi.fn();
  const stop = address.listen(moved);
  expect(address.read()).toBe("view=head&at=L3H2");
  address.write("view=head&at=L1H0&as=matrix", "keep");
  expect(model.get("_selection")).toMatchObject({ site: "L1", head: 0, form: "matrix" });
  expect(model.save_changes).toHaveBeenCalledOnce();
  expect(moved).toHaveBeenCalledOnce();
  stop();
  expect(hearing.get("change:_selection")?.size).toBe(0);
});

test("a place that ends hears no more", () => {
  const { model, hearing } = testModel();
  new Kernel(model).destroy();
  expect(hearing.get("msg:custom")?.size).toBe(0);
});

test("a kernel that never answers is said not to, and the next is asked", async () => {
  vi.useFakeTimers();
  const { model, sent } = testModel();
  const source = kernelSource(new Kernel(model));
  const parts = ["a", "b", "c", "d"].map((key) => source.part(key).catch((problem) => problem.message));
  expect(sent).toHaveLength(3);
  await vi.advanceTimersByTimeAsync(30_000);
  expect(await parts[0]).toBe("The kernel does not answer.");
  expect(sent).toHaveLength(4);
  vi.useRealTimers();
});
