/** Which keys find something here: a saved page has nothing to run, and holds only what was put into it. */

import { stepsOf } from "../data/steps";
import { headName, siteOf } from "../data/trace";
import { queryOf } from "../views/neuron";
import type { Charted, Place, Runs, Searching, Selecting } from "./slices";

export interface KeysHere {
  run: boolean;
  find: boolean;
  atlas: boolean;
  step: boolean;
  neurons: boolean;
}

export function keysHere(bench: Place & Charted & Runs & Searching & Selecting): KeysHere {
  const isPage = bench.home.kind === "page";
  return {
    run: isPage,
    find: isPage || bench.finder.found !== null,
    atlas: bench.selection.scale === "atlas" || bench.charts.isOffered,
    step: bench.shown !== null && stepsOf(bench.shown.trace) !== null,
    neurons: hasNeurons(bench),
  };
}

/** Whether the neurons of the head in focus can be shown: of all queries, or of the one that the view would open on. */
function hasNeurons({ shown: run, selection }: Runs & Selecting): boolean {
  if (!run) return true;
  const { source, trace } = run;
  const site = siteOf(trace, selection.site);
  if (site.no_neurons) return false;
  if (!source.has || source.isLive) return true;
  const all = `neuron/${headName(site.site, selection.head)}`;
  return source.has(all) || source.has(`${all}?query=${queryOf(selection, site)}`);
}
