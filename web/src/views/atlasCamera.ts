/** Where one looks in the atlas: a plane that holds all heads, with a camera over it. No canvas and no clock in here. */

import type { Box } from "../marks/cells";

/** A place of the plane is at (place − x, place − y) × zoom on the screen. */
export interface Camera {
  readonly x: number;
  readonly y: number;
  readonly zoom: number;
}

export interface Size {
  width: number;
  height: number;
}

/** A box of the plane as it is on the screen. */
export function seenBox({ x, y, zoom }: Camera, box: Box): Box {
  return { x: (box.x - x) * zoom, y: (box.y - y) * zoom, width: box.width * zoom, height: box.height * zoom };
}

/** The place of the plane that is under a point of the screen. */
export function under({ x, y, zoom }: Camera, at: { x: number; y: number }): { x: number; y: number } {
  return { x: x + at.x / zoom, y: y + at.y / zoom };
}

export function panned(camera: Camera, acrossPixels: number, downPixels: number): Camera {
  return { ...camera, x: camera.x - acrossPixels / camera.zoom, y: camera.y - downPixels / camera.zoom };
}

/** Larger or smaller, with what is under a point of the screen staying there. */
export function zoomed(
  camera: Camera,
  factor: number,
  at: { x: number; y: number },
  least: number,
  most: number,
): Camera {
  const zoom = Math.min(most, Math.max(least, camera.zoom * factor));
  const place = under(camera, at);
  return { x: place.x - at.x / zoom, y: place.y - at.y / zoom, zoom };
}

/** Pixels that are left free at the edges of the screen. */
export interface Margins {
  side: number;
  top: number;
  bottom: number;
}

/** The camera from which a box fills the screen but for its margins. */
export function fitting(box: Box, screen: Size, { side, top, bottom }: Margins): Camera {
  const room = { width: Math.max(1, screen.width - 2 * side), height: Math.max(1, screen.height - top - bottom) };
  const zoom = Math.min(room.width / Math.max(1e-6, box.width), room.height / Math.max(1e-6, box.height));
  return {
    x: box.x + box.width / 2 - screen.width / 2 / zoom,
    y: box.y + box.height / 2 - (top + room.height / 2) / zoom,
    zoom,
  };
}

/** Not so far aside that nothing is left to see: the middle of the screen stays over the box. */
export function within(camera: Camera, box: Box, screen: Size): Camera {
  const [halfWidth, halfHeight] = [screen.width / 2 / camera.zoom, screen.height / 2 / camera.zoom];
  const middleX = Math.min(box.x + box.width, Math.max(box.x, camera.x + halfWidth));
  const middleY = Math.min(box.y + box.height, Math.max(box.y, camera.y + halfHeight));
  return { x: middleX - halfWidth, y: middleY - halfHeight, zoom: camera.zoom };
}

/** On the way from one camera to another: zooms by equal factors in equal times, and what is in the middle at the end
 *  moves there straight. */
export function between(from: Camera, to: Camera, share: number, screen: Size): Camera {
  const eased = share < 0.5 ? 4 * share ** 3 : 1 - (2 - 2 * share) ** 3 / 2;
  const ratio = to.zoom / from.zoom;
  const zoom = from.zoom * ratio ** eased;
  // A place moves in proportion to how far the scale has come, so that it does not leave the screen on the way.
  const along = Math.abs(ratio - 1) < 1e-6 ? eased : (1 - from.zoom / zoom) / (1 - from.zoom / to.zoom);
  const middle = (camera: Camera, axis: "x" | "y", extent: number) => camera[axis] + extent / 2 / camera.zoom;
  const x = middle(from, "x", screen.width);
  const y = middle(from, "y", screen.height);
  const atX = x + (middle(to, "x", screen.width) - x) * along;
  const atY = y + (middle(to, "y", screen.height) - y) * along;
  return { x: atX - screen.width / 2 / zoom, y: atY - screen.height / 2 / zoom, zoom };
}
