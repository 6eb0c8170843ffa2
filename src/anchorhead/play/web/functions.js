/* The named functions in float64, each in the form that keeps its accuracy in the tails, as in Python. Arguments are x and
   then the parameters, of which those that are left out take their defaults (from the tables in the page). */

import { erf, erfc } from "./special.js";
import { NAMED } from "./tables.js";

export function sigmoid(x) {
  const small = Math.exp(-Math.abs(x));
  return (x >= 0 ? 1 : small) / (1 + small);
}

export function softplus(x) {
  return Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
}

const clip = (x, low, high) => Math.min(Math.max(x, low), high);
const elu = (x, alpha) => (x > 0 ? x : alpha * Math.expm1(x));

/** By name: a function of x and all parameters. */
export const DEFINITIONS = {
  relu: (x) => Math.max(x, 0),
  leaky_relu: (x, slope) => (x < 0 ? slope * x : x),
  relu6: (x) => clip(x, 0, 6),
  hardtanh: clip,
  clip,
  abs: Math.abs,
  hardswish: (x) => (x * clip(x + 3, 0, 6)) / 6,
  hardsigmoid: (x) => clip(x + 3, 0, 6) / 6,
  gelu: (x) => 0.5 * x * erfc(-(x / Math.SQRT2)),
  gelu_tanh: (x) => x * sigmoid(2 * Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)),
  silu: (x) => x * sigmoid(x),
  mish: (x) => x * Math.tanh(softplus(x)),
  elu,
  selu: (x) => 1.0507009873554804934193349852946 * elu(x, 1.6732632423543772848170429916717),
  celu: (x, alpha) => (x > 0 ? x : alpha * Math.expm1(x / alpha)),
  softplus: (x, beta) => softplus(beta * x) / beta,
  tanh: Math.tanh,
  sigmoid,
  softsign: (x) => x / (1 + Math.abs(x)),
  erf,
  erfc,
  exp: Math.exp,
  expm1: Math.expm1,
  log: Math.log,
  log1p: Math.log1p,
  sqrt: Math.sqrt,
  square: (x) => x * x,
  reciprocal: (x) => 1 / x,
  sin: Math.sin,
  cos: Math.cos,
  tan: (x) => Math.sin(x) / Math.cos(x),
  soft_threshold: (x, lam) => Math.max(x - lam, 0) + Math.min(x + lam, 0),
};

const ORDERED = [(low, high) => high > low, "low must lie below high"];
const POSITIVE = [(given) => given > 0, "it must be positive"];

/** What parameters must satisfy, and how that is said. */
export const DEMANDS = { hardtanh: ORDERED, clip: ORDERED, celu: POSITIVE, softplus: POSITIVE, soft_threshold: POSITIVE };

/** The function of x alone, parameters at their defaults; null if it needs some. */
export function named(name) {
  const parameters = NAMED.get(name).parameters.map(([, value]) => value);
  if (parameters.includes(null)) return null;
  return (x) => DEFINITIONS[name](x, ...parameters);
}
