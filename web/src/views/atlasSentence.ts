/** The example of the token in focus, beside the map: its attention in this head as the head view draws it, and the
 *  pattern averaged by position over all examples. */

import type {
  AtlasAggregateProps,
  AtlasPatternProps,
  AtlasPlaceProps,
  AtlasSelection,
  AtlasSpot,
  ImageProps,
  TraceProps,
} from "../contract";
import { type Example, exampleOf } from "../data/atlasExample";
import type { AtlasStore } from "../data/atlasStore";
import { number } from "../data/measures";
import { hiddenPositions } from "../data/reading";
import { drawCells, ramp } from "../marks/cells";
import { Raster } from "../marks/raster";
import { DEFAULT, type Selection, type Side } from "../selection";
import { FONT, type Theme, themeOf } from "../theme";
import { floats, type Grid, type Part } from "../wire";
import type { AtlasHost } from "./atlasHost";
import { button } from "./atlasTools";
import { mountHead } from "./headForms";
import type { Host, Mounted } from "./view";

const SMALL = 132; // px, the aggregate beside the example
const SMALLER = 84;

export class SentencePanel {
  readonly element = document.createElement("section");
  private readonly title = document.createElement("h2");
  private readonly line = document.createElement("p");
  private readonly place = document.createElement("div");
  private readonly average = document.createElement("figure");
  private readonly run = button("Run in the model");
  private inner: Mounted | null = null;
  private innerOf = "";
  private aggregate: { part: Part<AtlasAggregateProps>; isLarge: boolean } | null = null;
  private shownExample = -1;
  private positions: Record<Side, number[]> = { query: [], key: [] };
  private first: Record<Side, number> = { query: 0, key: 0 };

  constructor(
    private readonly host: AtlasHost,
    private readonly store: AtlasStore,
    /** The pointer is on a token of the example; null no longer. */
    private readonly hovered: (spot: AtlasSpot | null) => void,
  ) {
    const close = button("Close", "", "Close the example");
    close.addEventListener("click", () => {
      this.closed();
      host.select({ sentence: false });
    });
    this.run.addEventListener("click", () => host.open?.(this.shownExample, this.selectionPlace));
    this.run.title = "Run this example in the model and look at this head";
    const top = document.createElement("header");
    for (const element of [this.run, close])
      Object.assign(element.style, { border: "1px solid var(--line)", borderRadius: "6px" });
    top.append(this.title, this.run, close);
    this.element.setAttribute("aria-label", "Example");
    Object.assign(this.element.style, {
      position: "absolute",
      display: "flex",
      flexDirection: "column",
      minWidth: "0",
      font: `13px/1.4 ${FONT}`,
      boxSizing: "border-box",
      background: "var(--background)",
      color: "var(--ink)",
    });
    Object.assign(top.style, { display: "flex", gap: "8px", alignItems: "center", padding: "8px 10px 2px" });
    Object.assign(this.title.style, { margin: "0", font: `600 13px ${FONT}`, flex: "1" });
    Object.assign(this.line.style, {
      margin: "0",
      padding: "0 10px 4px",
      font: `11px/1.4 ${FONT}`,
      color: "var(--secondary)",
    });
    Object.assign(this.place.style, { position: "relative", flex: "1", minHeight: "0" });
    Object.assign(this.average.style, {
      margin: "0",
      padding: "8px 10px 10px",
      font: `11px/1.4 ${FONT}`,
      display: "flex",
      gap: "10px",
      flexWrap: "wrap",
      alignItems: "flex-start",
      borderTop: "1px solid var(--line)",
      color: "var(--secondary)",
    });
    this.line.setAttribute("role", "status");
    this.element.append(top, this.line, this.place, this.average);
  }

  /** Hears that the user closed it. */
  closed: () => void = () => {};
  private selectionPlace = "";

  /** Show the example of the token in focus. */
  async show(selection: AtlasSelection, example: number, signal: AbortSignal): Promise<void> {
    const { store, host } = this;
    const place = store.places.get(selection.place);
    if (!place) return;
    this.selectionPlace = selection.place;
    this.shownExample = example;
    this.title.textContent = `${place.address}, ${selection.average ? "mean by position" : `example ${example + 1}`}`;
    this.line.hidden = selection.average; // it is about the example
    this.run.hidden = !host.open;
    const head = encodeURIComponent(place.address);
    const address = `pattern?head=${head}&example=${example}`;
    const [pattern, image] = await Promise.all([
      store.atlas.has_vectors ? host.source.part<AtlasPatternProps>(address, signal) : null,
      store.atlas.images ? host.source.part<ImageProps>(`image?example=${example}`, signal).catch(() => null) : null,
    ]);
    signal.throwIfAborted();
    if (!pattern) {
      this.showWords(place, selection.token, example);
      return;
    }
    const isWeighed = selection.weigh;
    const name = JSON.stringify([place.address, example, isWeighed]);
    const parts = exampleOf({ atlas: store.atlas, place, pattern, tokens: store.tokens, image, isWeighed });
    this.first = { query: pattern.props.first_query, key: pattern.props.first_key };
    const lacksNorms = isWeighed && !pattern.arrays.value_norm ? ["norms of values are not in this atlas"] : [];
    if (this.innerOf !== name) this.mountExample(parts, name, [pattern.props.note, ...lacksNorms].filter(Boolean));
    await this.showAverage(selection, signal);
    await this.inner?.update(this.headSelection(selection, place, parts.trace));
  }

  private mountExample({ trace, source }: Example, name: string, notes: string[]): void {
    this.inner?.destroy();
    this.place.replaceChildren();
    this.inner = mountHead(this.place, this.hostOf(trace, source, notes));
    this.innerOf = name;
  }

  /** The selection of the head view that shows the same. */
  private headSelection(selection: AtlasSelection, place: AtlasPlaceProps, trace: TraceProps): Selection {
    const [queries, keys] = [trace.stacks[0], trace.stacks.at(-1)].map((stack) => {
      const hidden = stack ? hiddenPositions(stack, selection.hide) : new Set<number>();
      return (stack?.texts ?? []).map((_, position) => position).filter((position) => !hidden.has(position));
    }) as [number[], number[]];
    this.positions = { query: queries, key: keys };
    const isPicture = trace.stacks.some(({ looks }) => looks === "image");
    const isFlows = selection.flows && isPicture;
    return {
      ...DEFAULT,
      scale: "head",
      site: place.site,
      head: place.head ?? 0,
      heads: [place.head ?? 0],
      hide: selection.hide,
      token: isFlows ? null : this.indexOf(selection.token),
      direction: selection.token?.role === "key" ? "to" : "from",
      arrows: isPicture,
      mass: isFlows ? DEFAULT.mass : 1,
    };
  }

  /** An atlas without queries and keys has the words of an example, and no attention. */
  private showWords(place: AtlasPlaceProps, spot: AtlasSpot | null, example: number): void {
    this.inner?.destroy();
    this.inner = null;
    this.innerOf = "";
    this.aggregate = null;
    this.average.replaceChildren();
    this.average.style.display = "none";
    const runs = this.host.open ? " Run it in the model to see it." : "";
    this.line.textContent = `Its attention is not in this atlas, which holds maps alone.${runs}`;
    const stack = place.clouds.find(({ role }) => role === spot?.role)?.stack ?? "";
    const tokens = this.store.tokens[stack];
    const words = document.createElement("p");
    Object.assign(words.style, { padding: "6px 10px", font: `14px/1.6 ${FONT}`, overflow: "auto", height: "100%" });
    const [first, end] = tokens?.rowsOf(example) ?? [0, 0];
    for (let row = first; tokens && row < end; row++) {
      const word = document.createElement(row === spot?.row ? "mark" : "span");
      word.textContent = tokens.text(row);
      if (row === spot?.row) Object.assign(word.style, { background: "var(--tint)", color: "var(--accent)" });
      words.append(word, " ");
    }
    this.place.replaceChildren(words);
  }

  redraw(): void {
    this.inner?.redraw();
    this.paintAverage();
  }

  key(event: KeyboardEvent): boolean {
    return (event.key === "ArrowUp" || event.key === "ArrowDown") && (this.inner?.key(event) ?? false);
  }

  destroy(): void {
    this.inner?.destroy();
    this.inner = null;
    this.innerOf = "";
    this.element.remove();
  }

  /** The pattern averaged by position: small beside the example, or in its place. */
  private async showAverage(selection: AtlasSelection, signal: AbortSignal): Promise<void> {
    const key = `aggregate?head=${encodeURIComponent(selection.place)}`;
    const part = await this.host.source.part<AtlasAggregateProps>(key, signal);
    signal.throwIfAborted();
    this.aggregate = { part, isLarge: selection.average };
    this.average.style.display = "flex";
    this.place.style.display = selection.average ? "none" : "";
    this.paintAverage();
  }

  private paintAverage(): void {
    if (!this.aggregate) return;
    const { part, isLarge } = this.aggregate;
    const theme = themeOf(this.element);
    const { clientWidth: width, clientHeight: height } = this.element;
    const least = height < 560 ? SMALLER : SMALL;
    const side = isLarge ? Math.max(least, Math.min(width - 20, height - 130)) : least;
    const words = document.createElement("figcaption");
    const grid = part.arrays.weights as Grid;
    const [rows, columns] = grid.shape as [number, number];
    const weights = floats(grid);
    const most = weights.reduce((sum, weight) => (weight > sum ? weight : sum), 0);
    const examples = part.props.n_examples.toLocaleString("en");
    words.textContent =
      `Average by position over ${examples} examples: from positions 0 to ${rows - 1} (down), to positions 0 to ` +
      `${columns - 1} (across). Full colour: ${number(most)}, square-root scale. ${part.props.note}`;
    words.style.flex = "1 1 130px";
    this.average.replaceChildren(averageCanvas(weights, rows, columns, side, most, theme), words);
  }

  private indexOf(spot: AtlasSpot | null): { side: Side; index: number } | null {
    if (!spot) return null;
    const side = spot.role === "key" ? "key" : "query";
    const index = this.positions[side].indexOf(spot.row - this.first[side]);
    return index < 0 ? null : { side, index };
  }

  private hostOf(trace: Host["trace"], source: Host["source"], notes: string[]): Host {
    const spotOf = (token: { side: Side; index: number } | null): AtlasSpot | null => {
      const position = token && this.positions[token.side][token.index];
      return token && position !== undefined && position !== null
        ? { role: token.side, row: this.first[token.side] + position }
        : null;
    };
    return {
      source,
      trace,
      scores: null,
      relevance: null,
      select: (change, history) => {
        if ("token" in change) {
          const spot = spotOf(change.token ?? null);
          if (spot) this.host.select({ token: spot }, history);
        }
      },
      say: (line, more = []) => {
        this.line.textContent = [line, ...more, ...notes].filter(Boolean).join(" · ");
      },
      fail: (problem) => {
        if (problem) this.line.textContent = problem.message;
      },
      tip: (at, lines, around) => this.host.tip(at, lines, around),
      hover: (token) => this.hovered(spotOf(token)),
    };
  }
}

function averageCanvas(
  weights: Float32Array,
  rows: number,
  columns: number,
  side: number,
  most: number,
  theme: Theme,
): HTMLCanvasElement {
  const scale = Math.max(1, window.devicePixelRatio || 1);
  const raster = new Raster(side * scale, side * scale).fill(theme.panel);
  const bytes = Uint8Array.from(weights, (weight) => (weight > 0 ? Math.round(255 * Math.sqrt(weight / most)) : 0));
  drawCells(raster, bytes, rows, columns, { x: 0, y: 0, width: raster.width, height: raster.height }, ramp(theme));
  const canvas = document.createElement("canvas");
  raster.show(canvas.getContext("2d") as CanvasRenderingContext2D);
  Object.assign(canvas.style, { width: `${side}px`, height: `${side}px`, border: "1px solid var(--line)" });
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", "Attention averaged by position");
  return canvas;
}
