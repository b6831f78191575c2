import { describe, expect, test } from "vitest";
import { trace } from "../data/trace.fixture";
import { requestOf } from "../request";
import { DEFAULT, fitted, type Selection } from "../selection";
import { LONGEST_LINK, linkText, parseLink } from "./link";

const request = requestOf({ model: "builtin:gpt", text: "Jack & Jill = #1?\nпривет 🙂" });
const kept = new Map<string, string>();
const keep = (text: string) => {
  kept.set("x1", text);
  return "x1";
};
const recall = (name: string) => kept.get(name) ?? null;

describe("links", () => {
  test("hold only what differs from the default", () => {
    expect(linkText(requestOf({ model: "builtin:gpt", text: "Hi" }), DEFAULT, keep)).toBe("model=builtin:gpt&text=Hi");
  });

  test("hold the language and the task of a sound", () => {
    const sound = requestOf({ model: "m", media: "preset:tone", language: "fr", task: "translate" });
    const text = linkText(sound, DEFAULT, keep);
    expect(text).toBe("model=m&media=preset:tone&language=fr&task=translate");
    expect(parseLink(text, recall).request).toEqual(sound);
  });

  test("bring everything back", () => {
    const selection: Selection = {
      scale: "head",
      site: "cross.L1",
      head: 2,
      heads: [0, 2],
      average: true,
      form: "matrix",
      axis: "horizontal",
      what: "contribution",
      by: "words",
      hide: ["first", "special"],
      off: ["main:1", "main:3"],
      filter: "top",
      threshold: 0.2,
      mass: 0.35,
      top: 5,
      pair: "BA",
      token: { side: "key", index: 7 },
      thumbnails: "lines",
      sort: "induction",
      colour: "confidence",
      stream: "norm",
      whose: "B",
      step: null,
      least: 0.4,
      order: "token",
      against: 3,
      every: "mixed",
      fold: ["key", "weighted"],
      compare: "side",
      beside: "L2H1",
      find: '{"by":"pattern","pattern":"induction"}',
      direction: "to",
      arrows: true,
      rollout: false,
      relevance: "9:1234-77:attn",
      arcs: "A+AT",
    };
    const link = parseLink(`#${linkText(request, selection, keep)}`, recall);
    expect(link.request).toEqual(request);
    expect(link.selection).toEqual(selection);
  });

  test("carry what it is compared with, as what sets it apart", () => {
    const first = requestOf({ model: "m", text: "She sat.", pair: "b" });
    for (const other of [
      requestOf({ ...first, text: "He sat." }),
      requestOf({ ...first, model: "n&o" }),
      requestOf({ ...first, pair: null }),
      requestOf({ ...first, text: "x".repeat(LONGEST_LINK + 1) }),
      first,
    ]) {
      const link = linkText(first, { ...DEFAULT, compare: "difference" }, keep, other);
      expect(link.length).toBeLessThan(1000);
      expect(parseLink(link, recall).other).toEqual(other);
      expect(parseLink(link, recall).request).toEqual(first);
    }
    expect(parseLink(linkText(first, DEFAULT, keep), recall).other).toBeNull();
  });

  test("carry pairs, targets, chats and the wish to cut", () => {
    for (const request of [
      requestOf({ model: "m", text: "a", pair: "b" }),
      requestOf({ model: "m", text: "a", target: "" }),
      requestOf({ model: "m", chat: [{ role: "user", content: "a=b&c" }], truncate: true }),
    ]) {
      expect(parseLink(linkText(request, DEFAULT, keep), recall).request).toEqual(request);
    }
  });

  test("name an input that is too long, and find it again in this tab only", () => {
    const long = requestOf({ model: "m", text: "x".repeat(LONGEST_LINK + 1) });
    const link = linkText(long, DEFAULT, keep);
    expect(link.length).toBeLessThan(100);
    expect(parseLink(link, recall).request).toEqual(long);
    expect(parseLink(link, () => null)).toMatchObject({ request: null, kept: "x1" });
  });

  test("never fail on nonsense", () => {
    for (const fragment of ["", "#", "#%", "#at=HHH&view=9&heads=a,b&top=no&token=x:y&chat={", "#model=m&chat=[1]"]) {
      const link = parseLink(fragment, recall);
      expect(fitted(link.selection, trace())).toMatchObject({ site: "L0", head: 0, heads: [0] });
    }
  });
});
