import { expect, test } from "vitest";
import { LIGHT } from "../theme";
import { badgeBox, badgeLabel, verdictsOf } from "./trustBadges";

const AT = { x: 100, y: 50 };

test("a badge has a sign, and words where there is room", () => {
  const [none, small, wide] = [16, 48, 160].map((size) => badgeBox(AT, size, "not supported"));
  expect(none).toBeNull();
  expect(small && badgeLabel(small, "not supported", LIGHT).text).toBe("✕");
  expect(wide && badgeLabel(wide, "not supported", LIGHT).text).toBe("✕ not supported");
  expect(wide?.width).toBeLessThan(160);
});

test("a badge is in the upper left corner of its picture, its sign in the middle", () => {
  const box = badgeBox(AT, 48, "mixed");
  expect(box).toMatchObject({ x: 100, y: 50 });
  expect(box && badgeLabel(box, "mixed", LIGHT)).toMatchObject({ text: "?", x: 107, y: 57, align: "centre" });
});

test("without a test no head has a verdict", () => {
  expect(verdictsOf(null).size).toBe(0);
});
