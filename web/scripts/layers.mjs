/** The layers of the page: which folder may import which, and no cycles among modules. */

import { posix } from "node:path";
import { syntaxTree, walk } from "./sources.mjs";

/** The folders that each folder may import beside itself; "." is the top of `src`. */
const ALLOWED = {
  ".": ["data"],
  marks: ["."],
  data: ["."],
  hosts: [".", "data"],
  views: [".", "data", "marks"],
  report: [".", "marks"],
  app: [".", "data", "hosts", "marks", "views"],
};
/** Where the page and the widget begin: they import everything, and nothing else imports them. */
const ENTRIES = ["main.ts", "widget.ts"];
/** The whole state of the page: components import the slices that they use (`app/slices.ts`). */
const WHOLE = "app/workbench.svelte.ts";
const WHO_HOLDS_IT = ["app/App.svelte", "app/workbench.fixture.ts"];

/** What is wrong with the imports of these sources, a line each. */
export function layerProblems(sources) {
  const problems = [];
  const graph = new Map();
  for (const [path, text] of sources) {
    const values = new Set();
    for (const { target, isType } of importsOf(path, text, sources)) {
      if (!isType) values.add(target);
      if (!isAllowed(path, target)) problems.push(`${path} must not import ${target}`);
    }
    graph.set(path, values);
  }
  return [...problems, ...cyclesOf(graph).map((cycle) => `cycle: ${cycle.join(" → ")}`)];
}

function isAllowed(path, target) {
  if (ENTRIES.includes(path)) return true;
  if (ENTRIES.includes(target)) return false;
  if (target === WHOLE) return WHO_HOLDS_IT.includes(path);
  const [from, to] = [folderOf(path), folderOf(target)];
  return from === to || (ALLOWED[from]?.includes(to) ?? false);
}

function folderOf(path) {
  return path.includes("/") ? path.slice(0, path.indexOf("/")) : ".";
}

/** The modules of ours that a source imports, and whether for their types alone. */
function importsOf(path, text, sources) {
  const imports = [];
  walk(syntaxTree(path, text), (node) => {
    const { source, importKind, exportKind, specifiers } = node;
    if (!/^(Import|Export)/.test(node.type) || typeof source?.value !== "string" || !source.value.startsWith("."))
      return;
    const address = posix.join(posix.dirname(path), source.value);
    const target = ["", ".ts", ".svelte.ts"].map((ending) => address + ending).find((name) => sources.has(name));
    const areTypes = specifiers?.length && specifiers.every((specifier) => specifier.importKind === "type");
    if (target) imports.push({ target, isType: importKind === "type" || exportKind === "type" || !!areTypes });
  });
  return imports;
}

/** Every module that can be reached from itself, in cycles as they were come upon. */
function cyclesOf(graph) {
  const cycles = [];
  const done = new Set();
  const way = [];
  const visit = (path) => {
    if (way.includes(path)) cycles.push([...way.slice(way.indexOf(path)), path]);
    if (done.has(path) || way.includes(path)) return;
    way.push(path);
    for (const target of graph.get(path) ?? []) visit(target);
    way.pop();
    done.add(path);
  };
  for (const path of graph.keys()) visit(path);
  return cycles;
}
