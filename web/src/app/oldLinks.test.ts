/** Links that earlier versions wrote are read to the same request, edits and selection. */

import { expect, test } from "vitest";
import links from "../../../tests/fixtures/0.1.0/links.json";
import type { RunRequest } from "../contract";
import { requestOf } from "../request";
import { parseLink } from "./link";

test("there are ten links of 0.1.0", () => expect(links).toHaveLength(10));

test.each(links)("$link", ({ link, ...expected }) => {
  // What requests have had since then is as by default.
  const [request, other] = [expected.request, expected.other].map((old) => old && requestOf(old as RunRequest));
  expect(parseLink(`#${link}`, () => null)).toEqual({ ...expected, request, other });
});
