/** Round numbers for an axis. */

/** The smallest of …, 1, 2, 5, 10, 20, … that is at least this. */
export function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5].map((factor) => factor * power).find((step) => step >= least) ?? 10 * power;
}

/** Round positions of a stretch, [first, last), as many as have room: `apart` pixels for each. */
export function roundPositions([first, last]: [number, number], pixels: number, apart: number): number[] {
  const step = roundStep(Math.max(1, ((last - first) * apart) / Math.max(1, pixels)));
  const positions: number[] = [];
  for (let at = Math.ceil(first / step) * step; at < last; at += step) positions.push(at);
  return positions;
}
