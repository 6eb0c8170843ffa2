/* Which features of which tokens later layers read: what nobody reads is not computed, and does not ask.

   Going backwards through the layers, `needed` holds for every kind of token a row of flags, one a feature. It is the
   same walk as in Python (network/liveness.py), so that attention weights have the same rows and columns there and here. */

import { KINDS, follow, kindsOf } from "./layers.js";

/** What is needed of the last stream for an output: every feature of one kind of token. */
export function everything(stream, kind) {
  return { [kind]: stream.features.map(() => true) };
}

/** The kinds of token at which some feature that is read depends on the heads. */
export function askers(layer, needed) {
  const { output, outputs } = layer;
  const size = output.shape[2];
  const written = Array(outputs).fill(false);
  output.data.forEach((number, place) => {
    if (number !== 0) written[Math.floor(place / size) % outputs] = true;
  });
  return KINDS.filter((kind) => needed[kind]?.some((read, feature) => read && written[feature]));
}

/** The kinds of token that at least one of those who ask sees. */
export function seen(layer, asking, stream) {
  const kinds = kindsOf(stream);
  if (!asking.length) return [];
  if (layer.grid !== null) return ["register"];
  if (layer.mask === "self+registers") return kinds.filter((kind) => kind === "register" || asking.includes(kind));
  if (layer.mask === "registers+states") {
    const registersAlone = asking.every((kind) => kind === "register");
    return kinds.filter((kind) => kind === "register" || (kind === "state" && !registersAlone));
  }
  if (layer.mask === "causal" && !asking.includes("state"))
    return kinds.filter((kind) => kind === "register" || (kind === "input" && asking.includes("input")));
  return kinds;
}

/** What is needed after each layer, and first of the stream that enters them. */
export function needsThrough(layers, needed, stream) {
  const entering = [stream];
  for (const layer of layers) entering.push(follow(layer, entering.at(-1)));
  const result = [needed];
  for (let n = layers.length - 1; n >= 0; n--) result.unshift(before(layers[n], result[0], entering[n]));
  return result;
}

/** What is needed after a step of a Repeat, whether it is the last one or not: the least fixed point. */
export function steadyNeeds(layer, needed, stream) {
  for (;;) {
    if (layer.times === 1) return needed;
    const together = union(needed, needsThrough(layer.layers, needed, stream)[0]);
    if (same(together, needed)) return needed;
    needed = together;
  }
}

function before(layer, needed, stream) {
  if (layer.kind === "Linear") return beforeLinear(layer, needed, stream);
  if (layer.kind === "Attention") return beforeAttention(layer, needed, stream);
  if (layer.kind === "Repeat") return needsThrough(layer.layers, steadyNeeds(layer, needed, stream), stream)[0];
  const group = layer.groups.flatMap((size, number) => Array(size).fill(number));
  const ofGroups = (flags) => group.map((number) => flags.some((read, feature) => read && group[feature] === number));
  return Object.fromEntries(Object.entries(needed).map(([kind, flags]) => [kind, ofGroups(flags)]));
}

function beforeLinear(layer, needed, stream) {
  if (layer.across) return Object.fromEntries(kindsOf(stream).map((kind) => [kind, reads(layer, needed.input)]));
  return Object.fromEntries(Object.entries(needed).map(([kind, flags]) => [kind, reads(layer, flags)]));
}

function reads(layer, flags) {
  const { shape, data } = layer.weight;
  const inputs = shape.at(-1);
  const result = Array(layer.inputs).fill(false);
  data.forEach((number, place) => {
    if (number === 0) return;
    const feature = place % inputs;
    const row = Math.floor(place / inputs);
    if (shape.length === 4) result[feature] ||= flags[Math.floor(row / shape[2]) % shape[1]];
    else result[Math.floor(row / shape.at(-2)) * inputs + feature] ||= flags[row];
  });
  return result;
}

function beforeAttention(layer, needed, stream) {
  const asking = askers(layer, needed);
  const visible = seen(layer, asking, stream);
  const asked = columns(layer.query);
  const shown = either(columns(layer.key), columns(layer.value));
  const kept = layer.skip === null ? {} : beforeLinear(layer.skip, needed, stream);
  const result = {};
  for (const kind of KINDS) {
    if (!(kind in needed) && !visible.includes(kind)) continue;
    let flags = kept[kind] ?? stream.features.map(() => false);
    if (asking.includes(kind)) flags = either(flags, asked);
    if (visible.includes(kind)) flags = either(flags, shown);
    result[kind] = flags;
  }
  return result;
}

function columns({ shape, data }) {
  const result = Array(shape.at(-1)).fill(false);
  data.forEach((number, place) => {
    if (number !== 0) result[place % result.length] = true;
  });
  return result;
}

function either(left, right) {
  return left.map((flag, place) => flag || right[place]);
}

function union(left, right) {
  const kinds = KINDS.filter((kind) => kind in left || kind in right);
  const flags = (kind) => (left[kind] && right[kind] ? either(left[kind], right[kind]) : (left[kind] ?? right[kind]));
  return Object.fromEntries(kinds.map((kind) => [kind, flags(kind)]));
}

function same(left, right) {
  const kinds = Object.keys(left);
  const alike = (kind) => kind in right && left[kind].every((flag, place) => flag === right[kind][place]);
  return kinds.length === Object.keys(right).length && kinds.every(alike);
}
