/* A network runs: linear maps and softmax attention in float64, one input at a time, with what its heads did on the way.

   A float32 network runs in float64 too, with the very weights that it stores, so that what float32 would round off is
   kept. Whoever shows the result says so. */

import { KINDS, NetworkError, follow, kindsOf, start, tokenCounts } from "./layers.js";
import { attend, attentionRecorded, attentionWork } from "./attention.js";
import { askers, everything, needsThrough, steadyNeeds } from "./needs.js";
import { softmaxOf } from "./softmax.js";

export const MAX_WORK = 4e8;
export const MAX_RECORDED = 4e6;

/** A chain of layers: {layers, streams, output, tokenAxis, parameters}; refuses layers that do not follow. */
export function network({ layers, output = "input", tokenAxis = true }) {
  if (!Array.isArray(layers) || layers[0]?.kind !== "Embed") throw new NetworkError("its first layer is not an Embed");
  const streams = [start(layers[0])];
  layers.slice(1).forEach((layer, n) => {
    if (layer.kind === "Embed") throw new NetworkError(`layer ${n + 2} is an Embed, which can only come first`);
    streams.push(follow(layer, streams.at(-1)));
  });
  if (!kindsOf(streams.at(-1)).includes(output)) throw new NetworkError(`it puts out tokens that it does not have`);
  if (!tokenAxis && (layers[0].tokens !== 1 || tokenCounts(streams.at(-1), 1)[output] !== 1))
    throw new NetworkError("it leaves out the axis of tokens, but has more than one");
  return { layers, streams, output, tokenAxis, parameters: parameters(layers) };
}

/**
 * What the network makes of x, a list of tokens, each a list of numbers: {output, attention, path}.
 *
 * output     a list of tokens, each a list of numbers
 * attention  with {record: true}: for each attention layer that runs {place, step, labels, features, heads, grid, asking,
 *            seen, weights, added}; asking and seen list tokens {kind, index}; weights (heads, asking, seen); added (heads,
 *            asking, features), what each head adds to the stream. Null where they would be over MAX_RECORDED numbers
 * path       with {path: true}: what would leave the network after 0, 1, ... steps of its first Repeat
 */
export function run(net, x, { record = false, path = false } = {}) {
  const first = net.layers[0];
  checkInput(first, x);
  const { steps, kinds } = planOf(net);
  const total = work(steps, x.length) * (path ? 2 : 1);
  if (total > MAX_WORK)
    throw new NetworkError(
      `This input takes about ${total.toExponential(1)} multiplications; the page does up to ` +
        `${MAX_WORK.toExponential(0)}. Give fewer tokens, or use Python.`,
    );
  const notes = record && recorded(steps, x.length) <= MAX_RECORDED ? [] : null;
  let tokens = embedded(first, x, kinds);
  let leaving = null;
  for (const step of steps) {
    if (path && leaving === null && step.layer.kind === "Repeat") leaving = { from: tokens, step };
    tokens = apply(step, tokens, notes);
  }
  const result = { output: rows(tokens[net.output]), attention: notes };
  if (path) result.path = pathOf(net, steps, leaving);
  return result;
}

/** About how many multiplications a run with so many tokens takes. */
export function workOf(net, tokens) {
  return work(planOf(net).steps, tokens);
}

const plans = new WeakMap(); // what later layers read does not depend on the input: found once for each network

function planOf(net) {
  if (!plans.has(net)) {
    const inner = net.layers.slice(1);
    const needed = needsThrough(inner, everything(net.streams.at(-1), net.output), net.streams[0]);
    const steps = inner.map((layer, n) => ({ layer, after: needed[n + 1], stream: net.streams[n], place: `${n + 2}` }));
    plans.set(net, { steps, kinds: Object.keys(needed[0]) });
  }
  return plans.get(net);
}

function pathOf(net, steps, leaving) {
  if (leaving === null) throw new NetworkError("a network without a Repeat has no path");
  const { from, step } = leaving;
  const rest = steps.slice(steps.indexOf(step) + 1);
  const found = [from];
  for (let n = 0; n < step.layer.times; n++) found.push(once(step, found.at(-1), null, n));
  return found.map((tokens) => rows(rest.reduce((now, one) => apply(one, now, null), tokens)[net.output]));
}

function checkInput(first, x) {
  const fits = Array.isArray(x) && x.length > 0 && x.every((token) => token.length === first.inputs);
  if (!fits || (first.tokens !== null && x.length !== first.tokens))
    throw new NetworkError(`the input must be ${first.tokens ?? "any number of"} tokens of ${first.inputs} numbers`);
  if (!x.every((token) => Array.from(token).every(Number.isFinite))) throw new NetworkError("inputs must be numbers");
}

function embedded(layer, x, kinds) {
  const { weight, bias, source } = layer;
  const tokens = {};
  const width = layer.features.length;
  if (kinds.includes("input")) {
    const count = layer.positions ?? x.length;
    const data = new Float64Array(count * width);
    for (let i = 0; i < count; i++) {
      const from = x[source === null ? i : source.data[i]];
      const block = weight.shape.length === 3 ? i * width : 0;
      const shift = bias.shape.length === 2 ? i * width : 0;
      for (let o = 0; o < width; o++) {
        let sum = 0;
        for (let j = 0; j < from.length; j++) sum += weight.data[(block + o) * from.length + j] * from[j];
        data[i * width + o] = sum + bias.data[shift + o];
      }
    }
    tokens.input = { count, width, data };
  }
  for (const [kind, constant] of [
    ["register", layer.registers],
    ["state", layer.states],
  ])
    if (kinds.includes(kind) && constant !== null)
      tokens[kind] = { count: constant.shape[0], width, data: constant.data };
  return tokens;
}

function apply(step, tokens, notes) {
  const { layer, after } = step;
  const kinds = KINDS.filter((kind) => kind in after);
  const each = (change) => Object.fromEntries(kinds.map((kind) => [kind, change(tokens[kind])]));
  if (layer.kind === "Attention") return attend(step, kinds, tokens, onFeatures, notes);
  if (layer.kind === "Softmax") return each((one) => softmaxed(layer, one));
  if (layer.kind === "Linear")
    return layer.across ? { input: acrossTokens(layer, tokens) } : each((one) => onFeatures(layer, one));
  for (let n = 0; n < layer.times; n++) tokens = once(step, tokens, notes, n);
  return Object.fromEntries(kinds.map((kind) => [kind, tokens[kind]]));
}

function once(step, tokens, notes, number) {
  for (const inner of innerSteps(step)) tokens = apply({ ...inner, number }, tokens, notes);
  return tokens;
}

function innerSteps(step) {
  if (step.inner) return step.inner;
  const { layer, after, stream, place } = step;
  const needed = needsThrough(layer.layers, steadyNeeds(layer, after, stream), stream);
  let enters = stream;
  step.inner = layer.layers.map((one, n) => {
    const inner = { layer: one, after: needed[n + 1], stream: enters, place: `${place}.${n + 1}` };
    enters = follow(one, enters);
    return inner;
  });
  return step.inner;
}

function onFeatures(layer, x) {
  const { weight, bias, blocks, inputs, outputs } = layer;
  const size = inputs / blocks;
  const each = outputs / blocks;
  const data = new Float64Array(x.count * outputs);
  for (let i = 0; i < x.count; i++)
    for (let o = 0; o < outputs; o++) {
      const from = i * inputs + Math.floor(o / each) * size;
      let sum = 0;
      for (let j = 0; j < size; j++) sum += weight.data[o * size + j] * x.data[from + j];
      data[i * outputs + o] = bias === null || layer.across ? sum : sum + bias.data[o];
    }
  return { count: x.count, width: outputs, data };
}

function acrossTokens(layer, tokens) {
  const x = joined(tokens);
  const { weight, bias, mix, outputs, tokensIn, tokensOut } = layer;
  const data = new Float64Array(tokensOut * outputs);
  const moved = mix === null ? x : onFeatures(layer, x);
  for (let j = 0; j < tokensOut; j++)
    for (let o = 0; o < outputs; o++) {
      let sum = 0;
      if (mix === null) {
        const row = (j * outputs + o) * x.data.length;
        for (let n = 0; n < x.data.length; n++) sum += weight.data[row + n] * x.data[n];
      } else for (let n = 0; n < tokensIn; n++) sum += mix.data[j * tokensIn + n] * moved.data[n * outputs + o];
      const shift = bias === null ? 0 : bias.data[(bias.shape.length === 2 ? j * outputs : 0) + o];
      data[j * outputs + o] = sum + shift;
    }
  return { count: tokensOut, width: outputs, data };
}

function softmaxed(layer, x) {
  const data = new Float64Array(x.data.length);
  for (let i = 0, begin = 0; i < x.count; i++)
    for (const size of layer.groups) {
      data.set(softmaxOf(x.data.subarray(begin, begin + size)), begin);
      begin += size;
    }
  return { ...x, data };
}

function joined(tokens) {
  const parts = KINDS.filter((kind) => kind in tokens).map((kind) => tokens[kind]);
  const data = new Float64Array(parts.reduce((sum, part) => sum + part.data.length, 0));
  let begin = 0;
  for (const part of parts) {
    data.set(part.data, begin);
    begin += part.data.length;
  }
  return { count: parts.reduce((sum, part) => sum + part.count, 0), width: parts[0].width, data };
}

function rows(tokens) {
  const { count, width, data } = tokens;
  return Array.from({ length: count }, (_, i) => Array.from(data.subarray(i * width, (i + 1) * width)));
}

function work(steps, tokens) {
  let total = 0;
  for (const step of steps) {
    const { layer, stream } = step;
    const count = Object.values(tokenCounts(stream, tokens)).reduce((a, b) => a + b, 0);
    if (layer.kind === "Repeat") total += layer.times * work(innerSteps(step), tokens);
    else if (layer.kind === "Attention") total += attentionWork(step, askers(layer, step.after), tokens);
    else if (layer.kind === "Linear") total += layer.weight.data.length * (layer.weight.shape.length === 4 ? 1 : count);
    else total += count * stream.features.length;
  }
  return total;
}

function recorded(steps, tokens) {
  return steps.reduce((sum, step) => {
    if (step.layer.kind === "Repeat") return sum + step.layer.times * recorded(innerSteps(step), tokens);
    return (
      sum + (step.layer.kind === "Attention" ? attentionRecorded(step, askers(step.layer, step.after), tokens) : 0)
    );
  }, 0);
}

function parameters(layers) {
  const ofLayer = (layer) => {
    if (layer.kind === "Repeat") return parameters(layer.layers);
    const arrays = ["weight", "bias", "registers", "states", "mix", "query", "key", "value", "output"];
    const own = arrays.reduce((sum, name) => sum + (layer[name]?.data?.length ?? 0), 0);
    return own + (layer.skip ? ofLayer(layer.skip) : 0);
  };
  return layers.reduce((sum, layer) => sum + ofLayer(layer), 0);
}
