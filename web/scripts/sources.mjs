/** The sources of the page, parsed: TypeScript and Svelte by the same parser. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "svelte/compiler";

/** All sources below a folder, by their path in it. */
export function readSources(root) {
  const paths = readdirSync(root, { recursive: true }).map((path) => path.replaceAll("\\", "/"));
  const sources = paths.filter((path) => /\.(ts|svelte)$/.test(path)).sort();
  return new Map(sources.map((path) => [path, readFileSync(join(root, path), "utf8")]));
}

/** The syntax tree of a source. */
export function syntaxTree(path, text) {
  return parse(path.endsWith(".svelte") ? text : `<script lang="ts">${text}\n</script>`, { modern: true });
}

/** Calls `visit` with every node of a tree. */
export function walk(node, visit) {
  if (Array.isArray(node)) {
    for (const child of node) walk(child, visit);
  } else if (node && typeof node === "object") {
    if (typeof node.type === "string") visit(node);
    for (const [key, child] of Object.entries(node)) if (key !== "loc" && key !== "metadata") walk(child, visit);
  }
}
