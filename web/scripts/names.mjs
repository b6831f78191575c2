/** Names that say nothing: no variable, parameter or function of the page has one. */

import { syntaxTree, walk } from "./sources.mjs";

const EMPTY = "one found told said shown given made held item thing entry obj res it".split(" ");

/** Where these sources use an empty name, a line each. */
export function nameProblems(sources) {
  const problems = [];
  for (const [path, text] of sources) {
    const shift = path.endsWith(".svelte") ? 0 : '<script lang="ts">'.length;
    for (const { name, start } of names(syntaxTree(path, text))) {
      if (!EMPTY.includes(name)) continue;
      const line = text.slice(0, start - shift).split("\n").length;
      problems.push(`${path}:${line} “${name}” says nothing: name what it holds`);
    }
  }
  return problems;
}

/** The identifiers that a tree declares. */
function names(tree) {
  const patterns = [];
  walk(tree, (node) => {
    if (node.type === "VariableDeclarator" || node.type === "FunctionDeclaration") patterns.push(node.id);
    else if (node.type === "CatchClause") patterns.push(node.param);
    else if (node.type === "EachBlock") patterns.push(node.context);
    // Functions and snippets, and the types of functions.
    for (const parameters of [node.params, node.parameters])
      if (Array.isArray(parameters)) patterns.push(...parameters);
  });
  return patterns.flatMap(bound);
}

/** The identifiers in a pattern: `{ a, b: [c, ...d], e = 1 }` has five less one. */
function bound(pattern) {
  switch (pattern?.type) {
    case "Identifier":
      return [pattern];
    case "ObjectPattern":
      return pattern.properties.flatMap((property) => bound(property.value ?? property.argument));
    case "ArrayPattern":
      return pattern.elements.flatMap(bound);
    case "AssignmentPattern":
      return bound(pattern.left);
    case "RestElement":
      return bound(pattern.argument);
    case "TSParameterProperty":
      return bound(pattern.parameter);
    default:
      return [];
  }
}
