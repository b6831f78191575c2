/** What is written on the model view: names of layers and heads, the legend, and words under each head. */

import type { SiteProps } from "../contract";
import { type Measures, number, spoken, titleOf } from "../data/measures";
import { headName } from "../data/trace";
import type { Box } from "../marks/cells";
import type { Selection } from "../selection";
import type { Theme } from "../theme";
import type { Grid, Mark } from "./grid";
import type { Label, Ruler } from "./labels";

interface Captioned {
  measures: Measures;
  selection: Pick<Selection, "sort" | "colour">;
  isDifference: boolean;
}

interface Content extends Captioned {
  grid: Grid;
  /** Where the colours are explained, while there are any. */
  legend: { x: number; width: number } | null;
  ruler: Pick<Ruler, "width">;
  theme: Theme;
  /** Whether the filter leaves a head in. */
  passes(name: string): boolean;
  isEdited(name: string): boolean;
  /** Whether a layer's MLP or residual stream was edited. */
  isEditedLayer(site: SiteProps): boolean;
}

/** The tag of an edited head, in the corner of its picture; smaller pictures have a frame alone. */
const EDITED = { text: "edited", size: 9, width: 36, height: 12, least: 40 };

export function editedTag({ x, y }: { x: number; y: number }, size: number): Box {
  return size < EDITED.least
    ? { x: x + size - 6, y, width: 6, height: 6 }
    : { x: x + size - EDITED.width, y, width: EDITED.width, height: EDITED.height };
}

/** Beside the heads of an edited layer. */
export function layerBar({ x, y }: { x: number; y: number }, size: number): Box {
  return { x: x - 6, y, width: 3, height: size };
}

export function labelsOf(content: Content): Label[] {
  const { grid, measures, selection, isDifference, legend, ruler, theme } = content;
  const { sort, colour } = selection;
  const labels = grid.marks.flatMap((mark) => markLabels(mark, content));
  if (colour && legend) {
    const { x, width } = legend;
    const about = measures.methods.find((candidate) => candidate.name === colour);
    const words = { y: 17, width: 200, size: 11, colour: theme.secondary } as const;
    labels.push({ ...words, text: titleOf(colour), x: x - 44, align: "right" });
    labels.push({ ...words, text: number(about?.low ?? 0), x: x - 8, align: "right", colour: theme.tertiary });
    labels.push({
      ...words,
      text: number(about?.high ?? 1),
      x: x + width + 8,
      align: "left",
      colour: theme.tertiary,
    });
  }
  for (const place of grid.places) {
    if (!content.isEdited(headName(place.site.site, place.head)) || grid.size < EDITED.least) continue;
    const { x, y, width } = editedTag(place, grid.size);
    const at = { x: x + width / 2, y: y + EDITED.height / 2, width, align: "centre" as const };
    labels.push({ ...at, text: EDITED.text, size: EDITED.size, colour: theme.background, isBold: true });
  }
  if (!grid.caption) return labels;
  const isOfEach = !sort && !colour && !isDifference;
  for (const place of grid.places) {
    const name = headName(place.site.site, place.head);
    if (!content.passes(name)) continue;
    const { text, value } = captionOf(content, name);
    if (Number.isNaN(value) && !sort) continue;
    const y = place.y + grid.size + 9;
    const small = { size: 10, colour: theme.tertiary } as const;
    const tone = sort ? theme.secondary : theme.tertiary;
    const isStacked = grid.caption > 20;
    const room = ruler.width(number(value), 10) + 4;
    const width = isStacked ? grid.size + 6 : grid.size - room;
    const isNamed = sort !== "" || ruler.width(text, 10) <= width;
    if (!isNamed && isOfEach) {
      // A number of a measure that is not named says nothing.
      const short = text.replace(/ (tokens?|patch(es)?)$/, ""); // what everything here is
      labels.push({ ...small, text: short, x: place.x, y, align: "left", width: grid.size + 6, colour: tone });
      continue;
    }
    // Of a measure that all heads are coloured by, the number alone says more than a name that is cut.
    if (isNamed) labels.push({ ...small, text, x: place.x, y, align: "left", width, colour: tone });
    if (isStacked) {
      const below = isNamed ? y + 12 : y;
      labels.push({ ...small, text: number(value), x: place.x, y: below, align: "left", width: grid.size });
    } else labels.push({ ...small, text: number(value), x: place.x + grid.size, y, align: "right", width: room });
  }
  return labels;
}

/** The name of a layer, a head or a stack; under that of an edited layer, that it was. */
function markLabels(mark: Mark, { grid, theme, isEditedLayer }: Content): Label[] {
  const isEdited = mark.site !== undefined && isEditedLayer(mark.site);
  const { text, x, y, align } = mark;
  const label: Label = {
    text,
    x,
    y,
    align,
    width: 400,
    size: mark.isTitle ? 12 : 11,
    colour: isEdited ? theme.warn : mark.isTitle ? theme.secondary : theme.tertiary,
    isBold: isEdited || (mark.isTitle ?? false),
  };
  if (!isEdited || grid.size < EDITED.least) return [label];
  return [label, { ...label, text: EDITED.text, y: y + 12, size: EDITED.size }];
}

/** What is written under a head: what heads are sorted by, else coloured by, else what stands out in it. */
export function captionOf(
  { measures, selection, isDifference }: Captioned,
  name: string,
): { text: string; value: number } {
  const { sort, colour } = selection;
  if (sort) return { text: name, value: measures.of(name, sort) };
  if (colour) return { text: spoken(colour), value: measures.of(name, colour) };
  if (isDifference) return { text: "moved", value: measures.of(name, "total_variation") };
  const best = measures.best(name);
  return { text: spoken(best?.name ?? ""), value: best?.value ?? Number.NaN };
}
