/* The layers of a network, as data, checked as they are made: Embed, Linear, Attention, Softmax, Repeat.

   An array is {shape, data: Float64Array}, rows last. What flows between layers is a stream {inputs, registers, states,
   features}: how many tokens of each kind (inputs is null where any number will do) and what each feature is called. */

export const KINDS = ["input", "register", "state"];
export const MASKS = ["causal", "self+registers", "registers+states"];
const MAX_STEPS = 1000000;
const MAX_DEPTH = 8;

/** A network whose parts do not fit together, or that is too large for the page; the message is meant for people. */
export class NetworkError extends Error {}

/** An array from nested lists of numbers. */
export function arrayOf(nested) {
  const shape = [];
  for (let level = nested; Array.isArray(level); level = level[0]) shape.push(level.length);
  return { shape, data: Float64Array.from(nested.flat(Infinity)) };
}

/** The paper's map A: token i is weight_i x_source(i) + bias_i, then constant registers and states. */
export function embed({ weight, bias, registers = null, states = null, source = null, tokens = null, features }) {
  const layer = { kind: "Embed", weight, bias, registers, states, source, tokens };
  require(weight, "Embed's weight", [2, 3]);
  require(bias, "Embed's bias", [1, 2]);
  for (const [name, one] of [
    ["registers", registers],
    ["states", states],
  ])
    if (one !== null) require(one, `Embed's ${name}`, [2]);
  const width = weight.shape.at(-2);
  for (const one of [bias, registers, states])
    if (one !== null && one.shape.at(-1) !== width) throw new NetworkError("Embed's arrays differ in their features");
  if (tokens !== null && !isCount(tokens)) throw new NetworkError(`Embed has ${tokens} tokens`);
  if (source !== null) {
    require(source, "Embed's source", [1]);
    const fits = source.data.every((token) => Number.isInteger(token) && token >= 0 && token < tokens);
    if (tokens === null || !fits) throw new NetworkError("Embed's source reads tokens that the input does not have");
  }
  layer.positions = source === null ? tokens : source.shape[0];
  for (const [one, dimensions] of [
    [weight, 3],
    [bias, 2],
  ])
    if (one.shape.length === dimensions && one.shape[0] !== layer.positions)
      throw new NetworkError("Embed's arrays differ in their positions");
  layer.inputs = weight.shape.at(-1);
  layer.features = named(features, width, "feature");
  return layer;
}

/** An affine map: on each token (dense or in blocks), or across tokens (with a mix, or a weight of dimension 4). */
export function linear({ weight, bias = null, mix = null, features }) {
  require(weight, "Linear's weight", [2, 3, 4]);
  const dimensions = weight.shape.length;
  if (mix !== null) require(mix, "Linear's mix", [2]);
  if (mix !== null && dimensions === 4) throw new NetworkError("Linear on the whole sequence takes no mix");
  const across = mix !== null || dimensions === 4;
  const blocks = dimensions === 3 ? weight.shape[0] : 1;
  const outputs = dimensions === 4 ? weight.shape[1] : blocks * weight.shape.at(-2);
  const tokensOut = mix !== null ? mix.shape[0] : dimensions === 4 ? weight.shape[0] : null;
  const tokensIn = mix !== null ? mix.shape[1] : dimensions === 4 ? weight.shape[2] : null;
  if (bias !== null) {
    require(bias, "Linear's bias", across ? [1, 2] : [1]);
    const tokens = bias.shape.length === 2 ? bias.shape[0] : tokensOut;
    if (bias.shape.at(-1) !== outputs || tokens !== tokensOut) throw new NetworkError("Linear's bias does not fit");
  }
  const inputs = blocks * weight.shape.at(-1);
  const listed = named(features, outputs, "feature");
  return { kind: "Linear", weight, bias, mix, across, blocks, inputs, outputs, tokensIn, tokensOut, features: listed };
}

/** Softmax attention: y_i = skip(x_i) + bias + sum_h O_h sum_k softmax_k((Q_h x_i) . (K_h x_k)) V_h x_k. */
export function attention(given) {
  const { query, key, value, output, bias = null, mask = null, skip = null, grid = null, features, labels } = given;
  for (const [name, one] of Object.entries({ query, key, value, output })) require(one, `Attention's ${name}`, [3]);
  const [heads, size, width] = query.shape;
  const outputs = output.shape[1];
  const shares = (one) => one.shape[0] === 1 || one.shape[0] === heads;
  const fits =
    shares(key) && key.shape[1] === size && key.shape[2] === width && shares(value) && value.shape[2] === width;
  if (!fits || output.shape[0] !== heads || output.shape[2] !== value.shape[1])
    throw new NetworkError("Attention's query, key, value and output do not fit together");
  if (bias !== null) {
    require(bias, "Attention's bias", [1]);
    if (bias.shape[0] !== outputs) throw new NetworkError("Attention's bias does not fit");
  }
  if (mask !== null && !MASKS.includes(mask)) throw new NetworkError("Attention has a mask of an unknown kind");
  if (skip !== null && (skip.kind !== "Linear" || skip.across || skip.inputs !== width || skip.outputs !== outputs))
    throw new NetworkError("Attention's skip does not fit");
  const points = grid === null ? 0 : counts(grid, "the grid of an Attention").reduce((a, b) => a * b, 1);
  if (grid !== null && (size % grid.length !== 0 || mask !== null))
    throw new NetworkError("Attention's grid does not fit its keys or its mask");
  const listed = { features: named(features, outputs, "feature"), labels: named(labels, heads, "head") };
  return {
    kind: "Attention",
    query,
    key,
    value,
    output,
    bias,
    mask,
    skip,
    grid,
    points,
    heads,
    width,
    outputs,
    ...listed,
  };
}

/** Softmax within a token, over consecutive groups of its features. */
export function softmax({ groups }) {
  return { kind: "Softmax", groups: counts(groups, "the groups of a Softmax") };
}

/** The same layers, `times` over. */
export function repeat({ layers, times }) {
  if (!Array.isArray(layers) || !layers.length) throw new NetworkError("a Repeat has no layers");
  for (const one of layers)
    if (one.kind === "Embed") throw new NetworkError("a Repeat holds an Embed, which can only come first");
  if (!isCount(times)) throw new NetworkError(`a Repeat runs ${times} times`);
  const layer = { kind: "Repeat", layers, times };
  layer.steps = times * layers.reduce((sum, one) => sum + (one.kind === "Repeat" ? one.steps : 1), 0);
  layer.depth = 1 + Math.max(...layers.map((one) => (one.kind === "Repeat" ? one.depth : 0)));
  if (layer.steps > MAX_STEPS || layer.depth > MAX_DEPTH) throw new NetworkError("a Repeat runs too many layers");
  return layer;
}

/** The stream that leaves a first layer. */
export function start(layer) {
  const count = (one) => (one === null ? 0 : one.shape[0]);
  const { positions, features } = layer;
  return { inputs: positions, registers: count(layer.registers), states: count(layer.states), features };
}

/** The stream that leaves a layer when `stream` enters it. */
export function follow(layer, stream) {
  const width = stream.features.length;
  const needs = { Linear: layer.inputs, Attention: layer.width, Softmax: layer.groups?.reduce((a, b) => a + b, 0) };
  if (layer.kind !== "Repeat" && needs[layer.kind] !== width)
    throw new NetworkError(`${layer.kind} takes ${needs[layer.kind]} features, but ${width} enter it`);
  if (layer.kind === "Softmax") return { ...stream, features: stream.features.map((name) => `softmax of ${name}`) };
  if (layer.kind === "Linear") return followLinear(layer, stream);
  if (layer.kind === "Attention") return followAttention(layer, stream);
  let after = stream;
  for (const one of layer.layers) after = follow(one, after);
  const same = ["inputs", "registers", "states"].every((kind) => after[kind] === stream[kind]);
  if (layer.times > 1 && !(same && after.features.length === width))
    throw new NetworkError("what leaves a Repeat is not shaped like what enters it");
  return layer.times === 1 ? after : stream;
}

function followLinear(layer, stream) {
  if (!layer.across) return { ...stream, features: layer.features };
  const tokens = stream.inputs === null ? null : stream.inputs + stream.registers + stream.states;
  if (tokens !== layer.tokensIn)
    throw new NetworkError(`Linear mixes ${layer.tokensIn} tokens, but ${tokens ?? "any number"} enter it`);
  return { inputs: layer.tokensOut, registers: 0, states: 0, features: layer.features };
}

function followAttention(layer, stream) {
  if (layer.mask === "registers+states" && !(stream.registers + stream.states))
    throw new NetworkError("an Attention sees nothing: there are neither registers nor states");
  if (layer.points > stream.registers)
    throw new NetworkError(`Attention over a grid needs ${layer.points} registers; there are ${stream.registers}`);
  return { ...stream, features: layer.features };
}

/** How many tokens of each kind a stream has when `tokens` enter the network. */
export function tokenCounts(stream, tokens) {
  return { input: stream.inputs ?? tokens, register: stream.registers, state: stream.states };
}

/** The kinds of which a stream may have a token. */
export function kindsOf(stream) {
  return KINDS.filter(
    (kind) => ({ input: stream.inputs !== 0, register: stream.registers, state: stream.states })[kind],
  );
}

function require(array, what, dimensions) {
  if (!array || !dimensions.includes(array.shape.length)) throw new NetworkError(`${what} has no fitting shape`);
  if (!array.data.length) throw new NetworkError(`${what} is empty`);
  if (!array.data.every(Number.isFinite)) throw new NetworkError(`${what} has an entry that is not finite`);
}

function named(given, count, what) {
  if (given === undefined || given === null) return Array.from({ length: count }, (_, i) => `${what} ${i}`);
  const fits = Array.isArray(given) && given.length === count && given.every((one) => typeof one === "string");
  if (!fits) throw new NetworkError(`there are ${count} ${what}s, but not a name for each`);
  return given;
}

function counts(given, what) {
  if (!Array.isArray(given) || !given.length || !given.every(isCount)) throw new NetworkError(`${what} is damaged`);
  return given;
}

function isCount(given) {
  return Number.isSafeInteger(given) && given >= 1;
}
