import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";

const WORKBENCH = { entry: "src/main.ts", formats: ["es" as const], fileName: () => "headscope.js", cssFileName: "headscope" };
const REPORT = { entry: "src/report/main.ts", formats: ["iife" as const], name: "report", fileName: () => "report.js", cssFileName: "report" };
const PRUNE = { entry: "src/report/prune/main.ts", formats: ["iife" as const], name: "prune", fileName: () => "prune.js", cssFileName: "prune" };
const REPORTS: Record<string, typeof REPORT> = { report: REPORT, prune: PRUNE };

// A module and a style sheet for the workbench, for saved pages and for notebooks alike; with `--mode report` a script and
// a style sheet for the report of heads, with `--mode prune` for the report of a sweep. A build for each, so that none
// holds anything of another, nor shares a file with it.
export default defineConfig(({ mode }) => ({
  plugins: [svelte()],
  build: {
    outDir: process.env.HEADSCOPE_STATIC ?? "../src/headscope/static",
    emptyOutDir: !(mode in REPORTS),
    target: "es2022",
    cssCodeSplit: false,
    // Nobody bundles us again, so that nothing need be left readable.
    rolldownOptions: { output: { minify: true } },
    lib: REPORTS[mode] ?? WORKBENCH,
  },
  // Vitest empties style sheets otherwise, and a test reads the colours of one.
  test: { css: true },
}));
