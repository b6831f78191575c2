/** Taking the atlas away: one file that opens offline, a picture, numbers. */

import { savedAtlas } from "../../hosts/atlasServer";
import { copyOfPage } from "../../hosts/file";
import { attempt, download, fileSize, savedNumbers } from "../save/saving";
import type { Charted, Linked, Messages } from "../slices";
import type { AtlasBench } from "./atlasBench.svelte";

export function saveAtlasPage(bench: Charted & Messages & Linked) {
  return attempt(bench, async () => {
    const { charts, home } = bench;
    if (!charts.open) return;
    bench.say("Collecting the points …");
    const { atlas } = charts.open;
    const page =
      home.kind === "file"
        ? copyOfPage(home.root, bench.link)
        : home.kind === "notebook"
          ? await home.page()
          : await savedAtlas(atlas.id, charts.selection);
    const name = `${fileName(charts)}.html`;
    download(page, name);
    bench.say(`Saved ${name} (${fileSize(page)}). It opens without a server.`);
  });
}

export function saveAtlasPicture(bench: Charted & Messages) {
  return attempt(bench, async () => {
    const picture = await bench.charts.view?.picture();
    if (!picture) return;
    const file = await new Promise<Blob | null>((done) => picture.toBlob(done, "image/png"));
    if (!file) throw new Error("The picture is too large for this browser.");
    const name = `${fileName(bench.charts)}.png`;
    download(file, name);
    bench.say(`Saved ${name}, ${picture.width} × ${picture.height} pixels.`);
  });
}

export function saveAtlasNumbers(bench: Charted & Messages, format: "csv" | "json") {
  return attempt(bench, async () => savedNumbers(bench, bench.charts, fileName(bench.charts), format));
}

function fileName({ open, selection }: AtlasBench): string {
  const model = open?.atlas.model_name.split("/").at(-1) ?? "";
  return ["headscope-atlas", model, selection.place]
    .filter(Boolean)
    .join("-")
    .replace(/[^\w.-]+/g, "-");
}
