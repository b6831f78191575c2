import { expect, test } from "vitest";
import type { RelevanceProps, StackProps } from "../contract";
import { LIGHT } from "../theme";
import type { Grid, Part } from "../wire";
import { joined, Measures } from "./measures";
import { readingOf } from "./reading";
import { diverging, measureOf, parseRelevance, Relevance, relevanceText, signed } from "./relevance";
import { STACK } from "./stack.fixture";

const grid = (...values: number[]): Grid => ({
  dtype: "float32",
  shape: [values.length],
  code: "linear",
  values: Float32Array.from(values),
});

const props: RelevanceProps = {
  rule: "cp",
  position: 3,
  text: " nurse",
  other: null,
  logit: 4,
  carried: 3,
  bias_share: 0.25,
  heads: ["L0H0", "L0H1"],
  stacks: ["main"],
};

function part(change: Partial<RelevanceProps> = {}): Part<RelevanceProps> {
  return {
    kind: "relevance",
    props: { ...props, ...change },
    arrays: { "tokens/main": grid(2, -1, 0.5, 0), share: grid(0.75, -0.25), raw: grid(3, -1) },
  };
}

test.each(["9:1234", "9:1234-77", "all:3", "0:5:attn", "all:3-4:attn"])("%s is written as it is read", (text) => {
  const question = parseRelevance(text);
  expect(question && relevanceText(question)).toBe(text);
});

test.each(["", "9", "9:", "a:3", "9:3:cp", "9:3-", "9:3<script>"])("%s asks for nothing", (text) => {
  expect(parseRelevance(text)).toBeNull();
});

test("the relevance of a word is the sum over its pieces", () => {
  const relevance = new Relevance(part());
  const [texts, words] = [
    ["un", "do", "it", "."],
    [0, 0, 1, 2],
  ];
  const stack: StackProps = { ...STACK, name: "main", texts, words, special: [], segments: ["A", "A", "A", "A"] };
  const read = (by: "tokens" | "words") => [...(relevance.read(readingOf(stack, 4, { by, hide: [], off: [] })) ?? [])];
  expect(read("tokens")).toEqual([2, -1, 0.5, 0]);
  expect(read("words")).toEqual([1, 0.5, 0]);
});

test("colours have the sign of the value and the strength of its share", () => {
  const relevance = new Relevance(part());
  expect(relevance.most).toBe(2);
  expect(relevance.tone(LIGHT, 2)).toEqual({ colour: LIGHT.positive, alpha: 0.5 });
  expect(relevance.tone(LIGHT, -1)?.colour).toBe(LIGHT.negative);
  expect(relevance.tone(LIGHT, 0)).toBeNull();
  expect(relevance.css(-2)).toContain("--negative) 50.0%");
  expect(relevance.css(0)).toBe("transparent");
});

test("over a picture full colour stands for the strongest patch, whatever the class token brings", () => {
  const stack: StackProps = {
    ...STACK,
    name: "main",
    kind: "patches",
    texts: ["[CLS]", "1·1", "1·2", "1·3"],
    special: [0],
  };
  const relevance = new Relevance(part(), [stack]);
  expect(relevance.most).toBe(1);
  expect(relevance.tone(LIGHT, 2)?.alpha).toBe(0.5);
  expect(new Relevance(part(), [{ ...stack, kind: "text" }]).most).toBe(2);
});

test("an answer is told with what it is set against", () => {
  expect(new Relevance(part()).answer).toBe("‘nurse’");
  expect(new Relevance(part({ other: "doctor" })).told(-0.12345)).toBe(
    "relevance −0.123 to ‘nurse’ rather than ‘doctor’",
  );
  expect(signed(0.25)).toBe("+0.25");
});

test("heads' relevance is a measure beside the others", () => {
  const own = { kind: "scores", props: { heads: ["L0H1", "L0H0"], methods: [] }, arrays: {} };
  const measures = new Measures(joined([measureOf(part()), own]));
  expect(measures.of("L0H0", "relevance")).toBe(0.75);
  expect(measures.of("L0H1", "relevance")).toBe(-0.25);
  expect(measures.methods[0]).toMatchObject({ low: -0.75, high: 0.75, baseline: null });
});

test("a measure with both signs is grey at zero", () => {
  expect(diverging(LIGHT, 0, -1, 1)).toEqual(LIGHT.line);
  expect(diverging(LIGHT, 1, -1, 1)).toEqual(LIGHT.positive);
  expect(diverging(LIGHT, -1, -1, 1)).toEqual(LIGHT.negative);
});
