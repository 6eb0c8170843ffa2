/* Anchors where they serve best, in the page: fast and good, not the fewest; Python's solver goes further and proves.

   On x in [-1, 1] the head is sum_k v_k softmax_k(a_k x + b_k), 3 numbers an anchor.
   1. Keys to start from: tangents of a convex curve whose curvature says how close anchors lie (softmax of tangents is
      local); evenly, or closer where the function bends. Values by least squares for these keys.
   2. Gauss-Newton steps on keys and values together, damped as Levenberg and Marquardt do.
   3. Errors are levelled: points weigh more where the error is large (Lawson), a step or two between.
   Work is counted in steps, so the same question has the same answer on every machine. */

import { leastSquares, solvePositive } from "./dense.js";
import { DTYPES, largestError, rounded, uniformHead } from "./softmax.js";

const SHARPNESS = [0.6, 1.2, 2.5]; // c of the keys to start from
const WORK = 4e8; // multiplications: about half a second
const LEVELLING = 30;

/** A head for f on [low, high] with so many anchors, at least as good as even anchors of sharpness c. */
export function solve(f, low, high, anchors, dtype, c = 2) {
  const problem = problemOf(f, low, high, anchors, dtype);
  const steps = Math.max(6, Math.min(60, Math.floor(WORK / 6 / (problem.x.length * (3 * anchors) ** 2))));
  const starts = [0, 1].flatMap((bend) => SHARPNESS.map((sharpness) => started(problem, anchors, sharpness, bend)));
  const ranked = starts.map((keys) => withValues(problem, keys)).sort((a, b) => worst(problem, a) - worst(problem, b));
  let best = uniformHead(f, low, high, anchors, c, dtype);
  let error = largestError(best, f, low, high).error;
  for (const keys of ranked.slice(0, 3)) {
    for (const found of descended(problem, keys, steps)) {
      const head = stored(problem, found);
      const size = largestError(head, f, low, high).error;
      if (size < error) [best, error] = [head, size];
    }
  }
  return best;
}

/** Values by least squares for the keys of a head: what is best for the anchors as they stand. */
export function solveValues(head, f, low, high) {
  const anchors = head.parts.reduce((sum, part) => sum + part.slopes.length, 0);
  const problem = problemOf(f, low, high, anchors, head.dtype);
  const m = problem.x.length;
  const points = Float64Array.from(problem.x, (x) => problem.middle + problem.half * x);
  const columns = [];
  for (const part of head.parts) {
    const keys = { a: part.slopes, b: part.offsets.map((offset, k) => offset - part.slopes[k] * head.origin) };
    const W = softmaxes(points, keys);
    for (let k = 0; k < part.slopes.length; k += 1) columns.push((i) => W[i * part.slopes.length + k]);
  }
  const A = new Float64Array((m + anchors) * anchors);
  const b = new Float64Array(m + anchors);
  for (let i = 0; i < m; i += 1) {
    for (let k = 0; k < anchors; k += 1) A[i * anchors + k] = columns[k](i);
    b[i] = f(points[i]) - head.bias;
  }
  const ridge = Math.sqrt(m) * DTYPES[head.dtype].unit;
  for (let k = 0; k < anchors; k += 1) A[(m + k) * anchors + k] = ridge;
  const values = leastSquares(A, b, m + anchors, anchors);
  let from = 0;
  const parts = head.parts.map((part) => ({ ...part, values: Array.from(values.subarray(from, (from += part.slopes.length))) }));
  return rounded({ ...head, parts }, head.dtype);
}

/** Points, denser towards the ends, and the function there, moved and scaled to size 1. */
function problemOf(f, low, high, anchors, dtype) {
  const m = Math.min(420, 100 + 12 * anchors);
  const x = Float64Array.from({ length: m }, (_, k) => {
    const u = -1 + (2 * k) / (m - 1);
    return 0.5 * u + 0.5 * Math.sin((Math.PI * u) / 2);
  });
  const middle = (low + high) / 2;
  const half = (high - low) / 2;
  const y = Float64Array.from(x, (at) => f(Math.min(high, Math.max(low, middle + half * at))));
  const bias = (Math.max(...y) + Math.min(...y)) / 2;
  const scale = (Math.max(...y) - Math.min(...y)) / 2 || 1;
  return { x, y: y.map((value) => (value - bias) / scale), f, low, high, middle, half, bias, scale, dtype, ridge: DTYPES[dtype].unit };
}

/** Keys as tangents of a convex curve; bend: how much closer they lie where the function bends. */
function started({ x, y }, anchors, c, bend) {
  const m = x.length;
  const density = new Float64Array(m).fill(1);
  for (let i = 1; i < m - 1; i += 1) {
    const second = ((y[i + 1] - y[i]) / (x[i + 1] - x[i]) - (y[i] - y[i - 1]) / (x[i] - x[i - 1])) / (x[i + 1] - x[i - 1]);
    density[i] = 1 + bend * 2 * Math.min(20, Math.sqrt(Math.abs(second)));
  }
  for (let round = 0; round < 4; round += 1) for (let i = 1; i < m - 1; i += 1) density[i] = (density[i - 1] + 2 * density[i] + density[i + 1]) / 4;
  const whole = new Float64Array(m);
  for (let i = 1; i < m; i += 1) whole[i] = whole[i - 1] + (density[i] + density[i - 1]) * (x[i] - x[i - 1]) / 2;
  // curvature 2 c / spacing², spacing = (whole length of density) / (anchors - 1) / density
  const per = whole[m - 1] / (anchors - 1);
  const slope = new Float64Array(m);
  const height = new Float64Array(m);
  for (let i = 1; i < m; i += 1) {
    const curvature = 2 * c * (((density[i] + density[i - 1]) / 2 / per) ** 2);
    slope[i] = slope[i - 1] + curvature * (x[i] - x[i - 1]);
    height[i] = height[i - 1] + ((slope[i] + slope[i - 1]) / 2) * (x[i] - x[i - 1]);
  }
  const a = new Float64Array(anchors);
  const b = new Float64Array(anchors);
  for (let k = 0, i = 0; k < anchors; k += 1) {
    while (i < m - 2 && whole[i + 1] < k * per) i += 1;
    const share = Math.min(1, (k * per - whole[i]) / (whole[i + 1] - whole[i]));
    const at = x[i] + share * (x[i + 1] - x[i]);
    a[k] = slope[i] + share * (slope[i + 1] - slope[i]);
    b[k] = height[i] + share * (height[i + 1] - height[i]) - a[k] * at;
  }
  const level = a[anchors - 1] / 2; // the same for all: softmax does not see it
  return { a: a.map((one) => one - level), b };
}

function softmaxes(x, { a, b }) {
  const p = a.length;
  const W = new Float64Array(x.length * p);
  for (let i = 0; i < x.length; i += 1) {
    let largest = -Infinity;
    for (let k = 0; k < p; k += 1) {
      W[i * p + k] = a[k] * x[i] + b[k];
      if (W[i * p + k] > largest) largest = W[i * p + k];
    }
    let sum = 0;
    for (let k = 0; k < p; k += 1) sum += W[i * p + k] = Math.exp(W[i * p + k] - largest);
    for (let k = 0; k < p; k += 1) W[i * p + k] /= sum;
  }
  return W;
}

function withValues({ x, y, ridge }, keys) {
  const [m, p] = [x.length, keys.a.length];
  const A = new Float64Array((m + p) * p);
  A.set(softmaxes(x, keys));
  for (let k = 0; k < p; k += 1) A[(m + k) * p + k] = Math.sqrt(m) * ridge;
  const b = new Float64Array(m + p);
  b.set(y);
  return { ...keys, v: leastSquares(A, b, m + p, p) };
}

function residuals({ x, y }, { a, b, v }, W = softmaxes(x, { a, b })) {
  const p = a.length;
  return Float64Array.from(x, (_, i) => {
    let mean = 0;
    for (let k = 0; k < p; k += 1) mean += W[i * p + k] * v[k];
    return mean - y[i];
  });
}

function worst(problem, keys) {
  return residuals(problem, keys).reduce((most, one) => Math.max(most, Math.abs(one)), 0);
}

/** What damped Gauss-Newton steps find: with equal weights, and the best while errors are levelled. */
function descended(problem, keys, steps) {
  const m = problem.x.length;
  const weights = new Float64Array(m).fill(1);
  let state = { keys, damping: 1e-3 };
  for (let k = 0; k < steps && state.damping < 1e8; k += 1) state = step(problem, state, weights);
  const squares = state.keys;
  let best = squares;
  let least = worst(problem, squares);
  for (let k = 0; k < Math.min(LEVELLING, steps); k += 1) {
    const r = residuals(problem, state.keys);
    const most = r.reduce((size, one) => Math.max(size, Math.abs(one)), 1e-300);
    let sum = 0;
    for (let i = 0; i < m; i += 1) sum += weights[i] *= 0.02 + Math.abs(r[i]) / most;
    for (let i = 0; i < m; i += 1) weights[i] *= m / sum;
    state = step(problem, { keys: state.keys, damping: Math.min(state.damping, 1e-2) }, weights);
    const size = worst(problem, state.keys);
    if (size < least) [best, least] = [state.keys, size];
  }
  return best === squares ? [squares] : [squares, best];
}

/** One step; the damping grows until the weighted squares fall, and shrinks when they do. */
function step(problem, { keys, damping }, weights) {
  const { x, ridge } = problem;
  const [m, p] = [x.length, keys.a.length];
  const n = 3 * p;
  const W = softmaxes(x, keys);
  const r = residuals(problem, keys, W);
  const H = new Float64Array(n * n);
  const g = new Float64Array(n);
  const row = new Float64Array(n);
  for (let i = 0; i < m; i += 1) {
    const mean = r[i] + problem.y[i];
    for (let k = 0; k < p; k += 1) {
      const w = W[i * p + k];
      row[p + k] = w * (keys.v[k] - mean); // by b_k
      row[k] = row[p + k] * x[i]; // by a_k
      row[2 * p + k] = w; // by v_k
    }
    for (let j = 0; j < n; j += 1) {
      const scaled = weights[i] * row[j];
      if (scaled === 0) continue;
      g[j] -= scaled * r[i];
      for (let k = 0; k <= j; k += 1) H[j * n + k] += scaled * row[k];
    }
  }
  for (let k = 0; k < p; k += 1) {
    H[(2 * p + k) * n + 2 * p + k] += m * ridge ** 2;
    g[2 * p + k] -= m * ridge ** 2 * keys.v[k];
  }
  const before = cost(problem, keys, weights, r);
  for (let grow = damping; grow < 1e10; grow *= 6) {
    const A = Float64Array.from(H);
    for (let j = 0; j < n; j += 1) A[j * n + j] += grow * (H[j * n + j] + 1e-14);
    const change = solvePositive(A, g);
    if (change === null) continue;
    const next = { a: keys.a.map((one, k) => one + change[k]), b: keys.b.map((one, k) => one + change[p + k]), v: keys.v.map((one, k) => one + change[2 * p + k]) };
    if (cost(problem, next, weights) < before) return { keys: next, damping: Math.max(1e-12, grow / 8) };
  }
  return { keys, damping: 1e10 };
}

function cost(problem, keys, weights, r = residuals(problem, keys)) {
  const size = problem.x.length * problem.ridge ** 2;
  return r.reduce((sum, one, i) => sum + weights[i] * one * one, 0) + size * keys.v.reduce((sum, one) => sum + one * one, 0);
}

/** The head in the function's own units, as the dtype stores it; values are solved for again on the stored keys. */
function stored(problem, { a, b, v }) {
  const { f, low, high, middle, half, scale, bias, dtype } = problem;
  const origin = Math.abs(middle) <= half ? 0 : DTYPES[dtype].round(middle);
  const slopes = Array.from(a, (one) => one / half);
  const offsets = Array.from(b, (one, k) => one + slopes[k] * (origin - middle));
  const order = slopes.map((_, k) => k).sort((i, j) => slopes[i] - slopes[j]);
  const sorted = (numbers) => order.map((k) => numbers[k]);
  const values = Array.from(v, (one) => one * scale + bias);
  const head = rounded({ origin, bias: 0, parts: [{ slopes: sorted(slopes), offsets: sorted(offsets), values: sorted(values) }] }, dtype);
  return dtype === "float64" ? head : solveValues(head, f, low, high);
}
