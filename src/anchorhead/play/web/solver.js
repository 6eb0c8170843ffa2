/* Anchors where they serve best, in the page: fast and good, not the fewest; Python's solver goes further and proves.

   On x in [-1, 1] the head is sum_k v_k softmax_k(a_k x + b_k), 3 numbers an anchor.
   1. Keys to start from: tangents of a convex curve whose curvature says how close anchors lie (softmax of tangents is
      local); evenly, or closer where the function bends. Values by least squares for these keys.
   2. Gauss-Newton steps on the keys, damped as Levenberg and Marquardt do, the values following by least squares.
   3. Errors are levelled: points weigh more where the error is large (Lawson), a step or two between.
   Work is counted in steps, so the same question has the same answer on every machine. */

import { Factored, leastSquares, solvePositive } from "./dense.js";
import { DTYPES, largestError, rounded, uniformHead } from "./softmax.js";

const SHARPNESS = [0.05, 0.2, 0.7, 2]; // c of the keys to start from
const STARTS = 3; // so many of them are followed
const WORK = 2.5e8; // multiplications: about a third of a second
const EXP = 100; // multiplications that an exponential and what comes with it are worth
const EXACT = 1e-15; // of the function's size: nothing is left to do
const LARGE = 1e-7; // what values cost, beside errors: huge ones that cancel are worth little to look at
const MAX_DAMPING = 1e8; // damping beyond which no step helps

/** A head for f on [low, high] with so many anchors, at least as good as even anchors of sharpness c. */
export function solve(f, low, high, anchors, dtype, c = 2) {
  const problem = problemOf(f, low, high, anchors, dtype);
  const even = new Float64Array(problem.x.length).fill(1);
  const starts = [0, 1].flatMap((bend) => SHARPNESS.map((sharpness) => fitted(problem, started(problem, anchors, sharpness, bend), even)));
  let best = uniformHead(f, low, high, anchors, c, dtype);
  let error = largestError(best, f, low, high).error;
  for (const keys of starts.sort((one, other) => one.worst - other.worst).slice(0, STARTS)) {
    problem.work = WORK / STARTS;
    for (const found of descended(problem, keys)) {
      const head = stored(problem, found);
      const size = held(head) ? largestError(head, f, low, high).error : Infinity;
      if (size < error) [best, error] = [head, size];
    }
  }
  return best;
}

/** Values by least squares for the keys of a head: what is best for the anchors as they stand. */
export function solveValues(head, f, low, high) {
  const anchors = head.parts.reduce((sum, part) => sum + part.slopes.length, 0);
  const { x, middle, half, ridge } = problemOf(f, low, high, anchors, head.dtype);
  const points = x.map((at) => middle + half * at);
  const columns = head.parts.flatMap(({ slopes, offsets }) =>
    softmaxes(points, { a: slopes, b: offsets.map((offset, k) => offset - slopes[k] * head.origin) }),
  );
  const values = leastSquares(withRidge(columns, ridge), padded(points.map((s) => f(s) - head.bias), anchors));
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
  return { x, y: y.map((value) => (value - bias) / scale), f, low, high, middle, half, bias, scale, dtype, ridge: Math.max(LARGE, DTYPES[dtype].unit), work: WORK };
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

/** A column of weights along x for every key. */
function softmaxes(x, { a, b }) {
  const columns = Array.from(a, () => new Float64Array(x.length));
  const scores = new Float64Array(a.length);
  for (let i = 0; i < x.length; i += 1) {
    let largest = -Infinity;
    for (let k = 0; k < a.length; k += 1) {
      scores[k] = a[k] * x[i] + b[k];
      if (scores[k] > largest) largest = scores[k];
    }
    let sum = 0;
    for (let k = 0; k < a.length; k += 1) sum += scores[k] = Math.exp(scores[k] - largest);
    for (let k = 0; k < a.length; k += 1) columns[k][i] = scores[k] / sum;
  }
  return columns;
}

/** Rows below that hold values down: large ones that cancel are lost to rounding. */
function withRidge(columns, ridge) {
  const m = columns[0].length;
  return columns.map((column, k) => {
    const longer = padded(column, columns.length);
    longer[m + k] = ridge * Math.sqrt(m);
    return longer;
  });
}

function padded(column, more) {
  const longer = new Float64Array(column.length + more);
  longer.set(column);
  return longer;
}

/** Keys with their best values under weights of the points (square roots of them), and what is left: cost, largest error. */
function fitted(problem, { a, b }, roots) {
  const { x, y, ridge } = problem;
  const plain = softmaxes(x, { a, b });
  const scaled = plain.map((column) => column.map((entry, i) => entry * roots[i]));
  const factored = new Factored(withRidge(scaled, ridge));
  const turned = factored.turn(padded(y.map((entry, i) => entry * roots[i]), a.length));
  const v = factored.solveTurned(turned);
  const mean = new Float64Array(x.length);
  plain.forEach((column, k) => column.forEach((entry, i) => (mean[i] += entry * v[k])));
  let cost = 0;
  for (let i = factored.rank; i < turned.length; i += 1) cost += turned[i] ** 2;
  const errors = mean.map((entry, i) => Math.abs(entry - y[i]));
  problem.work -= (2 * a.length + EXP) * x.length * a.length;
  return { a, b, v, plain, factored, turned, mean, cost, errors, worst: errors.reduce((most, one) => Math.max(most, one), 0) };
}

/** What damped Gauss-Newton steps find: with equal weights, and the best while errors are levelled. */
function descended(problem, keys) {
  const m = problem.x.length;
  const roots = new Float64Array(m).fill(1);
  let now = fitted(problem, keys, roots);
  let damping = 1e-3;
  const kept = problem.work / 3; // for levelling
  while (problem.work > kept && damping < MAX_DAMPING && now.worst > EXACT) ({ now, damping } = step(problem, now, roots, damping));
  const squares = now;
  let best = squares;
  while (problem.work > 0 && now.worst > EXACT) {
    let sum = 0;
    for (let i = 0; i < m; i += 1) sum += roots[i] = roots[i] ** 2 * (0.02 + now.errors[i] / (now.worst || 1));
    for (let i = 0; i < m; i += 1) roots[i] = Math.sqrt((roots[i] * m) / sum);
    ({ now, damping } = step(problem, fitted(problem, now, roots), roots, Math.min(damping, 1e-2)));
    if (now.worst < best.worst) best = now;
  }
  return best === squares ? [squares] : [squares, best];
}

/** One step on the keys, with values that follow (variable projection): to first order the residual (1 - P) y changes by
    (1 - P) dW v, where P projects onto what the columns of W can make. The damping grows until the cost falls. */
function step(problem, now, roots, damping) {
  const { x } = problem;
  const p = now.a.length;
  const n = 2 * p;
  const changes = [];
  for (let k = 0; k < p; k += 1) {
    const byOffset = new Float64Array(x.length + p);
    for (let i = 0; i < x.length; i += 1) byOffset[i] = roots[i] * now.plain[k][i] * (now.v[k] - now.mean[i]);
    const bySlope = byOffset.map((entry, i) => (i < x.length ? entry * x[i] : 0));
    changes.push(now.factored.turn(bySlope), now.factored.turn(byOffset));
  }
  const rest = changes.map((column) => column.subarray(now.factored.rank));
  const left = now.turned.subarray(now.factored.rank);
  const H = new Float64Array(n * n);
  const g = new Float64Array(n);
  for (let j = 0; j < n; j += 1) {
    g[j] = inner(rest[j], left);
    for (let k = 0; k <= j; k += 1) H[j * n + k] = inner(rest[j], rest[k]);
  }
  problem.work -= (10 * p + EXP) * x.length * p;
  for (let grow = damping; grow < MAX_DAMPING && problem.work > 0; grow *= 8) {
    const A = Float64Array.from(H);
    for (let j = 0; j < n; j += 1) A[j * n + j] += grow * H[j * n + j] + 1e-300;
    const change = solvePositive(A, g);
    if (change === null) continue;
    const keys = { a: now.a.map((one, k) => one + change[2 * k]), b: now.b.map((one, k) => one + change[2 * k + 1]) };
    const next = fitted(problem, keys, roots);
    if (next.cost < now.cost) return { now: next, damping: Math.max(1e-9, grow / 10) };
  }
  return { now, damping: MAX_DAMPING };
}

function inner(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i += 1) sum += a[i] * b[i];
  return sum;
}

/** Whether all weights are numbers that the dtype holds. */
function held({ parts }) {
  return parts.every((part) => [part.slopes, part.offsets, part.values].every((list) => list.every(Number.isFinite)));
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
