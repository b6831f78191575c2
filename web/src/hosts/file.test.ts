import { expect, test } from "vitest";
import { inlineSource } from "./file";

async function packed(props: object): Promise<string> {
  const header = new TextEncoder().encode(JSON.stringify({ kind: "trace", props, arrays: [] }));
  const message = new Uint8Array(8 + header.length);
  message.set(new TextEncoder().encode("HSV1"));
  new DataView(message.buffer).setUint32(4, header.length, true);
  message.set(header, 8);
  const zipped = new Blob([message]).stream().pipeThrough(new CompressionStream("gzip"));
  return btoa(String.fromCharCode(...new Uint8Array(await new Response(zipped).arrayBuffer())));
}

test("a part is unpacked from the page", async () => {
  const text = await packed({ model: "м" });
  const source = inlineSource((key) => (key === "trace" ? text : null));
  expect((await source.part("trace")).props).toEqual({ model: "м" });
  expect(source.isLive).toBe(false);
});

test("what the file does not hold is said in words", async () => {
  const source = inlineSource(() => null);
  await expect(source.part("layer/L3?what=scores")).rejects.toMatchObject({
    message: "This saved page does not hold the scores of layer L3.",
    error: "NotSaved",
  });
});
