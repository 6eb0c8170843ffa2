/* Two attention layers for a function of two tokens: the first gathers both tokens into each, the second is one head
   over a grid of p x p anchors whose values are the function's. Logits add up axis by axis, so weights are products. */

import { arrayOf, attention, embed, linear } from "../network/layers.js";
import { network } from "../network/network.js";
import { softmaxOf } from "../network/softmax.js";

const FAR = 2000; // the key of the token that is sought: all other weights underflow to 0

/** Functions on [-1, 1]^2 with Lipschitz constants along both axes; python: with x (points, 2). */
export const FUNCTIONS = [
  {
    name: "sin(3x)·cos(2y)",
    f: (x, y) => Math.sin(3 * x) * Math.cos(2 * y),
    lipschitz: [3, 2],
    python: "np.sin(3 * x[:, 0]) * np.cos(2 * x[:, 1])",
  },
  { name: "x·y", f: (x, y) => x * y, lipschitz: [1, 1], python: "x[:, 0] * x[:, 1]" },
  { name: "max(x, y)", f: (x, y) => Math.max(x, y), lipschitz: [1, 1], python: "np.maximum(x[:, 0], x[:, 1])" },
  {
    name: "|x| − |y|",
    f: (x, y) => Math.abs(x) - Math.abs(y),
    lipschitz: [1, 1],
    python: "np.abs(x[:, 0]) - np.abs(x[:, 1])",
  },
  {
    name: "exp(−3(x² + y²))",
    f: (x, y) => Math.exp(-3 * (x * x + y * y)),
    lipschitz: [1.486, 1.486],
    python: "np.exp(-3 * (x[:, 0] ** 2 + x[:, 1] ** 2))",
  },
];

/** The head over p x p even anchors on [-1, 1]^2, with values f(anchor). */
export function gridHead({ f, side, c }) {
  const spacing = 2 / (side - 1);
  const beta = c / spacing ** 2;
  const places = Array.from({ length: side }, (_, k) => -1 + k * spacing);
  const slopes = places.map((place) => 2 * beta * place);
  const offsets = places.map((place) => -beta * place * place);
  const along = (x) => softmaxOf(slopes.map((slope, k) => slope * x + offsets[k]));
  const values = places.map((x) => places.map((y) => f(x, y)));
  const value = (x, y) => {
    const [first, second] = [along(x), along(y)];
    return values.reduce((sum, row, i) => sum + first[i] * row.reduce((inner, v, j) => inner + second[j] * v, 0), 0);
  };
  return { side, c, spacing, beta, places, slopes, offsets, values, along, value, network: gridNetwork };
}

/** f and the head at count x count even points, rows along y from below, and the largest difference. */
export function compared(head, f, count) {
  const points = Array.from({ length: count }, (_, k) => -1 + (2 * k) / (count - 1));
  const along = points.map(head.along);
  const inner = along.map((weights) => head.values.map((row) => row.reduce((sum, v, j) => sum + weights[j] * v, 0)));
  const [exact, found] = [new Float64Array(count * count), new Float64Array(count * count)];
  let error = 0;
  points.forEach((y, row) =>
    points.forEach((x, column) => {
      const place = row * count + column;
      exact[place] = f(x, y);
      found[place] = along[column].reduce((sum, weight, i) => sum + weight * inner[row][i], 0);
      error = Math.max(error, Math.abs(exact[place] - found[place]));
    }),
  );
  return { exact, found, error };
}

/** sup over x of the mean distance between x and the anchors that softmax picks for it, on 24 points a spacing. */
export function meanDistance(head) {
  let most = 0;
  const count = 24 * (head.side - 1);
  for (let n = 0; n <= count; n++) {
    const x = -1 + (2 * n) / count;
    const mean = head.along(x).reduce((sum, weight, k) => sum + weight * Math.abs(head.places[k] - x), 0);
    most = Math.max(most, mean);
  }
  return most;
}

/** The network: two tokens of one number in, two tokens out, both with f(first, second). */
function gridNetwork() {
  const { side, slopes, offsets, values } = this;
  const names = ["x", "one", "at position 0", "at position 1", "slope 0", "offset 0", "slope 1", "offset 1", "value"];
  const gathered = ["x of token 0", "x of token 1", ...names.slice(1)];
  const unit = (count, place) => Array.from({ length: count }, (_, k) => (k === place ? 1 : 0));
  const scaled = (row, by) => row.map((entry) => entry * by);
  const pair = Array.from({ length: side * side }, (_, n) => [Math.floor(n / side), n % side]);
  const registers = pair.map(([i, j]) => [0, 0, 0, 0, slopes[i], offsets[i], slopes[j], offsets[j], values[i][j]]);
  const skip = gathered.map((_, row) => (row < 2 ? Array(9).fill(0) : unit(9, row - 1)));
  const layers = [
    embed({
      weight: arrayOf(names.map((_, row) => [row === 0 ? 1 : 0])),
      bias: arrayOf([
        [0, 1, 1, 0, 0, 0, 0, 0, 0],
        [0, 1, 0, 1, 0, 0, 0, 0, 0],
      ]),
      registers: arrayOf(registers),
      tokens: 2,
      features: names,
    }),
    attention({
      query: arrayOf([[unit(9, 1)], [unit(9, 1)]]),
      key: arrayOf([[scaled(unit(9, 2), FAR)], [scaled(unit(9, 3), FAR)]]),
      value: arrayOf([[unit(9, 0)]]),
      output: arrayOf([gathered.map((_, row) => [row === 0 ? 1 : 0]), gathered.map((_, row) => [row === 1 ? 1 : 0])]),
      skip: linear({ weight: arrayOf(skip), features: gathered }),
      features: gathered,
      labels: ["gathers token 0", "gathers token 1"],
    }),
    attention({
      query: arrayOf([[unit(10, 0), unit(10, 2), unit(10, 1), unit(10, 2)]]),
      key: arrayOf([[5, 6, 7, 8].map((place) => unit(10, place))]),
      value: arrayOf([[unit(10, 9)]]),
      output: arrayOf([[[1]]]),
      grid: [side, side],
      features: ["output"],
      labels: ["the function, over a grid of anchors"],
    }),
  ];
  return network({ layers });
}
