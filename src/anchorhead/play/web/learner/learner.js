/* Gradient descent on the squared loss as attention, for a line y = slope x + intercept through examples in a plane.

   The state token carries w = (slope, intercept) and asks; the examples are the keys, once with either sign. With
   r_i = w . a_i - y_i and a_i = (x_i, 1) the logits are h r_i and -h r_i and the values a_i and -a_i, so one head reads

       (sum_i a_i sinh(h r_i)) / (sum_i cosh(h r_i)) = h g + O(h^3),    g the gradient.

   Two sharpnesses, h and 2h, weighted 4/3 and -1/3, leave h^5. These are the weights of lemmas/learners/direct.py.

   For the logistic loss a step is three attention layers: score, link (the sigmoid is two anchors), collect. Its network
   comes with the page, for a rate of 1: the rate is a factor of what the last of the three adds. */

import { arrayOf, attention, embed, linear, repeat } from "../network/layers.js";
import { network, run } from "../network/network.js";
import { prompt } from "../network/prompt.js";

export const SHARPNESS = 2 ** -11; // what incontext.gradient_descent takes for examples and labels in [-1, 1]
const OUT_OF_REACH = 2 ** 20; // how far the state's own key is below the others
const NAMES = ["x", "sign", "label", "is no example", "slope", "intercept"];

/** What is learned with each loss: at a score s = w . (x, 1) the prediction, the loss, and the steepest slope. */
export const LOSSES = {
  squared: { predict: (s) => s, value: (s, y) => (s - y) ** 2 / 2, slope: 1 },
  logistic: {
    predict: (s) => 1 / (1 + Math.exp(-s)),
    value: (s, y) => Math.max(s, 0) + Math.log1p(Math.exp(-Math.abs(s))) - y * s,
    slope: 1 / 4,
  },
};

/** The network of a logistic learner, from the stored one. */
export function logisticLearner(stored, { rate, steps }) {
  const [first, loop, read] = stored.layers;
  const collect = loop.layers.at(-1);
  const output = { shape: collect.output.shape, data: collect.output.data.map((weight) => rate * weight) };
  const layers = [...loop.layers.slice(0, -1), { ...collect, output }];
  return network({ layers: [first, repeat({ layers, times: steps }), read], output: "state" });
}

/** The network of a learner for the squared loss. */
export function squaredLearner({ rate, steps, sharpness }) {
  const unit = (place, by = 1) => NAMES.map((_, k) => (k === place ? by : 0));
  const sharp = [sharpness, 2 * sharpness];
  const shares = [4 / 3, -1 / 3];
  const output = (h, share) => NAMES.map((_, row) => [0, 1].map((w) => (row === 4 + w ? (-rate * share) / h : 0)));
  const step = attention({
    query: arrayOf(sharp.map((h) => [unit(4, h), unit(5, h), unit(3, h), unit(3)])),
    key: arrayOf([[unit(0), unit(1), unit(2, -1), unit(3, -OUT_OF_REACH)]]),
    value: arrayOf([[unit(0), unit(1)]]),
    output: arrayOf(sharp.map((h, n) => output(h, shares[n]))),
    skip: linear({ weight: arrayOf(NAMES.map((_, k) => unit(k))), features: NAMES }),
    features: NAMES,
    labels: sharp.map((h) => `the gradient, at sharpness ${h}`),
  });
  const layers = [
    embed({
      weight: arrayOf(NAMES.map((_, row) => [0, 1, 2].map((k) => (k === row ? 1 : 0)))),
      bias: arrayOf(NAMES.map(() => 0)),
      states: arrayOf([unit(3)]),
      features: NAMES,
    }),
    repeat({ layers: [step], times: steps }),
    linear({ weight: arrayOf([unit(4), unit(5)]), features: ["slope", "intercept"] }),
  ];
  return network({ layers, output: "state" });
}

/**
 * What a learner's network does with examples: {path, weights}.
 *
 * path      w after 0, 1, ... steps, each [slope, intercept]
 * weights   for each step and head of its last layer what the state weighs each example with: {copy, negative}
 */
export function learn(net, examples) {
  const { path, attention: notes } = run(net, prompt(examples), { path: true, record: true });
  const n = examples.length;
  const last = `2.${net.layers[1].layers.length}`;
  const weights = notes
    .filter((note) => note.place === last)
    .map((note) =>
      Array.from({ length: note.heads }, (_, head) =>
        examples.map((_, i) => {
          const row = ((head + 1) * note.asking.length - 1) * note.seen.length; // the state asks last
          return { copy: note.weights[row + i], negative: note.weights[row + n + i] };
        }),
      ),
    );
  return { path: path.map((tokens) => tokens[0]), weights };
}

/** Plain gradient descent on the same examples. */
export function exactPath(examples, { loss, rate, steps }) {
  const { predict } = LOSSES[loss];
  let w = [0, 0];
  const path = [w];
  for (let step = 0; step < steps; step++) {
    const residuals = examples.map(([x, y]) => predict(w[0] * x + w[1]) - y);
    const mean = (f) => examples.reduce((sum, one, i) => sum + residuals[i] * f(one), 0) / examples.length;
    w = [w[0] - rate * mean(([x]) => x), w[1] - rate * mean(() => 1)];
    path.push(w);
  }
  return path;
}

/** The mean loss. */
export function meanLoss(examples, loss, [slope, intercept]) {
  const { value } = LOSSES[loss];
  return examples.reduce((sum, [x, y]) => sum + value(slope * x + intercept, y), 0) / examples.length;
}

/** The largest rate for which descent cannot diverge: 2 over the link's steepest slope times the largest eigenvalue of the
    mean of (x, 1)(x, 1)'. */
export function safeRate(examples, loss) {
  const mean = (f) => examples.reduce((sum, [x]) => sum + f(x), 0) / examples.length;
  const [square, first] = [mean((x) => x * x), mean((x) => x)];
  return 2 / LOSSES[loss].slope / ((square + 1) / 2 + Math.hypot((square - 1) / 2, first));
}

/** The line of least squares, where there is only one. */
export function leastSquares(examples) {
  const mean = (f) => examples.reduce((sum, [x, y]) => sum + f(x, y), 0) / examples.length;
  const [mx, my] = [mean((x) => x), mean((_, y) => y)];
  const variance = mean((x) => (x - mx) ** 2);
  if (!(variance > 1e-12)) return null;
  const slope = mean((x, y) => (x - mx) * (y - my)) / variance;
  return [slope, my - slope * mx];
}
