/** Atlases on the server: the parts of each, and what can be made. */

import type { AtlasBuildRequest, AtlasOffer, AtlasSelection, AtlasTaskRequest, RunEvent } from "../contract";
import type { Source } from "../source";
import { decode, type Part } from "../wire";
import { partCache } from "./partCache";
import { asked, heard, posted } from "./servedPage";

const API = "api/atlases";

/** What the server offers now. */
export async function atlasOffers(signal?: AbortSignal): Promise<AtlasOffer[]> {
  return (await asked(API, { signal: signal ?? null })).json();
}

/** The parts of one atlas. */
export function atlasSource(id: string): Source {
  const load = async (key: string, signal: AbortSignal): Promise<Part<unknown>> => {
    const answer = await asked(`${API}/${encodeURIComponent(id)}/parts/${key}`, { signal });
    return decode(await answer.arrayBuffer());
  };
  return { isLive: true, part: partCache(load) };
}

/** Has a map or the scores made; gives the atlas's new id. Aborting the signal stops it: what is done stays. */
export async function makeOfAtlas(
  id: string,
  wanted: AtlasTaskRequest,
  hear: (event: RunEvent) => void,
  signal: AbortSignal,
): Promise<string> {
  const address = `${API}/${encodeURIComponent(id)}/tasks`;
  return (await heard(await asked(address, { ...posted(wanted), signal }), hear)).result;
}

/** Has an atlas made; gives its id. Aborting the signal stops it. */
export async function buildAtlas(
  wanted: AtlasBuildRequest,
  hear: (event: RunEvent) => void,
  signal: AbortSignal,
): Promise<string> {
  return (await heard(await asked(API, { ...posted(wanted), signal }), hear)).result;
}

/** The atlas, or the head in view, as one file that opens offline. */
export async function savedAtlas(id: string, selection: AtlasSelection): Promise<Blob> {
  return (await asked(`${API}/${encodeURIComponent(id)}/page`, posted({ selection }))).blob();
}
