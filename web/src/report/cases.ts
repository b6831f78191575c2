/** Examples in which a head does most what its role says, with the pairs that it joins. */

import type { Case, CaseToken, Pair } from "./contents";
import { make } from "./elements";
import { figure, isKnown } from "./figures";
import { endsOf, patchName, textOf } from "./pairEnds";

const SIDE = 160; // px of a picture
const ENDS = ["#2fd27e", "#ff4fa0"]; // of a pair of patches, on any picture

export function caseBox(example: Case): HTMLElement {
  const stage = make("div");
  const choose = (chosen: number) => {
    buttons.forEach((button, at) => {
      button.setAttribute("aria-pressed", String(at === chosen));
    });
    const pair = example.pairs[chosen];
    if (pair) stage.replaceChildren(example.image ? pictureCase(example, pair) : textCase(example, pair));
  };
  const buttons = example.pairs.map((pair, at) => {
    const [from, to] = namesOf(example, pair);
    const words = [make("em", { dir: "auto" }, [from]), " → ", make("strong", { dir: "auto" }, [to])];
    return make("button", { class: "pair" }, [...words, ` ${figure(pair[2])}`], { click: () => choose(at) });
  });
  choose(0);
  const score = isKnown(example.score) ? ` · ${figure(example.score)} over the example` : "";
  return make("div", { class: "case" }, [
    stage,
    make("div", {}, buttons),
    make("div", { class: "small" }, [example.id + score]),
  ]);
}

function namesOf(example: Case, pair: Pair): [from: string, to: string] {
  const { tokens, queries, image, grid } = example;
  if (image && grid) return [patchName(pair[0], grid), patchName(pair[1], grid)];
  const { from, to } = endsOf(example, pair);
  return [textOf(queries ?? tokens, from), textOf(tokens, to)];
}

function textCase(example: Case, pair: Pair): HTMLElement {
  const { tokens, queries } = example;
  const { from, to } = endsOf(example, pair);
  if (!queries) return tokensLine(tokens, from, to);
  return make("div", {}, [tokensLine(tokens, [], to), tokensLine(queries, from, [])]);
}

function tokensLine(tokens: CaseToken[], queries: number[], keys: number[]): HTMLElement {
  const line = make("p", { class: "text", dir: "auto" });
  tokens.forEach(([text, space, special], at) => {
    if (space) line.append(" ");
    const kinds = [special ? "special" : "", queries.includes(at) ? "q" : "", keys.includes(at) ? "k" : ""];
    line.append(make("span", { class: kinds.filter(Boolean).join(" ") }, [text]));
  });
  return line;
}

function pictureCase({ id, image, grid }: Case, pair: Pair): HTMLElement {
  const [rows, columns] = grid ?? [1, 1];
  const side = 2 * SIDE;
  const label = `${id}: the patch that looks, and the one it looks at`;
  const canvas = make("canvas", { class: "picture", width: side, height: side, role: "img", "aria-label": label });
  const context = canvas.getContext("2d") as CanvasRenderingContext2D;
  const [width, height] = [side / columns, side / rows];
  const picture = new Image();
  picture.onload = () => {
    context.imageSmoothingEnabled = false;
    context.drawImage(picture, 0, 0, side, side);
    ENDS.forEach((colour, end) => {
      const patch = pair[end] as number;
      if (patch < 0) return;
      const [x, y] = [(patch % columns) * width, Math.floor(patch / columns) * height];
      for (const [line, stroke] of [
        [5, "#000"],
        [3, colour],
      ] as const) {
        context.lineWidth = line;
        context.strokeStyle = stroke;
        context.strokeRect(x, y, width, height);
      }
    });
  };
  picture.setAttribute("src", image ?? "");
  return make("div", {}, [canvas]);
}
