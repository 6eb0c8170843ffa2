/* Reads the container of a saved network: a safetensors file.

      8 bytes  the header's length, little-endian
      header   JSON: "__metadata__", and for every tensor {dtype, shape, data_offsets}
      data     the numbers, one tensor after the other

   Sizes are checked before memory is taken. Nothing in a file is ever executed. */

export const MAX_BYTES = 64 * 2 ** 20;
const MAX_HEADER = 16 * 2 ** 20;
const MAX_TENSORS = 100000;
const BYTES = {
  F64: 8,
  F32: 4,
  F16: 2,
  BF16: 2,
  I64: 8,
  I32: 4,
  I16: 2,
  I8: 1,
  U64: 8,
  U32: 4,
  U16: 2,
  U8: 1,
  BOOL: 1,
};

/** A file that cannot be opened; its message says why and is meant for people. */
export class FileError extends Error {}

/** {metadata, names, tensor(name)} of a file; tensor gives {dtype, shape, data: Float64Array}. */
export function readSafetensors(buffer) {
  const size = buffer.byteLength;
  if (size > MAX_BYTES)
    throw new FileError(
      `This file has ${inMegabytes(size)}; the page opens files of up to ${inMegabytes(MAX_BYTES)}. Use ah.load in Python.`,
    );
  if (size < 8) throw new FileError(`This file has ${size} bytes: it is not a safetensors file, or it was cut short.`);
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  if (length > MAX_HEADER || length > size - 8)
    throw new FileError("This is not a safetensors file, or it was cut short: its header is longer than it could be.");
  const header = parsed(buffer, length);
  const metadata = isObject(header.__metadata__) ? header.__metadata__ : {};
  const entries = Object.entries(header).filter(([name]) => name !== "__metadata__");
  if (entries.length > MAX_TENSORS)
    throw new FileError(`This file names ${entries.length} arrays: at most ${MAX_TENSORS} are read.`);
  const start = 8 + length;
  const tensors = new Map(entries.map(([name, entry]) => [name, checked(name, entry, size - start)]));
  checkCovered([...tensors.values()], size - start);
  return {
    metadata,
    names: [...tensors.keys()],
    tensor(name) {
      const entry = tensors.get(name);
      if (!entry) throw new FileError(`This file is damaged: it lacks the array ${quoted(name)}.`);
      return { dtype: entry.dtype, shape: entry.shape, data: numbers(name, entry, buffer, start) };
    },
  };
}

/** A name from a file, short enough for a message. */
export function quoted(text) {
  const plain = String(text).replace(/[\p{C}]/gu, "\ufffd");
  return `“${plain.length > 60 ? plain.slice(0, 59) + "…" : plain}”`;
}

function parsed(buffer, length) {
  let header;
  try {
    header = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array(buffer, 8, length)));
  } catch {
    throw new FileError("This is not a safetensors file, or it is damaged: its header is not JSON.");
  }
  if (!isObject(header)) throw new FileError("This file is damaged: its header is not an object.");
  return header;
}

function checked(name, entry, available) {
  const what = `This file is damaged: the array ${quoted(name)}`;
  if (!isObject(entry) || !Object.hasOwn(BYTES, entry.dtype)) throw new FileError(`${what} is of an unknown type.`);
  const { dtype, shape, data_offsets: offsets } = entry;
  const isCount = (n) => Number.isSafeInteger(n) && n >= 0;
  if (!Array.isArray(shape) || shape.length > 8 || !shape.every(isCount)) throw new FileError(`${what} has no shape.`);
  const pair = Array.isArray(offsets) && offsets.length === 2 && offsets.every(isCount);
  if (!pair || offsets[0] > offsets[1] || offsets[1] > available) throw new FileError(`${what} lies outside the file.`);
  const needed = shape.reduce((product, side) => product * side, BYTES[dtype]);
  if (needed !== offsets[1] - offsets[0])
    throw new FileError(`${what} has shape (${shape.join(", ")}), which is not the size that it takes in the file.`);
  return { dtype, shape, begin: offsets[0], end: offsets[1] };
}

function checkCovered(tensors, available) {
  let reached = 0;
  for (const one of tensors.sort((a, b) => a.begin - b.begin || a.end - b.end)) {
    if (one.begin !== reached) throw new FileError("This file is damaged: its arrays overlap or leave gaps.");
    reached = one.end;
  }
  if (reached !== available) throw new FileError("This file is damaged: it goes on after its last array.");
}

function numbers(name, entry, buffer, start) {
  const bytes = buffer.slice(start + entry.begin, start + entry.end); // a copy, so that it is aligned
  if (entry.dtype === "F64") return new Float64Array(bytes);
  if (entry.dtype === "F32") return Float64Array.from(new Float32Array(bytes));
  if (entry.dtype === "I64") return Float64Array.from(new BigInt64Array(bytes), Number);
  throw new FileError(`The array ${quoted(name)} is of the type ${entry.dtype}: weights are float64 or float32.`);
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function inMegabytes(bytes) {
  return `${Math.round(bytes / 2 ** 20)} MB`;
}
