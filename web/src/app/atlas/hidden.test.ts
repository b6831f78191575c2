import { expect, test } from "vitest";
import { hidden } from "./hidden";

test("key bias is named where the coordinates hide it, and how to see it", () => {
  const numbers = { pearson: -0.31, key_bias_share: 0.65, trustworthiness: 0.78 };
  expect(hidden(numbers, "scaled")).toMatch(
    /^Most is hidden: 65 % .*Lifted.* Near is only roughly strong \(−0\.31 .*0\.78/,
  );
  expect(hidden(numbers, "lifted")).toMatch(/^Nothing is hidden before the map/);
  expect(hidden(numbers, "raw")).not.toMatch(/hidden/);
});

test("a correlation of the wrong sign is said", () => {
  expect(hidden({ pearson: 0.85, key_bias_share: 0.1, trustworthiness: 0.8 }, "scaled")).toMatch(/^Far is strong here/);
  expect(hidden({ pearson: -0.95, key_bias_share: 0.1, trustworthiness: 0.8 }, "scaled")).toMatch(
    /^Near is strong \(−0\.95/,
  );
});

test("without numbers there is nothing to say", () => {
  expect(hidden({}, "scaled")).toBe("");
});
