import { describe, expect, it } from "vitest";
import type { Raster } from "../marks/raster";
import type { Camera } from "./atlasCamera";
import { PanLayer } from "./atlasPanLayer";

const SIZE = { width: 40, height: 30 };

/** A layer whose picture is one red dot, at the origin of the plane. */
function panned(layer: PanLayer, camera: Camera, size = SIZE) {
  let isNew = false;
  const { raster, part } = layer.at(camera, size, (raster: Raster, { x, y, zoom }) => {
    isNew = true;
    raster.words.fill(0);
    raster.words[-y * zoom * raster.width - x * zoom] = 1;
  });
  const at = raster.words.indexOf(1);
  return { isNew, x: (at % raster.width) - part.x, y: Math.floor(at / raster.width) - part.y };
}

describe("a picture that is moved", () => {
  const camera = { x: -10, y: -5, zoom: 2 };

  it("is drawn once, and moves with the camera", () => {
    const layer = new PanLayer();
    expect(panned(layer, camera)).toEqual({ isNew: true, x: 20, y: 10 });
    expect(panned(layer, { ...camera, x: -13, y: 15 })).toEqual({ isNew: false, x: 26, y: -30 });
  });

  it("is drawn anew beyond its margin, at another zoom or size, and where something else has changed", () => {
    const layer = new PanLayer();
    panned(layer, camera);
    expect(panned(layer, { ...camera, x: -90 })).toEqual({ isNew: false, x: 180, y: 10 });
    expect(panned(layer, { ...camera, x: -91 })).toEqual({ isNew: true, x: 182, y: 10 });
    expect(panned(layer, { ...camera, x: -91, zoom: 1 }).isNew).toBe(true);
    expect(panned(layer, { ...camera, x: -91, zoom: 1 }, { width: 50, height: 30 }).isNew).toBe(true);
    layer.forget();
    expect(panned(layer, { ...camera, x: -91, zoom: 1 }, { width: 50, height: 30 }).isNew).toBe(true);
  });
});
