/** Reads what Python's `views/wire.py` writes: a JSON header, then raw little-endian buffers. */

export type Values = Uint8Array | Int32Array | Uint16Array | Float32Array;

export interface Grid {
  dtype: "uint8" | "uint16" | "int32" | "float16" | "float32";
  shape: number[];
  /** sqrt: a byte b stands for the weight (b / 255)². signed: for ± ((b − 128) / 127)². */
  code: "linear" | "sqrt" | "signed";
  /** As they came: bytes, or for float16 the bits of it (see `floats`). */
  values: Values;
}

export interface Part<Props> {
  kind: string;
  props: Props;
  arrays: Record<string, Grid>;
}

const MAGIC = 0x31565348; // "HSV1"

export function decode<Props>(message: ArrayBuffer): Part<Props> {
  const bytes = new DataView(message);
  if (message.byteLength < 8 || bytes.getUint32(0, true) !== MAGIC) throw new Error("this is no Headscope message");
  const length = bytes.getUint32(4, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(message, 8, length)));
  const arrays: Record<string, Grid> = {};
  for (const { name, dtype, shape, offset, code } of header.arrays) {
    const size = (shape as number[]).reduce((product, extent) => product * extent, 1);
    arrays[name] = { dtype, shape, code, values: typed(dtype, message, 8 + length + offset, size) };
  }
  return { kind: header.kind, props: header.props, arrays };
}

function typed(dtype: string, message: ArrayBuffer, place: number, size: number): Values {
  switch (dtype) {
    case "uint8":
      return new Uint8Array(message, place, size);
    case "int32":
      return new Int32Array(message, place, size);
    case "uint16":
    case "float16":
      return new Uint16Array(message, place, size);
    case "float32":
      return new Float32Array(message, place, size);
    default:
      throw new Error(`unknown array type ${dtype}`);
  }
}

/** The numbers of a grid (or of a stretch of it), whatever they travelled as. Not to be written into: may be no copy. */
export function floats(grid: Grid, from = 0, to = grid.values.length): Float32Array {
  const values = grid.values.subarray(from, to);
  if (values instanceof Float32Array) return values;
  const table =
    grid.dtype === "float16" ? HALVES() : grid.code === "sqrt" ? SQUARES : grid.code === "signed" ? SIGNED : null;
  const decoded = new Float32Array(values.length);
  if (table) for (let i = 0; i < decoded.length; i++) decoded[i] = table[values[i] as number] as number;
  else decoded.set(values);
  return decoded;
}

const SQUARES = Float32Array.from({ length: 256 }, (_, byte) => (byte / 255) ** 2);

const SIGNED = Float32Array.from({ length: 256 }, (_, byte) => {
  const root = (byte - 128) / 127;
  return root * Math.abs(root);
});

let halves: Float32Array | null = null;
/** All 65,536 halves as floats: a table is faster than arithmetic, and Float16Array is too new to rely on. */
function HALVES(): Float32Array {
  if (halves) return halves;
  halves = new Float32Array(65536);
  for (let bits = 0; bits < 65536; bits++) {
    const sign = bits & 0x8000 ? -1 : 1;
    const exponent = (bits >> 10) & 31;
    const fraction = bits & 1023;
    halves[bits] =
      exponent === 0
        ? sign * fraction * 2 ** -24
        : exponent === 31
          ? fraction
            ? Number.NaN
            : sign * Number.POSITIVE_INFINITY
          : sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
  }
  return halves;
}
