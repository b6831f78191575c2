/** Points of a head that glide from one map of it to another, where motion is welcome. */

import type { HeadMap } from "../data/atlasPoints";

const GLIDE = 450; // ms
const MOST = 200_000; // points: more would not move smoothly
const FULL = 0xffff;

export class Glide {
  private frame = 0;
  private arrive: (() => void) | null = null;

  /** `show` draws the points at a map on the way; null: where they belong. */
  constructor(private readonly show: (map: HeadMap | null) => void) {}

  get isGliding(): boolean {
    return this.arrive !== null;
  }

  /** Resolves on arrival, or when it is stopped. */
  run(from: HeadMap, to: HeadMap): Promise<void> {
    this.stop();
    const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (isStill || from.set !== to.set || !from.solid !== !to.solid || to.set.count > MOST) return Promise.resolve();
    let begun = 0;
    return new Promise((resolve) => {
      this.arrive = resolve;
      const step = (now: number) => {
        begun ||= now;
        const time = Math.min(1, (now - begun) / GLIDE);
        if (time === 1) return this.stop();
        this.frame = requestAnimationFrame(step);
        this.show(between(from, to, time * time * (3 - 2 * time)));
      };
      this.show(from);
      this.frame = requestAnimationFrame(step);
    });
  }

  stop(): void {
    cancelAnimationFrame(this.frame);
    const { arrive } = this;
    this.arrive = null;
    if (!arrive) return;
    this.show(null);
    arrive();
  }
}

/** The map whose points are that share of the way from one to the other. */
export function between(from: HeadMap, to: HeadMap, share: number): HeadMap {
  const at = (a: number, b: number) => Math.round(a + (b - a) * share);
  const solid =
    from.solid && to.solid
      ? Uint16Array.from(to.solid, (value, index) => at(from.solid?.[index] as number, value))
      : null;
  const places = Uint32Array.from(to.places, (place, point) => {
    const before = from.places[point] as number;
    return (at(before & FULL, place & FULL) | (at(before >>> 16, place >>> 16) << 16)) >>> 0;
  });
  return { ...to, places, solid };
}
