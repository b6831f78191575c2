import { expect, test } from "vitest";
import { groupOf, groupsOf } from "./places";
import { translation } from "./trace.fixture";

test("layers are grouped as their addresses name them", () => {
  expect(groupOf("L3")).toBe("main");
  expect([...groupsOf(translation()).keys()]).toEqual(["encoder", "decoder", "cross"]);
});
