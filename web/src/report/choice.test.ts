import { expect, test } from "vitest";
import { choiceOf, hashOf } from "./choice";
import { Contents } from "./contents";
import { REPORT } from "./report.fixture";

const contents = new Contents(REPORT);

test("an address says what is chosen", () => {
  const choice = choiceOf("#head=L1H1&measure=entropy&x=confidence&y=entropy", contents);
  expect(choice).toEqual({ head: "L1H1", measure: "entropy", x: "confidence", y: "entropy" });
  expect(choiceOf(hashOf(choice), contents)).toEqual(choice);
});

test("what a report does not have is as it is at first", () => {
  // No distance here, so across is the first measure that there is; no relevance, so up is confidence.
  const first = { head: null, measure: "confidence", x: "entropy", y: "confidence" };
  expect(choiceOf("", contents)).toEqual(first);
  expect(choiceOf("#head=L9H9&measure=none&x=&y=%00", contents)).toEqual(first);
});

test("nothing is written of what is not chosen", () => {
  expect(hashOf({ head: null, measure: "entropy", x: null, y: null })).toBe("#measure=entropy");
});
