import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

// One module and one style sheet, for the workbench, for saved pages and for notebooks alike.
export default defineConfig({
  plugins: [svelte()],
  build: {
    outDir: process.env.HEADSCOPE_STATIC ?? "../src/headscope/static",
    emptyOutDir: true,
    target: "es2022",
    cssCodeSplit: false,
    // Nobody bundles us again, so that nothing need be left readable.
    rolldownOptions: { output: { minify: true } },
    lib: { entry: "src/main.ts", formats: ["es"], fileName: () => "headscope.js", cssFileName: "headscope" },
  },
});
