/** The camera of the atlas as time goes by: it jumps, or flies in 180 ms where motion is welcome. */

import { between, type Camera, type Size } from "./atlasCamera";

const FLIGHT = 180; // ms

export class Motion {
  camera: Camera = { x: 0, y: 0, zoom: 1 };
  /** It stands where everything fits, so it follows when the room changes. */
  isHome = true;
  private frame = 0;
  private arrive: (() => void) | null = null;

  constructor(private readonly draw: () => void) {}

  get isFlying(): boolean {
    return this.arrive !== null;
  }

  /** How far the flight has come. */
  progress = 1;

  jump(camera: Camera, isHome: boolean): void {
    this.stop();
    this.camera = camera;
    this.isHome = isHome;
  }

  /** Fly there; resolves on arrival, or when something else takes over. */
  fly(to: Camera, screen: Size, isHome = true): Promise<void> {
    this.stop();
    this.isHome = isHome;
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
      this.camera = to;
      this.draw();
      return Promise.resolve();
    }
    const from = this.camera;
    let begun = 0;
    return new Promise((resolve) => {
      this.arrive = resolve;
      const step = (now: number) => {
        begun ||= now;
        this.progress = Math.min(1, (now - begun) / FLIGHT);
        this.camera = between(from, to, this.progress, screen);
        if (this.progress === 1) this.stop();
        else this.frame = requestAnimationFrame(step);
        this.draw();
      };
      this.frame = requestAnimationFrame(step);
    });
  }

  stop(): void {
    cancelAnimationFrame(this.frame);
    this.progress = 1;
    this.arrive?.();
    this.arrive = null;
  }
}
