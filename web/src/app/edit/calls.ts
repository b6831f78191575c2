/** Edits as Python writes them, `silence('L3H2')`: taken apart and written. The server reads them too. */

import type { RunRequest } from "../../contract";

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

/** Whether an edit is about heads or neurons alone, so that it means the same for another input. */
export function isOfModel(text: string): boolean {
  const call = parsed(text);
  const names = /^(silence|scale|mean_ablate|temperature|uniform|distance_bias|(set|scale|add)_neuron)$/;
  return !!call && names.test(call.name) && !("tokens" in call.options);
}
