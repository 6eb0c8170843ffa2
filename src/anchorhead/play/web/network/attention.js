/* One attention layer: who asks, whom each token sees, the weights, and what each head adds. */

import { tokenCounts } from "./layers.js";
import { askers, seen } from "./needs.js";

/** The tokens that leave an attention layer; with notes, what its heads did is added to them. */
export function attend({ layer, after, stream, place, number = 0 }, kinds, tokens, onFeatures, notes) {
  const asking = askers(layer, after);
  const visible = seen(layer, asking, stream);
  const columns = columnsOf(visible, tokens);
  const keys = stacked(layer.key, visible, tokens);
  const values = stacked(layer.value, visible, tokens);
  const note = notes === null ? null : newNote(layer, place, number, asking, visible, tokens);
  let asked = 0;
  const result = {};
  for (const kind of kinds) {
    const x = tokens[kind];
    const y = layer.skip === null ? zeros(x.count, layer.outputs) : onFeatures(layer.skip, x);
    if (asking.includes(kind)) {
      const queries = heads(layer.query, x);
      for (let i = 0; i < x.count; i++, asked++)
        for (let head = 0; head < layer.heads; head++) {
          const ranges = visibleRanges(layer, kind, i, columns, visible);
          const weights = weigh(layer, queries, i, head, keys, ranges);
          const read = readValues(layer, head, weights, values, ranges);
          const added = through(layer, head, read);
          for (let o = 0; o < layer.outputs; o++) y.data[i * layer.outputs + o] += added[o];
          if (note !== null) {
            note.weights.set(weights, (head * note.asking.length + asked) * note.seen.length);
            note.added.set(added, (head * note.asking.length + asked) * layer.outputs);
          }
        }
    }
    if (layer.bias !== null)
      for (let place = 0; place < y.data.length; place++) y.data[place] += layer.bias.data[place % layer.outputs];
    result[kind] = y;
  }
  if (note !== null) notes.push(note);
  return result;
}

/** About how many multiplications the layer takes when `tokens` tokens enter the network. */
export function attentionWork({ layer, stream }, asking, tokens) {
  const count = tokenCounts(stream, tokens);
  const all = Object.values(count).reduce((a, b) => a + b, 0);
  const asked = asking.reduce((sum, kind) => sum + count[kind], 0);
  const size = layer.query.shape[1];
  const values = layer.value.shape[1];
  const maps = all * (layer.key.data.length + layer.value.data.length + (layer.skip?.weight.data.length ?? 0));
  const sees = layer.grid !== null ? layer.points : layer.mask === "self+registers" ? 1 + count.register : all;
  return maps + asked * (layer.query.data.length + layer.heads * (sees * (size + values) + layer.outputs * values));
}

/** How many numbers the notes of one run of the layer hold. */
export function attentionRecorded({ layer, stream }, asking, tokens) {
  const count = tokenCounts(stream, tokens);
  const total = (kinds) => kinds.reduce((sum, kind) => sum + count[kind], 0);
  return layer.heads * total(asking) * (total(seen(layer, asking, stream)) + layer.outputs);
}

function newNote(layer, place, step, asking, visible, tokens) {
  const listed = (kinds) =>
    kinds.flatMap((kind) => Array.from({ length: tokens[kind].count }, (_, index) => ({ kind, index })));
  const note = { place, step, labels: layer.labels, features: layer.features, heads: layer.heads, grid: layer.grid };
  note.asking = listed(asking);
  note.seen = listed(visible);
  note.weights = new Float64Array(layer.heads * note.asking.length * note.seen.length);
  note.added = new Float64Array(layer.heads * note.asking.length * layer.outputs);
  return note;
}

/** Where the keys of each kind begin and end, one kind after the other. */
function columnsOf(visible, tokens) {
  const columns = {};
  let begin = 0;
  for (const kind of visible) {
    columns[kind] = [begin, begin + tokens[kind].count];
    begin += tokens[kind].count;
  }
  return columns;
}

/** The ranges of keys that token i of a kind sees. */
function visibleRanges(layer, kind, i, columns, visible) {
  const registers = columns.register ? [columns.register] : [];
  if (layer.grid !== null) return [[columns.register[0], columns.register[0] + layer.points]];
  if (layer.mask === "self+registers" && kind !== "register")
    return [[columns[kind][0] + i, columns[kind][0] + i + 1], ...registers];
  if (layer.mask !== null && kind === "register") return registers;
  if (layer.mask === "causal" && kind === "input") return [[columns.input[0], columns.input[0] + i + 1], ...registers];
  if (layer.mask === "registers+states") return [...registers, ...(columns.state ? [columns.state] : [])];
  return visible.map((one) => columns[one]);
}

/** (heads, size, features) of each token: a row of heads * size numbers a token. */
function heads(weight, x) {
  const rows = weight.shape[0] * weight.shape[1];
  const data = new Float64Array(x.count * rows);
  for (let i = 0; i < x.count; i++)
    for (let row = 0; row < rows; row++) {
      let sum = 0;
      for (let j = 0; j < x.width; j++) sum += weight.data[row * x.width + j] * x.data[i * x.width + j];
      data[i * rows + row] = sum;
    }
  return { rows, size: weight.shape[1], shared: weight.shape[0] === 1, data };
}

function stacked(weight, visible, tokens) {
  const parts = visible.map((kind) => heads(weight, tokens[kind]));
  const data = new Float64Array(parts.reduce((sum, part) => sum + part.data.length, 0));
  let begin = 0;
  for (const part of parts) {
    data.set(part.data, begin);
    begin += part.data.length;
  }
  const rows = weight.shape[0] * weight.shape[1];
  return { rows, size: weight.shape[1], shared: weight.shape[0] === 1, data, count: data.length / rows };
}

/** The softmax over the keys in the ranges; a weight for every key, 0 for those outside. */
function weigh(layer, queries, i, head, keys, ranges) {
  const weights = new Float64Array(keys.count);
  const query = queries.data.subarray(
    i * queries.rows + head * queries.size,
    i * queries.rows + (head + 1) * queries.size,
  );
  const logit = layer.grid === null ? plainLogit(query, keys, head) : gridLogit(layer, query, keys, head, ranges[0][0]);
  let largest = -Infinity;
  for (const [begin, end] of ranges)
    for (let k = begin; k < end; k++) {
      weights[k] = logit(k);
      if (weights[k] > largest) largest = weights[k];
    }
  let sum = 0;
  for (const [begin, end] of ranges)
    for (let k = begin; k < end; k++) sum += weights[k] = Math.exp(weights[k] - largest);
  for (const [begin, end] of ranges) for (let k = begin; k < end; k++) weights[k] /= sum;
  return weights;
}

function plainLogit(query, keys, head) {
  const shift = keys.shared ? 0 : head * keys.size;
  return (k) => {
    let sum = 0;
    for (let j = 0; j < query.length; j++) sum += query[j] * keys.data[k * keys.rows + shift + j];
    return sum;
  };
}

/** Logits over a tensor grid are sums over its axes; along an axis the key is read where all other indices are 0. */
function gridLogit(layer, query, keys, head, first) {
  const sides = layer.grid;
  const size = query.length / sides.length;
  const shift = keys.shared ? 0 : head * keys.size;
  const strides = sides.map((_, axis) => sides.slice(axis + 1).reduce((a, b) => a * b, 1));
  const along = sides.map((side, axis) =>
    Array.from({ length: side }, (_, index) => {
      const key = (first + index * strides[axis]) * keys.rows + shift;
      let sum = 0;
      for (let j = axis * size; j < (axis + 1) * size; j++) sum += query[j] * keys.data[key + j];
      return sum;
    }),
  );
  return (k) =>
    along.reduce((sum, logits, axis) => sum + logits[Math.floor((k - first) / strides[axis]) % sides[axis]], 0);
}

function readValues(layer, head, weights, values, ranges) {
  const read = new Float64Array(values.size);
  const shift = values.shared ? 0 : head * values.size;
  for (const [begin, end] of ranges)
    for (let k = begin; k < end; k++)
      for (let v = 0; v < values.size; v++) read[v] += weights[k] * values.data[k * values.rows + shift + v];
  return read;
}

function through(layer, head, read) {
  const added = new Float64Array(layer.outputs);
  for (let o = 0; o < layer.outputs; o++) {
    const row = (head * layer.outputs + o) * read.length;
    for (let v = 0; v < read.length; v++) added[o] += layer.output.data[row + v] * read[v];
  }
  return added;
}

function zeros(count, width) {
  return { count, width, data: new Float64Array(count * width) };
}
