/** What points of the atlas are coloured by: for each token, an ink for its query and one for its key, and what they mean. */

import type { Rgb, Theme } from "../theme";
import { between } from "../theme";
import { hueColour, MARKS, MOD_FIVE, NONE, type Pair, pairOf, rampOf } from "./atlasPalettes";
import type { PointSet } from "./atlasPoints";
import type { AtlasTokens } from "./atlasTokens";

/** What colours mean: swatches for kinds, bars for numbers. */
export interface ColourKey {
  title: string;
  /** Those of one role alone say which. */
  swatches: { text: string; colours: Rgb[]; role?: "query" | "key" }[];
  bars: { text: string; colours: Rgb[] }[];
  /** What stands at the ends of the bars. */
  ends: [string, string] | null;
  notes: string[];
}

export interface Colouring {
  inks: Rgb[];
  /** The ink of each point, in the order of drawing. */
  colours: Uint8Array;
  key: ColourKey;
}

export interface ColourOptions {
  name: string;
  isSafe: boolean;
  theme: Theme;
  /** Numbers of points in the order of drawing, where colours are by numbers of the head. */
  values?: Float32Array | null;
}

const STEPS = 48;
const NONE_INK = 255;
const MOST_KINDS = 12;
const BAR = 24;
const ROLES = ["query", "key"] as const;

type InkOf = (row: number, isQuery: boolean) => number;

interface Scheme {
  inks: Rgb[];
  inkOf: InkOf;
  key: ColourKey;
}

const NUMBERS: Record<string, { title: string; ends?: [string, string]; isLog?: boolean }> = {
  position: { title: "position in the example", ends: ["first", "last"] },
  frequency: { title: "frequency in the corpus", isLog: true },
  length: { title: "length of the example" },
  norm: { title: "norm of the vector" },
  patch_row: { title: "row of the patch", ends: ["top", "bottom"] },
  patch_column: { title: "column of the patch", ends: ["left", "right"] },
  brightness: { title: "brightness of the patch", ends: ["dark", "light"] },
};

const KINDS: Record<string, string> = {
  predicted: "class that the model predicts",
  tag_upos: "part of speech",
  tag_xpos: "part of speech (treebank's own)",
};

/** Colour the points of a set. */
export function coloured(set: PointSet, tokens: Record<string, AtlasTokens>, options: ColourOptions): Colouring {
  const { theme, values } = options;
  const none = NONE[theme.name];
  const schemes = set.clouds.map(({ stack }) => schemeOf(tokens[stack] as AtlasTokens, options));
  const scheme = schemes[0] as Scheme;
  const inks = [...scheme.inks];
  while (inks.length <= NONE_INK) inks.push(none);
  const isQuery = set.clouds.map(({ role }) => role === "query");
  if (values) {
    const { colours, key } = byValues(set, values, options, isQuery);
    return { inks: numberInks(options), colours, key };
  }
  const colours = new Uint8Array(set.count);
  for (let point = 0; point < set.count; point++) {
    const cloud = set.cloud[point] as number;
    colours[point] = (schemes[cloud] as Scheme).inkOf(set.row[point] as number, isQuery[cloud] as boolean);
  }
  return { inks, colours, key: merged(scheme.key, set) };
}

/** The legend of a set: where there is one cloud a head, half of it means nothing. */
function merged(key: ColourKey, set: PointSet): ColourKey {
  const roles = new Set(set.clouds.map(({ role }) => role));
  if (roles.has("query") && roles.has("key")) return key;
  const first = roles.has("query") ? 0 : 1;
  return {
    ...key,
    swatches: key.swatches
      .filter(({ role }) => !role || role === ROLES[first])
      .map(({ text, colours, role }) => ({
        text: role ? ([...roles][0] ?? "") : text,
        colours: colours.length > 1 ? colours.slice(first, first + 1) : colours,
      })),
    bars: key.bars.slice(first, first + 1).map(({ colours }) => ({ text: "", colours })),
  };
}

function schemeOf(tokens: AtlasTokens, options: ColourOptions): Scheme {
  const { name, theme } = options;
  if (name === "position5") return kinds(["0", "1", "2", "3", "4"], MOD_FIVE, "position mod 5", modFive(tokens));
  if (name === "special") return bySpecial(tokens);
  if (name === "hue" && tokens.has("hue")) return byHue(tokens, theme);
  if (name in NUMBERS && name !== "norm") return byNumber(tokens, options);
  if (name === "token" || name === "example" || name in tokens.tables) return byKind(tokens, name, theme);
  return byRole(options);
}

function byRole({ theme, isSafe }: ColourOptions): Scheme {
  const pair = pairOf(theme, isSafe);
  const scheme = kinds([], [pair], "", () => 0);
  const roles = (["query", "key"] as const).map((role) => ({ text: role, colours: [pair[role]], role }));
  return { ...scheme, key: { ...scheme.key, swatches: roles } };
}

/** Kinds, each with a colour for queries and one for keys: inks 2k and 2k + 1. */
function kinds(texts: string[], pairs: readonly Pair[], title: string, kindOf: (row: number) => number): Scheme {
  const inks = pairs.flatMap(({ query, key }) => [query, key]);
  const swatches: ColourKey["swatches"] = texts.map((text, index) => {
    const { query, key } = pairs[index] as Pair;
    return { text, colours: query === key ? [query] : [query, key] };
  });
  const areTwo = swatches.some(({ colours }) => colours.length > 1);
  const inkOf: InkOf = (row, isQuery) => {
    const kind = kindOf(row);
    return kind < 0 ? NONE_INK : 2 * kind + (isQuery ? 0 : 1);
  };
  return {
    inks,
    inkOf,
    key: { title: areTwo ? `${title} (query, key)` : title, swatches, bars: [], ends: null, notes: [] },
  };
}

function modFive(tokens: AtlasTokens): (row: number) => number {
  const positions = tokens.whole("position");
  return (row) => (positions[row] as number) % 5;
}

function bySpecial(tokens: AtlasTokens): Scheme {
  const isMark = (row: number) => tokens.isSpecial(row) || tokens.isPunctuation(row);
  return kinds(["words", "special and punctuation"], [MARKS.word, MARKS.mark], "tokens", (row) =>
    isMark(row) ? 1 : 0,
  );
}

/** The most frequent kinds have a colour; what is left is grey. */
function byKind(tokens: AtlasTokens, name: string, theme: Theme): Scheme {
  if (name === "example") {
    const examples = tokens.whole("example");
    const scheme = kinds([], twins(theme.heads), "example", (row) => (examples[row] as number) % MOST_KINDS);
    return { ...scheme, key: { ...scheme.key, notes: [`${MOST_KINDS} colours in turn`] } };
  }
  const column = name === "token" ? "text" : name;
  const codes = tokens.whole(column);
  const counts = new Map<number, number>();
  for (const code of codes) if (code >= 0) counts.set(code, (counts.get(code) ?? 0) + 1);
  const order = [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, MOST_KINDS);
  const places = new Map(order.map(([code], place) => [code, place]));
  const texts = order.map(([code]) => (name === "token" ? tokens.textOf(code) : (tokens.tables[name]?.[code] ?? "")));
  const title = name === "token" ? "most frequent tokens" : (KINDS[name] ?? name.replace(/^tag_/, ""));
  const scheme = kinds(texts, twins(theme.heads), title, (row) => places.get(codes[row] as number) ?? -1);
  const rest = counts.size - order.length;
  if (rest > 0) scheme.key.swatches.push({ text: `${rest.toLocaleString("en")} others`, colours: [NONE[theme.name]] });
  return scheme;
}

function twins(colours: readonly Rgb[]): Pair[] {
  return colours.map((colour) => ({ query: colour, key: colour }));
}

function byHue(tokens: AtlasTokens, theme: Theme): Scheme {
  const hues = tokens.numbers("hue");
  const inks = Array.from({ length: STEPS }, (_, step) => hueColour(theme, (2 * Math.PI * step) / STEPS));
  const inkOf: InkOf = (row) => {
    const hue = hues[row] as number;
    if (Number.isNaN(hue)) return NONE_INK;
    return ((Math.round((hue / (2 * Math.PI)) * STEPS) % STEPS) + STEPS) % STEPS;
  };
  const bar = Array.from({ length: BAR }, (_, step) => hueColour(theme, (2 * Math.PI * step) / BAR));
  const key = { title: "hue of the patch", swatches: [], bars: [{ text: "", colours: bar }], ends: null, notes: [] };
  return { inks, inkOf, key: { ...key, notes: ["grey: no hue"] } };
}

function byNumber(tokens: AtlasTokens, options: ColourOptions): Scheme {
  const { name } = options;
  if (name !== "position" && !tokens.has(name)) return byRole(options);
  const values = name === "position" ? shares(tokens) : tokens.numbers(name);
  const { isLog = false } = NUMBERS[name] ?? {};
  const [low, high] = extent(values);
  const stepOf = (row: number) => stepAt(values[row] as number, low, high, isLog);
  const inkOf: InkOf = (row, isQuery) => {
    const step = stepOf(row);
    return step < 0 ? NONE_INK : step + (isQuery ? 0 : STEPS);
  };
  return { inks: numberInks(options), inkOf, key: numberKey(options, low, high) };
}

/** Position as a share of the example: 0 first, 1 last. */
function shares(tokens: AtlasTokens): Float32Array {
  const lengths = tokens.whole("length");
  return Float32Array.from(
    tokens.whole("position"),
    (position, row) => position / Math.max(1, (lengths[row] as number) - 1),
  );
}

function extent(values: Float32Array): [number, number] {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : [0, 1];
}

function stepAt(value: number, low: number, high: number, isLog: boolean): number {
  if (Number.isNaN(value)) return -1;
  const share = isLog ? Math.log(value / low) / Math.log(high / low || 1) : (value - low) / (high - low);
  return Math.round((STEPS - 1) * Math.min(1, Math.max(0, Number.isFinite(share) ? share : 0.5)));
}

function numberInks({ theme, isSafe }: ColourOptions): Rgb[] {
  const ramp = (role: keyof Pair) => {
    const toneAt = rampOf(theme, role, isSafe);
    return Array.from({ length: STEPS }, (_, step) => toneAt(step / (STEPS - 1)));
  };
  const inks = [...ramp("query"), ...ramp("key")];
  while (inks.length <= NONE_INK) inks.push(NONE[theme.name]);
  return inks;
}

function numberKey({ name, theme, isSafe }: ColourOptions, low: number, high: number): ColourKey {
  const { title, ends, isLog } = NUMBERS[name] ?? { title: name };
  const bar = (role: keyof Pair) => {
    const toneAt = rampOf(theme, role, isSafe);
    return Array.from({ length: BAR }, (_, step) => toneAt(step / (BAR - 1)));
  };
  return {
    title: isLog ? `${title}, log scale` : title,
    swatches: [],
    bars: [
      { text: "query", colours: bar("query") },
      { text: "key", colours: bar("key") },
    ],
    ends: ends ?? [written(low), written(high)],
    notes: [],
  };
}

function written(value: number): string {
  return (Number.isInteger(value) ? value.toLocaleString("en") : String(Number(value.toPrecision(2)))).replace(
    "-",
    "−",
  );
}

/** By numbers of the head's own points: norms on both ramps, key bias on a signed scale, of keys alone. */
function byValues(
  set: PointSet,
  values: Float32Array,
  options: ColourOptions,
  isQuery: boolean[],
): { colours: Uint8Array; key: ColourKey } {
  const [low, high] = robust(values);
  const colours = new Uint8Array(set.count);
  for (let point = 0; point < set.count; point++) {
    const step = stepAt(values[point] as number, low, high, false);
    colours[point] = step < 0 ? NONE_INK : step + (isQuery[set.cloud[point] as number] ? 0 : STEPS);
  }
  if (options.name !== "key_bias") return { colours, key: merged(numberKey(options, low, high), set) };
  const { bars, ...key } = numberKey({ ...options, name: "key bias" }, low, high);
  return { colours, key: { ...key, title: "key bias, in logits", bars: bars.slice(1), notes: ["queries have none"] } };
}

/** From the 1st to the 99th percentile: an outlier or two should not take all colours. */
function robust(values: Float32Array): [number, number] {
  const known = values.filter((value) => !Number.isNaN(value)).sort();
  if (!known.length) return [0, 1];
  const at = (share: number) => known[Math.round((known.length - 1) * share)] as number;
  return [at(0.01), at(0.99)];
}

/** The same inks, so faint that what is lit stands out. */
export function dimmed(inks: Rgb[], theme: Theme): Rgb[] {
  const ground = theme.background;
  return inks.map(([red, green, blue]) => {
    const grey = Math.round(0.3 * red + 0.59 * green + 0.11 * blue);
    return between([grey, grey, grey], ground, 0.72);
  });
}
