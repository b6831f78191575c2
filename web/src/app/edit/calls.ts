/** Edits as Python writes them, `silence('L3H2')`: taken apart, written, and said in words. The server reads them too. */

import type { RunRequest, TraceProps } from "../../contract";

export type Value = string | number | boolean | null | Value[] | { [key: string]: Value } | Call;

export class Call {
  constructor(
    readonly name: string,
    readonly args: Value[],
    readonly options: Record<string, Value> = {},
  ) {}

  toString(): string {
    const named = Object.entries(this.options).map(([name, value]) => `${name}=${literal(value)}`);
    return `${this.name}(${[...this.args.map(literal), ...named].join(", ")})`;
  }
}

/** The Python of an edit. Options that are undefined are left out. */
export function call(name: string, args: Value[], options: Record<string, Value | undefined> = {}): string {
  const set = Object.entries(options).filter((pair): pair is [string, Value] => pair[1] !== undefined);
  return String(new Call(name, args, Object.fromEntries(set)));
}

/** The other run that a patch takes something from, as Python: `model.run('its text')`. */
export function otherRun(request: RunRequest): Call {
  const source: Value = request.chat?.map(({ role, content }) => ({ role, content })) ?? request.text ?? "";
  const options: Record<string, Value> = {};
  if (request.pair !== null) options.pair = request.pair;
  if (request.target !== null) options.target = request.target;
  if (request.truncate) options.truncate = true;
  return new Call("model.run", [source], options);
}

function literal(value: Value): string {
  if (value instanceof Call) return String(value);
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (value === null) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value === "string") return /['"\\\p{Cc}]/u.test(value) ? JSON.stringify(value) : `'${value}'`;
  if (typeof value === "number") return String(value);
  return `{${Object.entries(value)
    .map(([key, content]) => `${literal(key)}: ${literal(content)}`)
    .join(", ")}}`;
}

/** Takes an edit apart; null where it is none of those that can be written here (the server knows more of them). */
export function parsed(text: string): Call | null {
  try {
    const reader = new Reader(text.trim().replace(/^(hs|headscope)\./, ""));
    const call = reader.value();
    return reader.isOver && call instanceof Call ? call : null;
  } catch {
    return null;
  }
}

const ESCAPES: Record<string, string> = { n: "\n", t: "\t", r: "\r", b: "\b", f: "\f", 0: "\0", "\n": "" };
const WORDS: Record<string, Value> = { None: null, True: true, False: false };

class Reader {
  private at = 0;

  constructor(private readonly text: string) {}

  get isOver(): boolean {
    this.skip();
    return this.at === this.text.length;
  }

  value(): Value {
    this.skip();
    const next = this.text[this.at] ?? "";
    if (next === "'" || next === '"') return this.string(next);
    if (next === "[") return this.listed("[", "]").args;
    if (next === "{") return this.object();
    const number = this.match(/[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?/iy);
    if (number) return Number(number);
    const name = this.match(/[A-Za-z_][\w.]*/y);
    if (name && name in WORDS) return WORDS[name] as Value;
    if (!name) throw new Error("not understood");
    const { args, options } = this.listed("(", ")");
    return new Call(name, args, options);
  }

  private listed(open: string, close: string): { args: Value[]; options: Record<string, Value> } {
    this.expect(open);
    const args: Value[] = [];
    const options: Record<string, Value> = {};
    while (!this.take(close)) {
      const name = open === "(" ? this.match(/[A-Za-z_]\w*(?=\s*=)/y) : "";
      if (name) {
        this.expect("=");
        options[name] = this.value();
      } else {
        args.push(this.value());
      }
      if (!this.take(",")) {
        this.expect(close);
        break;
      }
    }
    return { args, options };
  }

  private object(): Value {
    this.expect("{");
    const pairs: Record<string, Value> = {};
    while (!this.take("}")) {
      const key = this.value();
      this.expect(":");
      pairs[String(key)] = this.value();
      if (!this.take(",")) {
        this.expect("}");
        break;
      }
    }
    return pairs;
  }

  private string(quote: string): string {
    const raw = this.match(quote === "'" ? /'(\\.|[^'\\\n])*'/suy : /"(\\.|[^"\\\n])*"/suy);
    if (!raw) throw new Error("a text without an end");
    return raw.slice(1, -1).replace(/\\(x..|u....|U.{8}|.)/gsu, (_, code: string) => {
      if (/^[xuU]./.test(code)) return String.fromCodePoint(Number.parseInt(code.slice(1), 16));
      return ESCAPES[code] ?? code;
    });
  }

  private match(pattern: RegExp): string {
    this.skip();
    pattern.lastIndex = this.at;
    const match = pattern.exec(this.text)?.[0] ?? "";
    this.at += match.length;
    return match;
  }

  private take(letter: string): boolean {
    this.skip();
    if (this.text[this.at] !== letter) return false;
    this.at++;
    return true;
  }

  private expect(letter: string) {
    if (!this.take(letter)) throw new Error(`${letter} is missing`);
  }

  private skip() {
    while (/\s/.test(this.text[this.at] ?? "")) this.at++;
  }
}

/** A piece of an edit's words: `strong` for tokens of the user's. */
export interface Word {
  text: string;
  strong?: boolean;
}

/** What an edit does, in words: "silence L3H2", "block She → nurse in L5H0". */
export function words(text: string, trace: TraceProps | null): Word[] {
  const call = parsed(text);
  if (!call) return [{ text }];
  const { args, options } = call;
  const place = args[0] === null ? "all heads" : String(args[0] ?? options.head ?? "");
  const stack = stackOf(place, trace);
  const keys = stackOf(place, trace, true);
  const only: Word[] = options.tokens === undefined ? [] : [{ text: " at " }, token(options.tokens, stack)];
  const kept: Word[] = options.renormalise === false ? [{ text: ", row's sum not kept at 1" }] : [];
  const plain = (phrase: string): Word[] => [{ text: phrase }, ...only];
  switch (call.name) {
    case "silence":
      return plain(`silence ${place}`);
    case "scale":
      return plain(`scale ${place} by ${number(args[1])}`);
    case "mean_ablate":
      return plain(`${place} at its mean${args.length > 1 ? " elsewhere" : ""}`);
    case "temperature":
      return plain(`temperature ${number(args[1])} in ${place}`);
    case "uniform":
      return options.tokens === undefined
        ? plain(`${place} looks at all alike`)
        : [token(options.tokens, stack), { text: ` looks at all alike in ${place}` }];
    case "distance_bias":
      return plain(`${number(args[1])} a token of distance in ${place}`);
    case "block":
      return [
        { text: "block " },
        token(args[1], stack),
        { text: " → " },
        token(args[2], keys),
        { text: ` in ${place}` },
      ];
    case "set_weight":
      return [
        token(args[1], stack),
        { text: " → " },
        token(args[2], keys),
        { text: ` = ${number(args[3])} in ${place}` },
        ...kept,
      ];
    case "set_row":
      return [{ text: "new row of " }, token(args[1], stack), { text: ` in ${place}` }, ...kept];
    case "replace_pattern":
      return [{ text: `new pattern of ${place}` }, ...kept, ...only];
    case "patch":
      return [
        { text: `${place} from ` },
        { text: shortened(source(args[1] ?? options.source)), strong: true },
        ...only,
      ];
    case "set_neuron":
      return plain(`${neuron(args)} = ${number(args[3])}`);
    case "scale_neuron":
      return plain(`${neuron(args)} × ${number(args[3])}`);
    case "add_neuron":
      return plain(`${neuron(args)} + ${number(args[3])}`);
    case "replace_token": {
      const put = args[1] ?? options.token ?? null;
      const at = token(args[0], stackOf("", trace));
      return put === null ? [{ text: "mask " }, at] : [at, { text: " becomes " }, { text: String(put), strong: true }];
    }
    default:
      return [{ text }];
  }
}

/** The words as one text. */
export function spoken(text: string, trace: TraceProps | null): string {
  return words(text, trace)
    .map((word) => word.text)
    .join("");
}

/** A run's edits in a few words: "silence L3H2 and L4H0". */
export function summary(edits: string[]): string {
  const calls = edits.map(parsed);
  const silenced = calls.every((call) => call?.name === "silence" && !Object.keys(call.options).length);
  if (silenced && calls.length) return `silence ${joined(calls.map((call) => String(call?.args[0])))}`;
  const [first = ""] = edits;
  const place = String(calls[0]?.args[0]);
  // Which tokens it is about only the run itself can say.
  const brief: Record<string, string> = {
    block: `a look blocked in ${place}`,
    set_weight: `a weight set in ${place}`,
    set_row: `a row set in ${place}`,
    uniform: `uniform in ${place}`,
    replace_token: "a token replaced",
  };
  const phrase = brief[calls[0]?.name ?? ""] ?? spoken(first, null);
  return edits.length > 1 ? `${phrase} and ${edits.length - 1} more` : phrase;
}

/** Whether an edit is about heads or neurons alone, so that it means the same for another input. */
export function isOfModel(text: string): boolean {
  const call = parsed(text);
  const names = /^(silence|scale|mean_ablate|temperature|uniform|distance_bias|(set|scale|add)_neuron)$/;
  return !!call && names.test(call.name) && !("tokens" in call.options);
}

function joined(names: string[]): string {
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

function number(value: Value | undefined): string {
  if (typeof value !== "number") return String(value);
  return String(Number(value.toPrecision(4))).replace("-", "−");
}

function neuron([site, part, index]: Value[]): string {
  return part === "mlp" ? `MLP neuron ${index} of ${site}` : `${part} ${index} of ${site}`;
}

function source(value: Value | undefined): string {
  if (!(value instanceof Call)) return "another run";
  const text = value.args[0];
  const turns = Array.isArray(text) ? text : [];
  const last = turns.at(-1) as { content?: string } | undefined;
  return typeof text === "string" ? text : (last?.content ?? "another run");
}

function shortened(text: string): string {
  return text.length > 40 ? `${text.slice(0, 39).trimEnd()}…` : text;
}

function stackOf(place: string, trace: TraceProps | null, isKeys = false): string[] {
  const site = place.replace(/H\d+$/, "");
  const layer = trace?.layers.find((layer) => layer.site === site);
  const name = isKeys ? layer?.key_stack : layer?.stack;
  return (trace?.stacks.find((stack) => stack.name === name) ?? trace?.stacks[0])?.texts ?? [];
}

/** The tokens that a choice names, by their texts where they are known. */
function token(choice: Value | undefined, texts: string[]): Word {
  const nameOf = (value: Value | undefined): string => {
    if (typeof value !== "number") return value instanceof Call ? String(value) : String(value);
    return texts[value < 0 ? texts.length + value : value]?.trim() || `token ${value}`;
  };
  if (!Array.isArray(choice)) return { text: nameOf(choice), strong: true };
  const few = choice.slice(0, 4).map(nameOf).join(" ");
  return { text: choice.length > 4 ? `${few} …` : few, strong: true };
}
