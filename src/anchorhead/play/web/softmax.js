/* A head on a scalar, as Python's Atom:

   r(s) = bias + sum over parts of  sum_k values_k softmax_k(slopes_k (s - origin) + offsets_k)

   A head is { dtype, origin, bias, parts: [{ slopes, offsets, values }] } with weights that the dtype holds. It is computed
   in its dtype: every weight and the result of every operation is rounded. */

const word = new DataView(new ArrayBuffer(4));

/** To bfloat16, to nearest with ties to even: the upper half of a float32. */
export function bfloat16(value) {
  word.setFloat32(0, value);
  const whole = word.getUint32(0);
  if (!Number.isFinite(value)) return value;
  word.setUint32(0, (whole + 0x7fff + ((whole >>> 16) & 1)) & 0xffff0000);
  return word.getFloat32(0);
}

/** How each dtype rounds, and half the distance of 1 to the next number. */
export const DTYPES = {
  float64: { round: (value) => value, unit: 2 ** -53 },
  float32: { round: Math.fround, unit: 2 ** -24 },
  bfloat16: { round: bfloat16, unit: 2 ** -8 - 2 ** -8 / 2 },
};

/** A head with its weights rounded once to a dtype. */
export function rounded(head, dtype) {
  const { round } = DTYPES[dtype];
  const all = (numbers) => Array.from(numbers, round);
  return {
    dtype,
    origin: round(head.origin),
    bias: round(head.bias),
    parts: head.parts.map((part) => ({ slopes: all(part.slopes), offsets: all(part.offsets), values: all(part.values) })),
  };
}

/** Attention of one part at s: the weights of its anchors, which add up to 1; into `weights` if it is given. */
export function attention(part, origin, s, round, weights = new Float64Array(part.slopes.length)) {
  const { slopes, offsets } = part;
  const t = round(round(s) - origin);
  let largest = -Infinity;
  for (let k = 0; k < slopes.length; k += 1) {
    weights[k] = round(round(t * slopes[k]) + offsets[k]);
    if (weights[k] > largest) largest = weights[k];
  }
  let sum = 0;
  for (let k = 0; k < slopes.length; k += 1) {
    weights[k] = round(Math.exp(round(weights[k] - largest)));
    sum = round(sum + weights[k]);
  }
  for (let k = 0; k < slopes.length; k += 1) weights[k] = round(weights[k] / sum);
  return weights;
}

/** r(s) for every entry of an array. */
export function evaluate(head, points) {
  const { round } = DTYPES[head.dtype];
  const room = head.parts.map((part) => new Float64Array(part.slopes.length));
  return Float64Array.from(points, (s) => {
    let total = 0;
    head.parts.forEach((part, which) => {
      const weights = attention(part, head.origin, s, round, room[which]);
      let mean = 0;
      for (let k = 0; k < weights.length; k += 1) mean = round(mean + round(weights[k] * part.values[k]));
      total = round(total + mean);
    });
    return round(total + head.bias);
  });
}

/** The paper's placement: even anchors L_k at both ends and between, values f(L_k); with beta = c / spacing², slopes 2 beta L_k
    and offsets -beta L_k², which is softmax of -beta (s - L_k)². */
export function uniformHead(f, low, high, anchors, c, dtype) {
  const spacing = (high - low) / (anchors - 1);
  const beta = c / spacing ** 2;
  const middle = (low + high) / 2;
  const origin = Math.abs(middle) <= (high - low) / 2 ? 0 : DTYPES[dtype].round(middle);
  const places = Array.from({ length: anchors }, (_, k) => (k === anchors - 1 ? high : low + k * spacing));
  const part = {
    slopes: places.map((at) => 2 * beta * (at - origin)),
    offsets: places.map((at) => -beta * (at - origin) ** 2),
    values: places.map(f),
  };
  return rounded({ origin, bias: 0, parts: [part] }, dtype);
}

/** The largest |f - head| that is found: at many points, then more closely around the worst. */
export function largestError(head, f, low, high, count = 801) {
  const error = (points) => evaluate(head, points).map((value, k) => Math.abs(f(points[k]) - value)).map((size) => (Number.isNaN(size) ? Infinity : size));
  let best = { error: -Infinity, at: low };
  const look = (from, to, number) => {
    const points = Float64Array.from({ length: number }, (_, k) => (k === number - 1 ? to : from + (k * (to - from)) / (number - 1)));
    error(points).forEach((size, k) => {
      if (size > best.error) best = { error: size, at: points[k] };
    });
    return (to - from) / (number - 1);
  };
  let step = look(low, high, count);
  for (let zoom = 0; zoom < 3; zoom += 1) step = look(Math.max(low, best.at - step), Math.min(high, best.at + step), 21);
  return best;
}
