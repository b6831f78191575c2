/** A row of signed cells: a vector, neuron by neuron. Where cells are smaller than pixels the strongest of them is seen. */

import type { Box } from "./cells";
import type { Raster } from "./raster";

/** Draw values in an order over a box, with `signedRamp` colours; `full` is the size from which colour is full. */
export function drawStrip(
  raster: Raster,
  values: Float32Array,
  order: Int32Array | null,
  box: Box,
  colours: Uint32Array,
  full: number,
): void {
  const left = Math.round(box.x);
  const top = Math.max(0, Math.round(box.y));
  const width = Math.round(box.x + box.width) - left;
  const bottom = Math.min(raster.height, Math.round(box.y + box.height));
  const count = values.length;
  if (!count || bottom <= top || width <= 0) return;
  const { words } = raster;
  const from = Math.max(0, -left);
  const to = Math.min(width, raster.width - left);
  const start = top * raster.width + left;
  for (let x = from; x < to; x++) {
    const first = Math.min(count - 1, Math.floor((x * count) / width + (count <= width ? 0.5 * (count / width) : 0)));
    const last = count <= width ? first + 1 : Math.max(first + 1, Math.floor(((x + 1) * count) / width));
    let most = 0;
    for (let cell = first; cell < last; cell++) {
      const value = values[order ? (order[cell] as number) : cell] as number;
      if (Math.abs(value) > Math.abs(most)) most = value;
    }
    const share = Math.max(-1, Math.min(1, most / full));
    words[start + x] = colours[Math.round(128 + 127 * share)] as number;
  }
  for (let y = top + 1; y < bottom; y++) {
    words.copyWithin(y * raster.width + left + from, start + from, start + to);
  }
}
