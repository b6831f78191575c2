/** `npm run check`: layers and names of `src`. */

import { fileURLToPath } from "node:url";
import { layerProblems } from "./layers.mjs";
import { nameProblems } from "./names.mjs";
import { readSources } from "./sources.mjs";

const sources = readSources(fileURLToPath(new URL("../src", import.meta.url)));
const problems = [...layerProblems(sources), ...nameProblems(sources)];
for (const problem of problems) console.error(problem);
if (problems.length) process.exit(1);
console.log(`${sources.size} sources: layers and names as they should be`);
