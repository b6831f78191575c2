/** An order in which the parts of a picture take turns, so that none is always on top; the same whenever it is asked for. */

export function shuffledOrder(count: number, seed = 1): Int32Array {
  const order = Int32Array.from({ length: count }, (_, index) => index);
  let state = seed >>> 0 || 1;
  for (let i = count - 1; i > 0; i--) {
    // Xorshift: good enough to mix, and quick.
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    const j = (state >>> 0) % (i + 1);
    const swapped = order[i] as number;
    order[i] = order[j] as number;
    order[j] = swapped;
  }
  return order;
}
