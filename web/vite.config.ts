import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";

const WORKBENCH = { entry: "src/main.ts", formats: ["es" as const], fileName: () => "headscope.js", cssFileName: "headscope" };
const REPORT = { entry: "src/report/main.ts", formats: ["iife" as const], name: "report", fileName: () => "report.js", cssFileName: "report" };

// A module and a style sheet for the workbench, for saved pages and for notebooks alike; with `--mode report` a script and
// a style sheet for the report of heads. Two builds, so that neither holds anything of the other, nor shares a file with it.
export default defineConfig(({ mode }) => ({
  plugins: [svelte()],
  build: {
    outDir: process.env.HEADSCOPE_STATIC ?? "../src/headscope/static",
    emptyOutDir: mode !== "report",
    target: "es2022",
    cssCodeSplit: false,
    // Nobody bundles us again, so that nothing need be left readable.
    rolldownOptions: { output: { minify: true } },
    lib: mode === "report" ? REPORT : WORKBENCH,
  },
  // Vitest empties style sheets otherwise, and a test reads the colours of one.
  test: { css: true },
}));
