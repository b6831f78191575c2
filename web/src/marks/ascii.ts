/** A raster as text, for golden images in tests: a character a pixel, darker pixels by later ones. */

import type { Raster } from "./raster";

const SHADES = ".123456789abcdef#";

export function ascii(raster: Raster): string {
  const lines: string[] = [];
  for (let y = 0; y < raster.height; y++) {
    let line = "";
    for (let x = 0; x < raster.width; x++) {
      const at = (y * raster.width + x) * 4;
      const sum = [0, 1, 2].reduce((total, channel) => total + (raster.pixels[at + channel] as number), 0);
      line += SHADES[Math.round((1 - sum / 765) * (SHADES.length - 1))];
    }
    lines.push(line);
  }
  return `\n${lines.join("\n")}\n`;
}

/** All bytes of a picture as one number (FNV-1a): changes when any pixel does. */
export function fingerprint(raster: Raster): string {
  let hash = 0x811c9dc5;
  for (const byte of raster.pixels) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash.toString(16).padStart(8, "0");
}
