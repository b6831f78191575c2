/** The atlas on screen as Python. */

import { DEFAULT_ATLASSELECTION as DEFAULT } from "../../contract";
import type { AtlasBench } from "./atlasBench.svelte";

/** Lines that open this atlas, and read the map in view and the search. The folder is to be filled in. */
export function atlasPython({ open, selection }: AtlasBench): string {
  const { method, dims, coordinates, place, search, regex, ignore_case } = selection;
  const options = [
    ...(method !== DEFAULT.method ? [JSON.stringify(method)] : []),
    ...(dims !== DEFAULT.dims ? [`dims=${dims}`] : []),
    ...(coordinates !== DEFAULT.coordinates ? [`coordinates=${JSON.stringify(coordinates)}`] : []),
  ];
  const head = place || open?.atlas.places[0]?.address || "L0H0";
  const switches = `${regex ? ", regex=True" : ""}${ignore_case ? ", ignore_case=True" : ""}`;
  return [
    "import headscope as hs",
    "",
    `atlas = hs.open_atlas("my-atlas")  # the folder of the atlas of ${open?.atlas.model_name ?? "the model"}`,
    `points = atlas.map(${[JSON.stringify(head), ...options].join(", ")})`,
    ...(search ? [`search = atlas.search(${JSON.stringify(search)}${switches})`] : []),
    "",
  ].join("\n");
}
