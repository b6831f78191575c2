import { expect, test } from "vitest";

import { reachText } from "./reach";
import { layer, stack, trace } from "./trace.fixture";

const text = trace({ stacks: [stack("main", ["[CLS]", "a", "b", "c", "d"])] });

test("a layer says how far its queries see", () => {
  expect(reachText(layer("L0", 5), text)).toBe("looks back only");
  expect(reachText(layer("L0", 5, { is_causal: false }), text)).toBe("looks both ways");
  expect(reachText(layer("L0", 5, { window: 4096 }), text)).toBe("looks back over 4,096 tokens");
});

test("a window is to each side, and global tokens are named", () => {
  const banded = { is_causal: false, window: 2 };
  expect(reachText(layer("L0", 5, banded), text)).toBe("sees 1 token to each side");
  expect(reachText(layer("L0", 5, { ...banded, global_tokens: [0] }), text)).toBe(
    "sees 1 token to each side, and the global token [CLS]",
  );
  expect(reachText(layer("L0", 5, { ...banded, global_tokens: [0, 1, 2, 4] }), text)).toContain(
    "global tokens [CLS] a b and 1 more",
  );
});
