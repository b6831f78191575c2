/** Which tokens are shown, and which of the model's own positions each stands for: words, sentences, tokens left out.
 *
 *  The same rules as Python's `traces/pattern_reading.py`: attention to a group is the sum over its keys, from it the mean over
 *  its queries, and rows are brought back to one by the weight that is left.
 */

import type { SiteProps, StackProps } from "../contract";
import type { Selection } from "../selection";

export interface Reading {
  stack: string;
  texts: string[];
  /** The positions that each shown token stands for. */
  members: number[][];
  /** Of those, the ones that count: none for a token that is switched off. */
  kept: number[][];
  isOff: boolean[];
  /** Those that come after the step that is shown: they keep their places, empty. */
  isLater: boolean[];
  /** Those that the model wrote itself. */
  isWritten: boolean[];
  isSpecial: boolean[];
  /** Those that an edit put there. */
  isReplaced: boolean[];
  /** Those of the span that the model answers with. */
  isAnswer: boolean[];
  /** A or B. */
  segments: string[];
  /** Whether white space comes before it in the text. */
  isSpaced: boolean[];
  /** The shown token of each position, −1 where it is left out. */
  groupOf: Int32Array;
  /** Every position by itself, all of them. */
  isPlain: boolean;
  /** Some positions are left out, so rows are renormalised. */
  isPartial: boolean;
}

/** `until` is the last position that is shown, `written` the first that the model wrote itself; null for all, for none. */
type How = Pick<Selection, "by" | "hide" | "off"> & { until?: number | null; written?: number | null };
type Gridded = Pick<SiteProps, "grid" | "places">;

const PART = / \d+\/\d+$/;

/** How patches are named, where there are any to be read. */
export function patchNote(readings: Pick<Reading, "texts">[]): string[] {
  // A picture has more than one or two: those may be numbers of a text.
  const hasPatches = readings.some(({ texts }) => texts.filter((text) => /^\d+·\d+$/.test(text)).length > 3);
  return hasPatches ? ["patches are named row·column, counted from 1"] : [];
}

/** How the tokens of a stack are read in a layer that sees `length` of them. */
export function readingOf(stack: StackProps, length: number, how: How, site?: Gridded): Reading {
  if (stack.texts.length !== length) return numbered(stack, length, site);
  const hidden = hiddenPositions(stack, how.hide);
  const off = offPositions(stack, how.off);
  const special = new Set(stack.special);
  const spaces = new Set(stack.spaces);
  const marks = how.by === "words" ? stack.words : how.by === "sentences" ? stack.sentences : null;
  const members: number[][] = [];
  let last = "";
  for (let position = 0; position < length; position++) {
    if (hidden.has(position)) continue;
    const number = special.has(position) ? null : (marks?.[position] ?? null);
    const mark = number === null ? "" : `${stack.segments[position] ?? ""}:${number}`;
    if (mark && mark === last) members[members.length - 1]?.push(position);
    else members.push([position]);
    last = mark;
  }
  const until = how.until ?? length;
  const kept = members.map((group) => group.filter((position) => !off.has(position) && position <= until));
  const groupOf = new Int32Array(length).fill(-1);
  kept.forEach((group, index) => {
    for (const position of group) groupOf[position] = index;
  });
  const isPartial = hidden.size + off.size > 0;
  return {
    stack: stack.name,
    texts: members.map((group) =>
      site?.places.length === length ? placed(site, group[0] as number) : joined(stack, group, spaces),
    ),
    members,
    kept,
    isOff: kept.map((group) => !group.length),
    isLater: members.map((group) => (group[0] as number) > until),
    isWritten: members.map((group) => (group[0] as number) >= (how.written ?? length)),
    isSpecial: members.map((group) => special.has(group[0] as number)),
    isReplaced: members.map((group) => group.some((position) => stack.replaced.includes(position))),
    isAnswer: members.map((group) => group.some((position) => isWithin(position, stack.answer))),
    segments: members.map((group) => stack.segments[group[0] as number] ?? "A"),
    isSpaced: members.map((group) => spaces.has(group[0] as number)),
    groupOf,
    isPlain: !isPartial && members.length === length && until >= length - 1,
    isPartial,
  };
}

function isWithin(position: number, span: StackProps["answer"]): boolean {
  return span !== null && position >= span[0] && position <= span[1];
}

/** The position, among a stack's own tokens, of the token in focus: of a word its first. Null where there is none. */
export function positionOf(stack: StackProps, selection: How & Pick<Selection, "token">): number | null {
  const { token } = selection;
  return token && (readingOf(stack, stack.texts.length, selection).members[token.index]?.[0] ?? null);
}

/** Places of their own: a layer that sees a coarser grid than the input's, as the later stages of Swin do. */
function numbered(stack: StackProps, length: number, site?: Gridded): Reading {
  const positions = Array.from({ length }, (_, position) => position);
  const isGrid = site?.grid && (site.places.length === length || site.grid[0] * site.grid[1] === length);
  return {
    stack: stack.name,
    texts: positions.map((position) => (isGrid ? placed(site, position) : String(position))),
    members: positions.map((position) => [position]),
    kept: positions.map((position) => [position]),
    isOff: positions.map(() => false),
    isLater: positions.map(() => false),
    isWritten: positions.map(() => false),
    isSpecial: positions.map(() => false),
    isReplaced: positions.map(() => false),
    isAnswer: positions.map(() => false),
    segments: positions.map(() => "A"),
    isSpaced: positions.map(() => true),
    groupOf: Int32Array.from(positions),
    isPlain: true,
    isPartial: false,
  };
}

/** Hiding never leaves nothing: a stack of special tokens alone stays as it is. */
export function hiddenPositions(stack: StackProps, hide: Selection["hide"]): Set<number> {
  const hidden = new Set(hide.includes("special") ? stack.special : []);
  if (hide.includes("first")) hidden.add(0);
  return hidden.size < stack.texts.length ? hidden : new Set();
}

export function offPositions(stack: StackProps, off: string[]): Set<number> {
  const positions = new Set<number>();
  for (const name of off) {
    const at = name.lastIndexOf(":");
    if (name.slice(0, at) === stack.name) positions.add(Number(name.slice(at + 1)));
  }
  return positions;
}

function joined(stack: StackProps, group: number[], spaces: Set<number>): string {
  const first = group[0] as number;
  if (stack.kind === "patches" && stack.grid) return patch(stack, first, stack.grid[1]);
  if (stack.boxes[first]) return fromOne(stack.texts[first] ?? "");
  let text = "";
  let before = "";
  group.forEach((position, index) => {
    const next = stack.texts[position] ?? "";
    // Two pieces of one character, shown as "é 1/2" and "é 2/2": together they are the character.
    if (index > 0 && PART.test(next) && PART.test(before) && next.replace(PART, "") === before.replace(PART, ""))
      return;
    // Where the text itself is not known, words stand apart.
    const isApart = spaces.size
      ? spaces.has(position)
      : stack.words[position] !== stack.words[group[index - 1] ?? position];
    const part = group.length > 1 ? next.replace(PART, "") : next;
    text += index > 0 && isApart ? ` ${part}` : part;
    before = next;
  });
  return text;
}

/** The name of a patch within a text, `thumbnail 0,3`, with row and column from 1. */
function fromOne(name: string): string {
  return name.replace(/(\d+),(\d+)$/, (_, row, column) => `${Number(row) + 1}·${Number(column) + 1}`);
}

/** A patch by its row and column in the layer's own grid, wherever it stands in the layer. */
function placed({ grid, places }: Gridded, position: number): string {
  const place = places.length ? (places[position] ?? -1) : position;
  return place < 0 || !grid ? "[PAD]" : `${Math.floor(place / grid[1]) + 1}·${(place % grid[1]) + 1}`;
}

/** A patch of an image by its row and column, both from 1. */
function patch(stack: StackProps, position: number, columns: number): string {
  if (stack.special.includes(position)) return stack.texts[position] ?? "";
  const index = position - stack.special.filter((special) => special < position).length;
  return `${Math.floor(index / columns) + 1}·${(index % columns) + 1}`;
}
