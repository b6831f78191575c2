import { expect, test } from "vitest";
import { sentence } from "./sentence";

test("messages begin and end as sentences do, and code stays as it is", () => {
  expect(sentence("the text is 1,067 tokens long")).toBe("The text is 1,067 tokens long.");
  expect(sentence("hs.scale('L0H0', 1e+38) makes the output NaN.")).toBe(
    "hs.scale('L0H0', 1e+38) makes the output NaN.",
  );
  expect(sentence("n_heads is 0")).toBe("n_heads is 0.");
});
