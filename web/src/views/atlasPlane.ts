/** The plane of the atlas with its camera: where heads lie, and where one stands to see one of them or all. */

import type { AtlasPlaceProps } from "../contract";
import type { HeadMap } from "../data/atlasPoints";
import { ballOf } from "../marks/orbit";
import { type Camera, fitting, panned, type Size, seenBox, within, zoomed } from "./atlasCamera";
import { type AtlasLayout, type Cell, layoutOf, SIDE } from "./atlasLayout";
import { Motion } from "./atlasMotion";
import type { Spot } from "./atlasOverlay";
import type { AtlasScene } from "./atlasScene";

const MARGIN = 44; // px about all heads, for their names and the legend
const OPENS = 0.72; // of the stage: a head as large as that is opened
const CLOSES = 0.5; // of what fits: a head as small as that is left
const DEEPEST = 200;
const LEAST = 0.02; // of a square: a cloud that is one point is not blown up to no end

export class AtlasPlane {
  layout: AtlasLayout = { cells: [], headings: [], width: 1, height: 1 };
  readonly motion: Motion;
  private laidFor = "";
  private bottom = MARGIN;
  private readonly balls = new WeakMap<HeadMap, HeadMap["bounds"]>();

  constructor(
    private readonly places: AtlasPlaceProps[],
    draw: () => void,
  ) {
    this.motion = new Motion(draw);
  }

  get camera(): Camera {
    return this.motion.camera;
  }

  cellOf(address: string): Cell | null {
    return this.layout.cells.find(({ place }) => place.address === address) ?? null;
  }

  /** Lay the heads out for the room there is, `bottom` pixels of it for the legend; a camera that stood where all fits
   *  still does. */
  settle(size: Size, scene: AtlasScene, bottom: number): void {
    const name = `${size.width} × ${size.height}, ${bottom}`;
    if (name === this.laidFor) return;
    this.laidFor = name;
    this.bottom = bottom;
    this.layout = layoutOf(this.places, size);
    if (this.motion.isHome && !this.motion.isFlying)
      this.motion.jump(this.home(size, scene, scene.selection.place), true);
  }

  /** Where everything of a head, or all heads, are seen. */
  home(size: Size, scene: AtlasScene, address: string): Camera {
    const margins = {
      side: Math.min(MARGIN, size.width * 0.07),
      top: Math.min(MARGIN, size.height * 0.15),
      bottom: Math.min(this.bottom, size.height * 0.35),
    };
    const cell = this.cellOf(address);
    if (!cell) {
      const { width, height } = this.layout;
      return fitting({ x: 0, y: 0, width, height }, size, margins);
    }
    const map = scene.isWhole(address) ? scene.whole : scene.maps.get(address);
    const [left, top, right, bottom] = map ? this.boundsOf(map) : [0, 0, 1, 1];
    const width = Math.max(LEAST, right - left) * SIDE;
    const height = Math.max(LEAST, bottom - top) * SIDE;
    const middle = { x: cell.x + ((left + right) / 2) * SIDE, y: cell.y + ((top + bottom) / 2) * SIDE };
    return fitting({ x: middle.x - width / 2, y: middle.y - height / 2, width, height }, size, margins);
  }

  private boundsOf(map: HeadMap): HeadMap["bounds"] {
    if (!map.solid) return map.bounds;
    const bounds = this.balls.get(map) ?? ballOf(map.solid);
    this.balls.set(map, bounds);
    return bounds;
  }

  fly(size: Size, scene: AtlasScene, address: string): Promise<void> {
    return this.motion.fly(this.home(size, scene, address), size);
  }

  pan(size: Size, across: number, down: number): void {
    const { width, height } = this.layout;
    const camera = panned(this.camera, across, down);
    this.motion.jump(within(camera, { x: 0, y: 0, width, height }, size), false);
  }

  /** Zoom about a point of the screen. Gives the address of the head that one comes into so, "" on the way out of one;
   *  null where one stays. */
  zoomAt(size: Size, scene: AtlasScene, factor: number, at: Spot): string | null {
    const { place } = scene.selection;
    const fit = this.home(size, scene, place).zoom;
    const least = place ? fit * CLOSES * 0.9 : fit;
    const camera = zoomed(this.camera, factor, at, least, DEEPEST * fit);
    if (!place && camera.zoom <= fit) {
      this.motion.jump(this.home(size, scene, ""), true);
      return null;
    }
    this.motion.jump(camera, false);
    if (place) return camera.zoom < fit * CLOSES && factor < 1 ? "" : null;
    if (factor < 1) return null;
    const large = this.layout.cells.find((cell) => {
      const box = seenBox(camera, cell);
      const isUnder = at.x >= box.x && at.x < box.x + box.width && at.y >= box.y && at.y < box.y + box.height;
      return isUnder && box.width > OPENS * Math.min(size.width, size.height);
    });
    return large?.place.address ?? null;
  }
}
