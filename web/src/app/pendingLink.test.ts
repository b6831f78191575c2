import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { requestOf } from "../request";
import { SourceError } from "../source";
import { requestFrom } from "./input/draft";
import { Bar, computed, confirmed, opened, SETTINGS, serve } from "./workbench.fixture";

const LINK = "#model=builtin:gpt&text=Hi&edit=silence('L0H1')&view=head&at=L1H3";

let bar: Bar;
beforeEach(() => {
  bar = new Bar();
});
afterEach(() => vi.unstubAllGlobals());

describe("a link to a run that the server does not hold", () => {
  test("waits for a click and fills in the form", async () => {
    const asked = serve();
    const bench = await opened(bar, LINK);
    expect(bench.links.pending?.missing).toEqual(["run"]);
    expect(bench.form.draft).toMatchObject({ model: "builtin:gpt", text: "Hi" });
    expect(bench.shown).toBeNull();
    expect(bench.isReady).toBe(true);
    expect(computed(asked)).toEqual([]);
  });

  test("is run by the click with everything it asks for", async () => {
    const asked = serve();
    const bench = await confirmed(await opened(bar, `${LINK}&with=${encodeURIComponent("text=Ho")}`));
    expect(bench.requests.problem).toBeNull();
    expect(bench.shown?.request).toMatchObject({ text: "Hi", edits: ["silence('L0H1')"] });
    expect(bench.other?.request).toMatchObject({ text: "Ho" });
    expect(bench.selection).toMatchObject({ scale: "head", site: "L1", head: 3 });
    expect(bench.links.pending).toBeNull();
    expect(computed(asked).filter((call) => call.startsWith("api/runs")).length).toBeGreaterThanOrEqual(2);
  });

  test("is run with its edits by the form too, as long as nothing was changed in it", async () => {
    serve();
    const bench = await opened(bar, LINK);
    expect(bench.links.isInForm).toBe(true);
    bench.form.draft.text = "Hello";
    expect(bench.links.isInForm).toBe(false);
    await bench.runTyped(requestFrom(bench.form.draft));
    expect(bench.shown?.request).toMatchObject({ text: "Hello", edits: [] });
    expect(bench.links.pending).toBeNull();
  });

  test("cannot be confirmed in its first moment", async () => {
    const asked = serve();
    const bench = await opened(bar, LINK);
    expect(bench.links.canConfirm).toBe(false);
    bench.links.confirm();
    expect(computed(asked)).toEqual([]);
    expect(bench.links.pending).not.toBeNull();
  });

  test("cannot be confirmed in its first moment when it takes the place of another either", async () => {
    const asked = serve();
    const bench = await opened(bar, "#model=/models/one");
    await vi.waitFor(() => expect(bench.links.canConfirm).toBe(true), 5000);
    bar.go("model=/models/two");
    expect(bench.links.pending?.link.model).toBe("/models/two");
    bench.links.confirm();
    expect(computed(asked)).toEqual([]);
  });

  test("removes the picture of another run when the address changes", async () => {
    const asked = serve();
    const bench = await opened(bar);
    expect(bench.shown).not.toBeNull();
    bar.go("model=builtin:gpt&text=Elsewhere");
    await vi.waitFor(() => expect(bench.links.pending).not.toBeNull());
    expect(bench.shown).toBeNull();
    expect(bench.form.draft.text).toBe("Elsewhere");
    expect(computed(asked)).toHaveLength(1); // the start example
    bar.back();
    await vi.waitFor(() => expect(bench.shown?.request?.text).toBe("the cat sat"));
    expect(bench.links.pending).toBeNull();
  });

  test("gives way to a link whose input is not in it", async () => {
    serve();
    const bench = await opened(bar, LINK);
    bar.go("model=builtin:gpt&kept=nothere");
    expect(bench.links.pending).toBeNull();
    expect(bench.requests.problem?.error).toBe("InputNotInLink");
  });

  test("says at once that it may not be run", async () => {
    const asked = serve((url) =>
      url.startsWith("api/runs")
        ? Response.json({ error: "HubNotAllowed", message: "no hub", hint: "" }, { status: 403 })
        : null,
    );
    const bench = await opened(bar, "#model=someone/model&text=Hi");
    expect(bench.requests.problem?.message).toBe("no hub");
    expect(computed(asked)).toEqual([]);
  });
});

describe("a link to a run that the server holds", () => {
  test("is shown without a click", async () => {
    const asked = serve();
    const first = await confirmed(await opened(bar, LINK));
    first.destroy();
    const before = computed(asked).length;
    const bench = await opened(bar, LINK);
    expect(bench.shown?.request).toMatchObject({ text: "Hi", edits: ["silence('L0H1')"] });
    expect(bench.links.pending).toBeNull();
    expect(computed(asked)).toHaveLength(before);
  });

  test("says what else it asks for, and computes that after a click", async () => {
    const asked = serve();
    (await confirmed(await opened(bar, "#model=builtin:gpt&text=Hi"))).destroy();
    const before = computed(asked).length;
    const bench = await opened(bar, "#model=builtin:gpt&text=Hi&with=text%3DHo&compare=side");
    expect(bench.shown?.request?.text).toBe("Hi");
    expect(bench.links.pending?.missing).toEqual(["compare"]);
    expect(bar.read()).toContain("with=text%3DHo");
    expect(computed(asked)).toHaveLength(before);
    await confirmed(bench);
    await vi.waitFor(() => expect(bench.other?.request?.text).toBe("Ho"));
    expect(bench.links.pending).toBeNull();
  });

  test("has its tasks computed only after the user asks for them", async () => {
    const asked = serve();
    (await confirmed(await opened(bar, "#model=builtin:gpt&text=Hi"))).destroy();
    const bench = await opened(bar, "#model=builtin:gpt&text=Hi&relevance=1:5");
    const task = () => bench.shown?.source.task?.("relevance", { position: 1 }, () => {}, new AbortController().signal);
    await expect(task()).rejects.toMatchObject({ error: "NotComputed" });
    expect(bench.links.pending?.missing).toEqual(["relevance"]);
    expect(computed(asked).filter((call) => call.startsWith("api/tasks"))).toEqual([]);
    bench.select({ relevance: "2:7" }); // a click on a prediction
    await task();
    expect(bench.links.pending).toBeNull();
    expect(computed(asked).filter((call) => call.startsWith("api/tasks"))).toHaveLength(1);
  });

  test("no longer asks for what was dismissed", async () => {
    const asked = serve();
    (await confirmed(await opened(bar, "#model=builtin:gpt&text=Hi"))).destroy();
    const before = computed(asked).length;
    const more = `view=activations&relevance=1:5&with=${encodeURIComponent("text=Ho")}`;
    const bench = await opened(bar, `#model=builtin:gpt&text=Hi&${more}`);
    for (const name of ["relevance", "activations"]) {
      const task = bench.shown?.source.task?.(name, {}, () => {}, new AbortController().signal);
      await expect(task).rejects.toMatchObject({ error: "NotComputed" });
    }
    expect(bench.links.pending?.missing).toEqual(["compare", "relevance", "activations"]);
    bench.links.dismiss();
    expect(bench.links.pending).toBeNull();
    expect(bench.selection).toMatchObject({ scale: "model", relevance: "", compare: "off" });
    expect(bar.read()).not.toMatch(/view|relevance|with/);
    expect(computed(asked)).toHaveLength(before);
  });

  test("waits for a click where the server has forgotten it since", async () => {
    let isForgotten = false;
    const asked = serve((url) =>
      isForgotten && url.includes("only_kept") ? new Response('{"state":"absent"}\n') : null,
    );
    (await confirmed(await opened(bar, "#model=builtin:gpt&text=Hi"))).destroy();
    const before = computed(asked).length;
    const bench = await opened(bar, "#model=builtin:gpt&text=Hi&view=head");
    isForgotten = true;
    bench.viewFailed(new SourceError("gone", "", "UnknownTrace", 404));
    await vi.waitFor(() => expect(bench.links.pending?.missing).toEqual(["run"]));
    expect(bench.links.pending?.link.selection.scale).toBe("head");
    expect(computed(asked)).toHaveLength(before);
  });
});

describe("an address that changes to tasks of the run on screen", () => {
  test("does not have them computed, though the user ran it", async () => {
    const asked = serve();
    const bench = await opened(bar);
    await bench.run(requestOf({ model: "builtin:gpt", text: "Mine" }));
    bar.go(`${bar.read()}&relevance=1:5`);
    expect(bench.selection.relevance).toBe("1:5");
    const task = bench.shown?.source.task?.("relevance", {}, () => {}, new AbortController().signal);
    await expect(task).rejects.toMatchObject({ error: "NotComputed" });
    expect(computed(asked).filter((call) => call.startsWith("api/tasks"))).toEqual([]);
  });
});

describe("what is run without a click", () => {
  test("is the start example, also by a link that names it", async () => {
    const asked = serve();
    const bench = await opened(bar, "#model=builtin:gpt&text=the+cat+sat&at=L1H0");
    expect(bench.shown?.request?.text).toBe("the cat sat");
    expect(computed(asked)).toHaveLength(1);
  });

  test("is not the start example with an edit, cut, continued or of another model", async () => {
    const more = ["edit=silence('L0H1')", "cut=1", "write=3"].map((option) => `#model=builtin:gpt&${option}`);
    for (const start of [...more, "#model=another"]) {
      const asked = serve();
      const bench = await opened(new Bar(), `${start}&text=the+cat+sat`);
      expect(bench.links.pending?.missing).toEqual(["run"]);
      expect(computed(asked)).toEqual([]);
      bench.destroy();
    }
  });

  test("is not another model, which a link has loaded after a click", async () => {
    let isLoaded = false;
    const other = () => ({
      ...SETTINGS.models[0],
      name: "/models/tiny",
      is_loaded: isLoaded,
      presets: isLoaded ? SETTINGS.models[0]?.presets : [],
    });
    const asked = serve((url) => {
      if (url === "api/settings") return Response.json({ ...SETTINGS, models: [...SETTINGS.models, other()] });
      if (url !== "api/models") return null;
      isLoaded = true;
      return Response.json(other());
    });
    const bench = await opened(bar, "#model=/models/tiny");
    expect(bench.links.pending?.link.request).toBeNull();
    expect(computed(asked)).toEqual([]);
    await vi.waitFor(() => expect(bench.links.canConfirm).toBe(true), 5000);
    bench.links.confirm();
    await vi.waitFor(() => expect(bench.shown?.request?.model).toBe("/models/tiny"));
    expect(computed(asked).map((call) => call.split(" ")[0])).toEqual(["api/models", "api/runs"]);
  });

  test("is not a link that comes while a model is being loaded", async () => {
    let isLoaded = () => {};
    const asked = serve((url) => {
      if (url !== "api/models") return null;
      const model = Response.json({ ...SETTINGS.models[0], name: "/models/one" });
      return new Promise((resolve) => {
        isLoaded = () => resolve(model);
      });
    });
    const bench = await opened(bar, "#model=/models/one");
    await vi.waitFor(() => expect(bench.links.canConfirm).toBe(true), 5000);
    bench.links.confirm();
    await vi.waitFor(() => expect(bench.requests.progress?.state).toBe("loading"));
    bar.go("model=/models/two");
    isLoaded();
    await new Promise((resolve) => setTimeout(resolve));
    expect(bench.links.pending?.link.model).toBe("/models/two");
    expect(bench.requests.progress).toBeNull();
    expect(computed(asked)).toEqual(['api/models {"name":"/models/one"}']);
  });
});
