/** Find in text: the places where a text occurs among the tokens in view, and which of them one is at. */

import { occurrences } from "../data/find";
import type { Token } from "./columns";
import type { Scene } from "./scene";

export class Search {
  text = "";
  /** The tokens of each place. */
  places: Token[][] = [];
  index = -1;

  get current(): Token[] | undefined {
    return this.places[this.index];
  }

  /** Look for another text; the first place is the one at or after what is in view. */
  begin(scene: Scene, text: string, first: number): void {
    this.text = text;
    this.places = placesOf(scene, text);
    const next = this.places.findIndex((place) => (place[0] as Token).index >= first);
    this.index = this.places.length ? Math.max(0, next) : -1;
  }

  step(direction: 1 | -1): void {
    const count = this.places.length;
    if (count) this.index = (this.index + direction + count) % count;
  }

  /** The same text among other tokens. */
  again(scene: Scene): void {
    if (!this.text) return;
    this.places = placesOf(scene, this.text);
    this.index = Math.min(this.index, this.places.length - 1);
  }

  /** All tokens found, on both sides where they are the same, and which of them is the current place's first. */
  marked({ isSelf }: Scene): { tokens: Token[]; current: number } {
    const tokens: Token[] = [];
    let current = -1;
    this.places.forEach((place, at) => {
      if (at === this.index) current = tokens.length;
      for (const token of place) {
        tokens.push(token);
        if (isSelf) tokens.push({ side: "key", index: token.index });
      }
    });
    return { tokens, current };
  }
}

function placesOf(scene: Scene, text: string): Token[][] {
  const { queries, keys } = scene.layer;
  const on = (side: Token["side"], reading: typeof queries) =>
    occurrences(reading, text).map((tokens) => tokens.map((index): Token => ({ side, index })));
  return scene.isSelf ? on("query", queries) : [...on("query", queries), ...on("key", keys)];
}
