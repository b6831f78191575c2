/** The selection in the fragment of the address: only what differs from the default. */

import { cleaned, DEFAULT, type Selection } from "./selection";

/** Parameters as a fragment, without `#`. Readable where a fragment may be: some characters need no escape there. */
export function fragmentOf(params: URLSearchParams): string {
  const readable: Record<string, string> = { "%3A": ":", "%2C": ",", "%2F": "/", "%27": "'", "%28": "(", "%29": ")" };
  return params.toString().replace(/%(3A|2C|2F|27|28|29)/g, (code) => readable[code] ?? code);
}

/** What differs from the default, by name. */
export function selectionParams(selection: Selection): Record<string, string> {
  const params: Record<string, string> = {};
  const put = (name: string, value: string, usual: string) => {
    if (value !== usual) params[name] = value;
  };
  put("view", selection.scale, DEFAULT.scale);
  if (selection.site) params.at = `${selection.site}H${selection.head}`;
  put("heads", selection.heads.join(","), selection.heads.length ? String(selection.head) : "");
  put("mean", selection.average ? "1" : "", "");
  put("as", selection.form, DEFAULT.form);
  put("axis", selection.axis, DEFAULT.axis);
  put("what", selection.what, DEFAULT.what);
  put("by", selection.by, DEFAULT.by);
  put("hide", selection.hide.join(","), "");
  put("off", selection.off.join(","), "");
  put("filter", selection.filter, DEFAULT.filter);
  put("threshold", String(selection.threshold), String(DEFAULT.threshold));
  put("mass", String(selection.mass), String(DEFAULT.mass));
  put("top", String(selection.top), String(DEFAULT.top));
  put("between", selection.pair, DEFAULT.pair);
  put("token", selection.token ? `${selection.token.side}:${selection.token.index}` : "", "");
  put("pictures", selection.thumbnails, DEFAULT.thumbnails);
  put("sort", selection.sort, "");
  put("colour", selection.colour, "");
  put("find", selection.find, "");
  put("least", String(selection.least), "0");
  put("neurons", selection.against === null ? selection.order : String(selection.against), DEFAULT.order);
  put("every", selection.every ?? "", "");
  put("fold", selection.fold.join(","), "");
  put("compare", selection.compare, DEFAULT.compare);
  put("beside", selection.beside, "");
  put("stream", selection.stream, DEFAULT.stream);
  put("whose", selection.whose, DEFAULT.whose);
  put("step", selection.step === null ? "" : String(selection.step), "");
  put("direction", selection.direction, DEFAULT.direction);
  put("arrows", selection.arrows ? "1" : "", "");
  put("rollout", selection.rollout ? "1" : "", "");
  put("relevance", selection.relevance, "");
  put("trees", selection.arcs, DEFAULT.arcs);
  return params;
}

/** The selection that a fragment names; what is not understood is as by default. */
export function selectionFrom(params: URLSearchParams): Selection {
  const at = /^(.*L\d+)(?:H(\d+))?$/.exec(params.get("at") ?? "");
  const neurons = params.get("neurons") ?? "";
  const against = /^\d{1,9}$/.test(neurons) ? Number(neurons) : null;
  const token = /^(query|key):(\d+)$/.exec(params.get("token") ?? "");
  const split = (name: string) => (params.get(name) ?? "").split(",").filter(Boolean);
  const number = (name: string) => (params.get(name) ? Number(params.get(name)) : undefined);
  return cleaned({
    scale: params.get("view"),
    site: at?.[1] ?? "",
    head: at?.[2] ? Number(at[2]) : 0,
    heads: split("heads").map(Number),
    average: params.get("mean") === "1",
    form: params.get("as"),
    axis: params.get("axis"),
    what: params.get("what"),
    by: params.get("by"),
    hide: split("hide"),
    off: split("off"),
    filter: params.get("filter"),
    threshold: number("threshold"),
    mass: number("mass"),
    top: number("top"),
    pair: params.get("between"),
    token: token ? { side: token[1], index: Number(token[2]) } : null,
    thumbnails: params.get("pictures"),
    sort: params.get("sort") ?? "",
    colour: params.get("colour") ?? "",
    find: params.get("find") ?? "",
    least: number("least"),
    order: against === null ? neurons : "token",
    against,
    every: params.get("every"),
    fold: split("fold"),
    compare: params.get("compare"),
    beside: params.get("beside") ?? "",
    stream: params.get("stream"),
    whose: params.get("whose"),
    step: number("step"),
    direction: params.get("direction"),
    arrows: params.get("arrows") === "1",
    rollout: params.get("rollout") === "1",
    relevance: params.get("relevance") ?? "",
    arcs: params.get("trees"),
  });
}
