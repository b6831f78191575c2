/** Where an answer came from, over the picture: each patch of the input in the colour of its relevance. */

import type { StackProps } from "../contract";
import { type Relevance, signed } from "../data/relevance";
import { fillBox } from "../marks/boxes";
import type { Box } from "../marks/cells";
import type { Raster } from "../marks/raster";
import type { Theme } from "../theme";

/** How strong full colour is: the picture is still seen under it. */
const COVER = 0.85;

export class PatchRelevance {
  private constructor(
    private readonly answer: Relevance,
    private readonly values: Float32Array,
    /** What the tokens bring that are no patches. */
    private readonly rest: number,
    private readonly grid: [number, number],
    /** Height and width of a patch, as shares of the picture. */
    private readonly patch: [number, number],
  ) {}

  /** Null where no answer is chosen, or where its relevance is not one of patches. */
  static of(
    answer: Relevance | null,
    stack: StackProps,
    picture: { width: number; height: number; patch: [number, number] },
  ): PatchRelevance | null {
    const own = answer?.of(stack.name);
    if (!answer || !own || stack.kind !== "patches" || !stack.grid || own.length !== stack.texts.length) return null;
    const special = new Set(stack.special);
    const patches = stack.texts.map((_, index) => index).filter((index) => !special.has(index));
    if (patches.length !== stack.grid[0] * stack.grid[1]) return null;
    const rest = stack.special.reduce((sum, index) => sum + (own[index] as number), 0);
    return new PatchRelevance(
      answer,
      Float32Array.from(patches, (index) => own[index] as number),
      rest,
      stack.grid,
      [picture.patch[0] / picture.height, picture.patch[1] / picture.width],
    );
  }

  get title(): string {
    return `relevance to ${this.answer.answer}`;
  }

  /** All that the patches bring, and what is not theirs. */
  get sum(): string {
    const all = this.values.reduce((sum, value) => sum + value, 0);
    return `patches ${signed(all)}${this.rest ? ` · special ${signed(this.rest)}` : ""}`;
  }

  /** What the colours stand for. */
  get legend(): string {
    return `${this.title}: blue for it, orange against it, full colour at ±${signed(this.answer.most).slice(1)}`;
  }

  paint(raster: Raster, area: Box, theme: Theme): void {
    this.values.forEach((value, index) => {
      const share = this.answer.most ? Math.abs(value) / this.answer.most : 0;
      const colour = value < 0 ? theme.negative : theme.positive;
      if (share > 0) fillBox(raster, this.box(index, area), colour, COVER * share ** 0.75);
    });
  }

  /** The patch at a point of the picture, in words; nothing beside the patches. */
  tip(x: number, y: number, area: Box): string[] {
    const [rows, columns] = this.grid;
    const row = Math.floor((y - area.y) / (this.patch[0] * area.height));
    const column = Math.floor((x - area.x) / (this.patch[1] * area.width));
    if (row < 0 || column < 0 || row >= rows || column >= columns) return [];
    const index = row * columns + column;
    return [`${row + 1}·${column + 1}`, this.answer.told(this.values[index] as number)];
  }

  /** On whole pixels, so that neighbours neither overlap nor leave a gap. */
  private box(index: number, area: Box): Box {
    const [row, column] = [Math.floor(index / this.grid[1]), index % this.grid[1]];
    const x = (at: number) => Math.round(area.x + Math.min(1, at * this.patch[1]) * area.width);
    const y = (at: number) => Math.round(area.y + Math.min(1, at * this.patch[0]) * area.height);
    return { x: x(column), y: y(row), width: x(column + 1) - x(column), height: y(row + 1) - y(row) };
  }
}
