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
  bfloat16: { round: bfloat16, unit: 2 ** -8 },
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

const LOOKS = 2001; // four times as fine as curves are drawn: no error is seen that was not found
const CLOSER = 4; // so many of the largest are looked at more closely

/** { error, at }: the largest |f - head| that is found, at many points, then more closely around the worst. */
export function largestError(head, f, low, high, count = LOOKS) {
  const between = (from, to, number) => Float64Array.from({ length: number }, (_, k) => (k === number - 1 ? to : from + (k * (to - from)) / (number - 1)));
  const errors = (points) => evaluate(head, points).map((value, k) => Math.abs(f(points[k]) - value)).map((size) => (Number.isNaN(size) ? Infinity : size));
  const largest = (points, sizes) => {
    let k = 0;
    for (let j = 1; j < sizes.length; j += 1) if (sizes[j] > sizes[k]) k = j;
    return { error: sizes[k], at: points[k] };
  };
  const points = between(low, high, count);
  const sizes = errors(points);
  const peaks = [];
  for (let k = 0; k < count; k += 1) if (!(sizes[k] < sizes[k - 1]) && !(sizes[k] < sizes[k + 1])) peaks.push(k);
  peaks.sort((j, k) => sizes[k] - sizes[j]);
  let best = largest(points, sizes);
  for (const peak of peaks.slice(0, CLOSER)) {
    let [step, at] = [(high - low) / (count - 1), points[peak]];
    for (let zoom = 0; zoom < 3; zoom += 1) {
      const near = between(Math.max(low, at - step), Math.min(high, at + step), 21);
      const found = largest(near, errors(near));
      if (found.error > best.error) best = found;
      [step, at] = [step / 10, found.at];
    }
  }
  return best;
}
