import { expect, it } from "vitest";
import { decode, floats } from "./wire";

/** As Python's `views/wire.py` writes it: header padded so that buffers are aligned. */
function message(header: object, ...buffers: Uint8Array[]): ArrayBuffer {
  let text = JSON.stringify(header);
  while ((8 + text.length) % 8) text += " ";
  const parts = [new TextEncoder().encode(text), ...buffers];
  const bytes = new Uint8Array(8 + parts.reduce((sum, part) => sum + part.length, 0));
  new DataView(bytes.buffer).setUint32(0, 0x31565348, true);
  new DataView(bytes.buffer).setUint32(4, text.length, true);
  let at = 8;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes.buffer;
}

it("reads arrays where they lie, whatever they travelled as", () => {
  const arrays = [
    { name: "bytes", dtype: "uint8", shape: [2, 2], offset: 0, code: "sqrt" },
    { name: "halves", dtype: "float16", shape: [4], offset: 8, code: "linear" },
  ];
  const halves = new Uint8Array(Uint16Array.of(0x3c00, 0x3800, 0xfc00, 0x0001).buffer);
  const part = decode(
    message({ kind: "layer", props: { site: "L0" }, arrays }, Uint8Array.of(0, 51, 102, 255, 0, 0, 0, 0), halves),
  );
  expect(part.kind).toBe("layer");
  const bytes = part.arrays.bytes;
  expect(bytes && Array.from(floats(bytes), (value) => Math.round(value * 100) / 100)).toEqual([0, 0.04, 0.16, 1]);
  expect(bytes && floats(bytes, 1, 3)).toHaveLength(2);
  expect(part.arrays.halves && [...floats(part.arrays.halves)]).toEqual([1, 0.5, Number.NEGATIVE_INFINITY, 2 ** -24]);
});

it("refuses what is no message", () => {
  expect(() => decode(new ArrayBuffer(16))).toThrow("no Headscope message");
});

it("reads signed bytes", () => {
  const arrays = [{ name: "signed", dtype: "uint8", shape: [4], offset: 0, code: "signed" }];
  const part = decode(message({ kind: "maps", props: {}, arrays }, Uint8Array.of(1, 128, 192, 255, 0, 0, 0, 0)));
  const signed = part.arrays.signed && Array.from(floats(part.arrays.signed), (value) => Math.round(value * 100) / 100);
  expect(signed).toEqual([-1, 0, 0.25, 1]);
});
