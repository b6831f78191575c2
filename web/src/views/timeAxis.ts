/** Seconds, the frames of a sound and pixels of the page: which is where. */

import { roundStep } from "./ticks";

const APART = 64; // px between ticks
const FRAMES = 8; // in view at least

export class TimeAxis {
  /** `plot` is where the axis is drawn, `seen` the seconds in view. */
  constructor(
    private readonly plot: { from: number; width: number },
    private readonly seen: [number, number],
    private readonly nFrames: number,
    private readonly seconds: number,
  ) {}

  /** When a frame begins. */
  secondOf(index: number): number {
    return (index * this.seconds) / this.nFrames;
  }

  pixelAt(second: number): number {
    const [from, to] = this.seen;
    return this.plot.from + ((second - from) / (to - from)) * this.plot.width;
  }

  /** Where a frame begins. */
  left(index: number): number {
    return this.pixelAt(this.secondOf(index));
  }

  /** The frame at a pixel; −1 beside the axis. */
  frameAt(x: number): number {
    const { plot } = this;
    if (x < plot.from || x >= plot.from + plot.width) return -1;
    const [from, to] = this.seen;
    const second = from + ((x - plot.from) / plot.width) * (to - from);
    return Math.max(0, Math.min(this.nFrames - 1, Math.floor((second * this.nFrames) / this.seconds)));
  }

  /** Round seconds in view. */
  ticks(): number[] {
    const [from, to] = this.seen;
    const step = roundStep(((to - from) * APART) / this.plot.width);
    const seconds: number[] = [];
    for (let at = Math.ceil(from / step - 1e-9) * step; at <= to + 1e-9; at += step) seconds.push(at);
    return seconds;
  }

  /** The seconds in view after the wheel was turned at a pixel, whose second stays where it is. */
  zoomed(x: number, delta: number): [number, number] {
    const { plot, seconds } = this;
    const [from, to] = this.seen;
    const share = Math.max(0, Math.min(1, (x - plot.from) / plot.width));
    const least = Math.min(seconds, (FRAMES * seconds) / this.nFrames);
    const factor = Math.exp(Math.max(-120, Math.min(120, delta)) * 0.003);
    const length = Math.max(least, Math.min(seconds, (to - from) * factor));
    const start = Math.max(0, Math.min(seconds - length, from + share * (to - from) - share * length));
    return [start, start + length];
  }
}
