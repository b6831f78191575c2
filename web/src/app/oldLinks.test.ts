/** Links that earlier versions wrote are read to the same request, edits and selection. */

import { expect, test } from "vitest";
import links from "../../../tests/fixtures/0.1.0/links.json";
import { parseLink } from "./link";

test("there are ten links of 0.1.0", () => expect(links).toHaveLength(10));

test.each(links)("$link", ({ link, ...expected }) => {
  expect(parseLink(`#${link}`, () => null)).toEqual(expected);
});
