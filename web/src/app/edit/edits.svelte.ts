/** The stack of edits: what is in it, what is switched on, and the steps back and forward. It runs nothing itself. */

import { parsed, type Value } from "./calls";

export interface Edit {
  /** The Python that makes it. */
  call: string;
  isOn: boolean;
}

/** How the page is told that the stack changed: `replace` for a slider on its way. */
export type Apply = (edits: Edit[], history: "keep" | "replace") => void;

export class Edits {
  list = $state.raw<Edit[]>([]);
  #past = $state.raw<Edit[][]>([]);
  #future = $state.raw<Edit[][]>([]);
  /** The stack of what is on screen, to return to should the next one fail. */
  #settled: Edit[] = [];
  #gesture = "";

  constructor(private readonly apply: Apply) {}

  get canUndo(): boolean {
    return this.#past.length > 0;
  }

  get canRedo(): boolean {
    return this.#future.length > 0;
  }

  /** Put an edit on top of the stack. */
  add(call: string) {
    this.#turn([...this.list, { call, isOn: true }]);
  }

  /** Give the edit of this kind that begins with these arguments a new form; null takes it away. What a slider does on
   *  its way is one step: `gesture` names it until it ends. */
  put(name: string, start: Value[], call: string | null, gesture = "") {
    const at = this.list.findIndex((edit) => isOf(edit, name, start));
    if (at < 0 && call === null) return;
    const next = [...this.list];
    if (call === null) next.splice(at, 1);
    else if (at < 0) next.push({ call, isOn: true });
    else next[at] = { call, isOn: true };
    this.#turn(next, gesture);
  }

  /** The number (or true, where there is none) after these arguments in the edit of this kind that is switched on. */
  of(name: string, start: Value[]): number | boolean {
    const edit = this.list.find((candidate) => candidate.isOn && isOf(candidate, name, start));
    const value = edit && parsed(edit.call)?.args[start.length];
    return typeof value === "number" ? value : !!edit;
  }

  end() {
    this.#gesture = "";
  }

  turn(index: number, isOn: boolean) {
    this.#turn(this.list.map((edit, place) => (place === index ? { ...edit, isOn } : edit)));
  }

  remove(index: number) {
    this.#turn(this.list.filter((_, place) => place !== index));
  }

  move(from: number, to: number) {
    if (to < 0 || to >= this.list.length || from === to) return;
    const next = [...this.list];
    next.splice(to, 0, ...next.splice(from, 1));
    this.#turn(next);
  }

  clear() {
    this.#turn([]);
  }

  replace(calls: string[]) {
    this.#turn(calls.map((call) => ({ call, isOn: true })));
  }

  undo() {
    const before = this.#past.at(-1);
    if (!before) return;
    this.#past = this.#past.slice(0, -1);
    this.#future = [...this.#future, this.list];
    this.#go(before);
  }

  redo() {
    const next = this.#future.at(-1);
    if (!next) return;
    this.#future = this.#future.slice(0, -1);
    this.#past = [...this.#past, this.list];
    this.#go(next);
  }

  /** This is on screen now: of the same input as before, or of another, to which no step leads back. */
  settle(edits: Edit[], isSameInput: boolean) {
    this.list = this.#settled = edits;
    if (isSameInput) return;
    this.#past = [];
    this.#future = [];
    this.#gesture = "";
  }

  /** What was asked for last could not be run: the stack is again that of what is on screen. */
  revert() {
    if (same(this.list, this.#settled)) return;
    if (this.#past.length && same(this.#past.at(-1) as Edit[], this.#settled)) this.#past = this.#past.slice(0, -1);
    this.list = this.#settled;
    this.#gesture = "";
  }

  #turn(next: Edit[], gesture = "") {
    if (same(next, this.list)) return;
    const isSame = gesture !== "" && gesture === this.#gesture;
    this.#gesture = gesture;
    if (!isSame) this.#past = [...this.#past, this.list].slice(-200);
    this.#future = [];
    this.#go(next, isSame ? "replace" : "keep");
  }

  #go(next: Edit[], history: "keep" | "replace" = "keep") {
    this.list = next;
    this.apply(next, history);
  }
}

/** The edits that are switched on, as a run takes them. */
export function calls(edits: Edit[]): string[] {
  return edits.filter((edit) => edit.isOn).map((edit) => edit.call);
}

/** Edits of some tokens are none of the head's own. */
function isOf(edit: Edit, name: string, start: Value[]): boolean {
  const call = parsed(edit.call);
  return (
    call?.name === name &&
    start.every((argument, index) => call.args[index] === argument) &&
    !("tokens" in call.options)
  );
}

function same(before: Edit[], other: Edit[]): boolean {
  return JSON.stringify(before) === JSON.stringify(other);
}
