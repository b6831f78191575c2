/** The checks fail where they should. */

import { expect, test } from "vitest";
import { layerProblems } from "./layers.mjs";
import { nameProblems } from "./names.mjs";

const layers = (files) => layerProblems(new Map(Object.entries(files)));
const names = (text, path = "data/a.ts") => nameProblems(new Map([[path, text]]));

test.each([
  ["data/a.ts", "views/b.ts"],
  ["hosts/a.ts", "app/b.ts"],
  ["views/a.ts", "app/b.ts"],
  ["marks/a.ts", "data/b.ts"],
  ["data/a.test.ts", "app/b.ts"],
  ["selection.ts", "views/b.ts"],
  ["app/a.ts", "main.ts"],
  ["elsewhere/a.ts", "data/b.ts"],
])("%s must not import %s, not even its types", (path, target) => {
  const address = `${path.includes("/") ? "../" : "./"}${target.replace(".ts", "")}`;
  for (const line of [
    `import { b } from "${address}";`,
    `import type { B } from "${address}";`,
    `export * from "${address}";`,
  ]) {
    expect(layers({ [path]: line, [target]: "" })).toEqual([`${path} must not import ${target}`]);
  }
});

test("components are looked into, and modules of Svelte", () => {
  const component = '<script lang="ts">\nimport { b } from "../app/b.svelte";\n</script>\n<p>{b}</p>';
  expect(layers({ "views/A.svelte": component, "app/b.svelte.ts": "" })).toHaveLength(1);
  expect(layers({ "app/A.svelte": component, "app/b.svelte.ts": "" })).toEqual([]);
});

test("components import slices of the workbench, not the workbench", () => {
  const files = (path) => ({
    [path]: '<script lang="ts">\nimport type { Workbench } from "./workbench.svelte";\n</script>',
    "app/workbench.svelte.ts": "",
  });
  expect(layers(files("app/App.svelte"))).toEqual([]);
  expect(layers(files("app/Toast.svelte"))).toEqual(["app/Toast.svelte must not import app/workbench.svelte.ts"]);
});

test("modules that import each other are refused, unless for their types alone", () => {
  const files = (first) => ({
    "data/a.ts": first,
    "data/b.ts": 'import { c } from "./c";',
    "data/c.ts": 'import { a } from "./a";',
  });
  expect(layers(files('import { b } from "./b";'))).toEqual(["cycle: data/a.ts → data/b.ts → data/c.ts → data/a.ts"]);
  expect(layers(files('import type { B } from "./b";'))).toEqual([]);
  expect(layers(files('import { type B } from "./b";'))).toEqual([]);
});

test.each([
  "const one = 1;",
  "let { a: [b, found] } = c;",
  "function f(a, { told = 1 }, ...rest) {}",
  "const f = (said: string) => 1;",
  "function made() {}",
  "class A { constructor(readonly held: string) {} }",
  "try {} catch (thing) {}",
  "type F = (given: string) => void;",
  "for (const entry of []) {}",
])("an empty name is refused: %s", (text) => {
  expect(names(text)).toHaveLength(1);
});

test("attributes may have any name; lines are counted", () => {
  expect(names("const { one: head } = a.found;\nb.said({ told: 1 });")).toEqual([]);
  expect(names("\n\nconst item = 1;")[0]).toMatch(/^data\/a\.ts:3 “item”/);
});

test("templates are looked into", () => {
  const component = (template) => `<script lang="ts">\nlet a = [];\n</script>\n${template}`;
  expect(names(component("{#each a as one}{one}{/each}"), "app/A.svelte")[0]).toMatch(/^app\/A\.svelte:4/);
  expect(names(component("{#each a as { b: item }}{item}{/each}"), "app/A.svelte")).toHaveLength(1);
  expect(names(component("<p onclick={(it) => it}>{@const res = 1}</p>"), "app/A.svelte").length).toBeGreaterThan(0);
  expect(names(component("{#each a as head}{head}{/each}"), "app/A.svelte")).toEqual([]);
});
