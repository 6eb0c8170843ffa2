/* A saved network: its layers, and what the file says of its target and its error. */

import { termsOf } from "./certificate.js";
import { NetworkError, attention, embed, linear, repeat, softmax } from "./layers.js";
import { network } from "./network.js";
import { FileError, quoted, readSafetensors } from "./safetensors.js";

const FORMAT = 3;
const STILL_READ = 2; // what it calls a target is a program and a derivation since
const MAX_NESTING = 9;
const MAX_INPUTS = 100000; // numbers that go in: the page holds a default and a box for each

/** {network, dtype, target, certificate, names} of a file's bytes; throws FileError with a message for people. */
export function openNetwork(buffer) {
  const file = readSafetensors(buffer);
  const header = description(file.metadata);
  checkFormat(header.format);
  const dtypes = new Set();
  const array = (name) => {
    const { dtype, shape, data } = file.tensor(name);
    if (dtype !== "I64") dtypes.add(dtype);
    return { shape, data };
  };
  try {
    const body = header.network;
    const layers = body.layers.map((layer) => unpacked(layer, array, 0));
    const net = network({ layers, output: body.output, tokenAxis: body.token_axis ?? true });
    const first = layers[0];
    if ((first.tokens ?? 1) * first.inputs > MAX_INPUTS)
      throw new NetworkError(
        `it takes ${first.tokens} tokens of ${first.inputs} numbers, more than this page can offer`,
      );
    if (dtypes.size !== 1) throw new NetworkError("its weights are of more than one type");
    const dtype = dtypes.has("F32") ? "float32" : "float64";
    const certificate = header.certificate === null ? null : checkedCertificate(header.certificate, first);
    const target = header.format < FORMAT ? header.target : targetOf(header);
    return { network: net, dtype, target, certificate, names: inputNames(target, first) };
  } catch (error) {
    if (error instanceof FileError) throw error;
    if (error instanceof NetworkError) throw new FileError(`This file is not a valid network: ${error.message}.`);
    throw new FileError("This file is not a valid network: its description is damaged.");
  }
}

function description(metadata) {
  if (typeof metadata.anchorhead !== "string")
    throw new FileError("This is a safetensors file, but not a network that anchorhead saved.");
  let header = null;
  try {
    header = JSON.parse(metadata.anchorhead);
  } catch {
    throw new FileError("This file is damaged: its description is not JSON.");
  }
  if (typeof header !== "object" || header === null)
    throw new FileError("This file is damaged: it has no description.");
  return header;
}

function checkFormat(version) {
  if (!Number.isInteger(version) || version < 1)
    throw new FileError("This file does not say which format it has: anchorhead did not save it, or it is damaged.");
  if (version > FORMAT || version < STILL_READ)
    throw new FileError(
      `This file has format ${version}; this page reads format ${FORMAT}. ` +
        (version > FORMAT ? "A newer anchorhead has a newer page." : "Build the network again and save it."),
    );
}

/** What a network approximates: by which construction, its hints, and the names of its input's features. */
function targetOf({ program, derivation }) {
  if (typeof program !== "object" || program === null || typeof derivation !== "object" || derivation === null)
    return null;
  const features = program.steps?.[0]?.features;
  const named = Array.isArray(features) && features.every((name) => typeof name === "string" && name !== "");
  return { kind: derivation.kind, data: { ...derivation.data, ...(named ? { variables: features } : {}) } };
}

const MAKERS = { Embed: embed, Linear: linear, Attention: attention, Softmax: softmax, Repeat: repeat };

function unpacked(packed, array, depth) {
  if (depth > MAX_NESTING) throw new NetworkError("its layers are nested too deep");
  if (!Object.hasOwn(MAKERS, packed.layer))
    throw new NetworkError(`it has a layer of the unknown kind ${quoted(packed.layer)}`);
  const given = {};
  for (const [name, value] of Object.entries(packed)) {
    if (name === "layer" || value === null) continue;
    if (Array.isArray(value) && name === "layers") given[name] = value.map((one) => unpacked(one, array, depth + 1));
    else if (typeof value === "object" && !Array.isArray(value))
      given[name] = "tensor" in value ? array(value.tensor) : unpacked(value, array, depth + 1);
    else given[name] = value;
  }
  return MAKERS[packed.layer](given);
}

function checkedCertificate(certificate, first) {
  const texts = ["dtype", "arithmetic", "method", "target"].every((name) => typeof certificate[name] === "string");
  const known = ["proven", "measured"].includes(certificate.kind);
  if (!texts || !known || !(Number.isFinite(certificate.bound) && certificate.bound >= 0))
    throw new NetworkError("its certificate is damaged");
  const [terms, reference] = [certificate.terms, certificate.reference].map(termsOf);
  if (![...terms, ...reference].every((one) => Number.isFinite(one?.amount)))
    throw new NetworkError("a term of its certificate is not a number");
  if (!Array.isArray(certificate.conditions)) throw new NetworkError("the conditions of its certificate are damaged");
  const tokens = first.tokens ?? 1;
  const [low, high] = ["low", "high"].map((end) => boxEnd(certificate.on[end], tokens, first.inputs));
  if (low.some((row, i) => row.some((end, j) => !(end <= high[i][j])))) throw new NetworkError("its box is empty");
  return { ...certificate, terms, reference, low, high };
}

/** An end of the box for each number of each token, from a number or from lists that broadcast. */
function boxEnd(given, tokens, inputs) {
  const at = (list, place, count) => {
    if (!Array.isArray(list)) return list;
    if (list.length !== 1 && list.length !== count) throw new NetworkError("its box does not fit its inputs");
    return list[list.length === 1 ? 0 : place];
  };
  const byToken = Array.isArray(given) && Array.isArray(given[0]);
  const result = Array.from({ length: tokens }, (_, i) =>
    Array.from({ length: inputs }, (_, j) => at(byToken ? at(given, i, tokens) : given, j, inputs)),
  );
  if (!result.flat().every(Number.isFinite)) throw new NetworkError("an end of its box is not a number");
  return result;
}

/** What the numbers of an input token are called: the target's variables, or what a learner's prompt holds. */
function inputNames(target, first) {
  const numbered = Array.from({ length: first.inputs }, (_, j) => `x${first.inputs > 1 ? j : ""}`);
  const variables = target?.data?.variables;
  const fits = Array.isArray(variables) && variables.length === first.inputs && first.tokens === 1;
  if (fits && variables.every((name) => typeof name === "string")) return variables;
  if (
    target?.kind === "descent" &&
    Number.isInteger(target.data?.features) &&
    first.inputs === target.data.features + 2
  )
    return [...numbered.slice(0, -2), "sign", "label"];
  return numbered;
}
