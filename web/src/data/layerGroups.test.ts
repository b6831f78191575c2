import { expect, test } from "vitest";
import { groupOf, groupsOf, placeOf } from "./layerGroups";
import { translation } from "./trace.fixture";

test("layers are grouped as their addresses name them", () => {
  expect(groupOf("L3")).toBe("main");
  expect([...groupsOf(translation()).keys()]).toEqual(["encoder", "decoder", "cross"]);
});

test("a head is found by its name, where there is one", () => {
  expect(placeOf(translation(), "cross.L0H1")).toEqual({ site: "cross.L0", head: 1 });
  expect(placeOf(translation(), "cross.L0H99")).toBeNull();
  expect(placeOf(translation(), "anything")).toBeNull();
});
