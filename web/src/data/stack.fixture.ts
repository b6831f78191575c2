/** A sentence and a half of tokens, for tests. */

import type { StackProps } from "../contract";

export const STACK: StackProps = {
  name: "model",
  kind: "text",
  grid: null,
  texts: ["[CLS]", "un", "happy", "cats", ".", "They", "ï 1/2", "ï 2/2", "[SEP]"],
  ids: [0, 1, 2, 3, 4, 5, 6, 7, 8],
  special: [0, 8],
  words: [null, 0, 0, 1, 2, 3, 4, 4, null],
  sentences: [null, 0, 0, 0, 0, 1, 1, 1, null],
  segments: ["A", "A", "A", "A", "A", "A", "A", "A", "A"],
  spaces: [3, 5, 6],
  looks: "",
  replaced: [],
  boxes: [],
  answer: null,
};
