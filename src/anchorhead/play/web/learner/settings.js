/* What can be set in the view of the learner, and what it starts with. */

import { LOSSES, SHARPNESS } from "./learner.js";

export const MOST = 60; // examples: certificates of the Python learner cover 64
export const STEPS = 60;
export const SETS = {
  "a noisy line": [
    [-0.85, -0.52],
    [-0.6, -0.25],
    [-0.42, -0.34],
    [-0.15, 0.08],
    [0.1, -0.02],
    [0.32, 0.35],
    [0.55, 0.28],
    [0.8, 0.62],
  ],
  "a line and an outlier": [
    [-0.9, 0.5],
    [-0.6, 0.38],
    [-0.3, 0.2],
    [0, 0.06],
    [0.3, -0.1],
    [0.6, -0.26],
    [0.85, 0.9],
  ],
  "two classes": [
    [-0.9, 0],
    [-0.7, 0],
    [-0.45, 0],
    [-0.2, 1],
    [-0.05, 0],
    [0.2, 1],
    [0.45, 1],
    [0.6, 0],
    [0.75, 1],
    [0.9, 1],
  ],
  "two clusters": [
    [-0.75, 0.6],
    [-0.7, 0.75],
    [-0.62, 0.55],
    [-0.82, 0.7],
    [0.55, -0.1],
    [0.62, 0.05],
    [0.7, -0.2],
    [0.5, 0.0],
  ],
};

/** What the view shows at first: what a link says, where that makes sense. */
export function started(given) {
  const { examples, rate, step, sharpness, loss } = given ?? {};
  const kind = Object.hasOwn(LOSSES, String(loss)) ? loss : "squared";
  const number = (value, low, high, otherwise) =>
    Number.isFinite(value) && value >= low && value <= high ? value : otherwise;
  const inside = (value) => Number.isFinite(value) && Math.abs(value) <= 1;
  const fits =
    Array.isArray(examples) &&
    examples.length <= MOST &&
    examples.every((one) => Array.isArray(one) && one.length === 2 && one.every(inside));
  return {
    loss: kind,
    examples: labelled(fits ? examples : SETS[kind === "squared" ? "a noisy line" : "two classes"], kind),
    rate: number(rate, 0.02, 2, 0.5),
    step: Math.round(number(step, 0, STEPS, 0)),
    sharpness: kind === "squared" ? 2 ** Math.round(Math.log2(number(sharpness, SHARPNESS, 4, SHARPNESS))) : SHARPNESS,
  };
}

/** Examples with labels as the loss takes them: for the logistic loss 1 where y is above 0. */
export function labelled(examples, loss) {
  return examples.map(([x, y]) => [x, loss === "logistic" ? Number(y > 0) : y]);
}

/** The set that these examples are, or "your own". */
export function named(examples) {
  const text = JSON.stringify(examples);
  return Object.keys(SETS).find((name) => JSON.stringify(SETS[name]) === text) ?? "your own";
}
