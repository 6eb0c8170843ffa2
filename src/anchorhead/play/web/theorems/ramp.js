/* The paper's head theorems as they stand in Python: a truncated linear function by one head over p anchors, or by H
   heads whose anchors are the positions of n tokens.

   In units of the spacing the query is q = (s - middle)/spacing and the logits 2c q k - c k^2 = -c (q - k)^2 + c q^2: the
   last term is common to all anchors k, so softmax picks those nearest to q. */

import { arrayOf, attention, embed } from "../network/layers.js";
import { network } from "../network/network.js";
import { softmaxOf } from "../network/softmax.js";

const SILENT = 44; // exp(-44) is below half the last bit of float64, even 1,000 times

/** What a truncated linear function is: s, cut off at low and at high. */
export function cutOff(s, low, high) {
  return Math.min(Math.max(s, low), high);
}

/** One head over p even anchors from low to high. */
export function singleHead({ low, high, anchors, c }) {
  const middle = low + (high - low) / 2;
  const spacing = (high - low) / (anchors - 1);
  const k = places(anchors);
  const heads = [{ origin: 0, values: k }];
  return {
    ...ramp({ low, high, c, middle, spacing, k, heads }),
    theorem: (high - low) / anchors,
    network: singleNetwork,
  };
}

/** H heads over the n positions: each owns n - 2 cells, and its first and last position are dummies. */
export function severalHeads({ low, high, tokens, heads: count, c }) {
  const middle = low + (high - low) / 2;
  const cells = (tokens - 2) * count;
  const spacing = (high - low) / cells;
  const k = places(tokens);
  const heads = Array.from({ length: count }, (_, h) => {
    const origin = (h - (count - 1) / 2) * (tokens - 2);
    const values = k.map((place) => origin + place);
    values[0] = h === 0 ? -cells / 2 : 0;
    values[tokens - 1] = h === count - 1 ? cells / 2 : 0;
    return { origin, values };
  });
  return {
    ...ramp({ low, high, c, middle, spacing, k, heads }),
    theorem: (high - low) / cells,
    network: severalNetwork,
  };
}

/** The largest |head - truncated line| at the points, and where. */
export function largestError(made, points) {
  let found = { error: 0, at: points[0] };
  for (const s of points) {
    const error = Math.abs(made.value(s) - cutOff(s, made.low, made.high));
    if (error > found.error) found = { error, at: s };
  }
  return found;
}

/** Where errors are looked for: `each` points a spacing, from a quarter of the range below it, or a little more, to a quarter above. */
export function pointsToTry(made, each = 24) {
  const { low, high, spacing } = made;
  const half = Math.ceil(((high - low) / spacing) * 0.75) * each;
  return Float64Array.from({ length: 2 * half + 1 }, (_, j) => made.middle + ((j - half) * spacing) / each);
}

function places(count) {
  return Array.from({ length: count }, (_, j) => j - (count - 1) / 2);
}

function ramp(given) {
  const { c, middle, spacing, k, heads } = given;
  const query = (s) => (s - middle) / spacing;
  const logits = (s, h = 0) => k.map((place) => 2 * c * place * (query(s) - heads[h].origin) - c * place * place);
  const weights = (s, h = 0) => softmaxOf(logits(s, h));
  const read = (s, h) => spacing * mean(query(s) - heads[h].origin, c, k, heads[h].values);
  const value = (s) => heads.reduce((sum, _, h) => sum + read(s, h), middle);
  const anchors = heads.map(({ origin }) => k.map((place) => middle + spacing * (origin + place)));
  return { ...given, query, logits, weights, read, value, anchors, beta: c / spacing ** 2 };
}

/** What softmax reads at a query: over the anchors whose logits are within SILENT of the largest. */
function mean(q, c, k, values) {
  const nearest = Math.min(k.length - 1, Math.max(0, Math.round(q - k[0])));
  const reach = Math.sqrt(SILENT / c + (q - k[nearest]) ** 2);
  const first = Math.max(0, Math.ceil(q - reach - k[0]));
  const last = Math.min(k.length - 1, Math.floor(q + reach - k[0]));
  const largest = 2 * c * k[nearest] * q - c * k[nearest] * k[nearest];
  let [sum, total] = [0, 0];
  for (let j = first; j <= last; j++) {
    const weight = Math.exp(2 * c * k[j] * q - c * k[j] * k[j] - largest);
    total += weight;
    sum += weight * values[j];
  }
  return sum / total;
}

/** The network of one token with w = 1 and t = 0: its input is s. */
function singleNetwork() {
  const { c, k, middle, spacing } = this;
  const rows = k.map((place) => [0, 1, place, -place * place]);
  rows[0][0] = -middle / spacing;
  const layers = [
    embed({
      weight: arrayOf([[[1 / spacing], [0], [0], [0]]]),
      bias: arrayOf(rows.slice(0, 1)),
      registers: arrayOf(rows.slice(1)),
      tokens: 1,
      features: ["query", "one", "anchor", "minus anchor squared"],
    }),
    attention({
      query: arrayOf([
        [
          [1, 0, 0, 0],
          [0, 1, 0, 0],
        ],
      ]),
      key: arrayOf([
        [
          [0, 0, 2 * c, 0],
          [0, 0, 0, c],
        ],
      ]),
      value: arrayOf([[[0, 0, 1, 0]]]),
      output: arrayOf([[[spacing]]]),
      bias: arrayOf([middle]),
    }),
  ];
  return network({ layers });
}

/** The network of n tokens, each with w = 1 and t = 0. */
function severalNetwork() {
  const { c, k, middle, spacing, heads } = this;
  const last = k.length - 1;
  const rows = k.map((place, j) => [
    -middle / spacing,
    1,
    place,
    -place * place,
    ...k.map((_, i) => (i === j ? 1 : 0)),
  ]);
  const blank = () => Array(rows[0].length).fill(0);
  const row = (entries) => Object.assign(blank(), entries);
  const layers = [
    embed({
      weight: arrayOf(rows.map((one) => one.map((_, f) => [f === 0 ? 1 / spacing : 0]))),
      bias: arrayOf(rows),
      tokens: last + 1,
    }),
    attention({
      query: arrayOf(heads.map(({ origin }) => [row({ 0: 1, 1: -origin }), row({ 1: 1 })])),
      key: arrayOf([[row({ 2: 2 * c }), row({ 3: c })]]),
      value: arrayOf(heads.map(({ values }) => [[0, 0, 0, 0, ...values]])),
      output: arrayOf(heads.map(() => [[spacing]])),
      bias: arrayOf([middle]),
    }),
  ];
  return network({ layers });
}
