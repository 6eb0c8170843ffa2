/* Where an anchor acts, and what moving it means.

   At s an anchor of a part has the weight w_k = exp(l_k) / sum_j exp(l_j), l_k = slope_k (s - origin) + offset_k. The slope of
   log w_k is slope_k minus the mean slope under w, so w_k peaks where the mean slope of the *others* equals slope_k; the own
   offset has no say in where. Means of slopes grow with s: there is one such place, or none for the smallest and largest slope. */

/** log of the sum of exp(l_j) over j other than k, and the mean of their slopes. */
function others(part, origin, k, s) {
  const t = s - origin;
  let largest = -Infinity;
  for (let j = 0; j < part.slopes.length; j += 1) if (j !== k) largest = Math.max(largest, part.slopes[j] * t + part.offsets[j]);
  let [sum, slopes] = [0, 0];
  for (let j = 0; j < part.slopes.length; j += 1) {
    if (j === k) continue;
    const weight = Math.exp(part.slopes[j] * t + part.offsets[j] - largest);
    sum += weight;
    slopes += weight * part.slopes[j];
  }
  return { log: largest + Math.log(sum), slope: slopes / sum };
}

/** Where the weight of anchor k is largest on [low, high]. */
export function peak(part, origin, k, low, high) {
  if (part.slopes.length === 1) return (low + high) / 2;
  const slope = part.slopes[k];
  if (slope <= others(part, origin, k, low).slope) return low;
  if (slope >= others(part, origin, k, high).slope) return high;
  let [left, right] = [low, high];
  for (let round = 0; round < 40; round += 1) {
    const middle = (left + right) / 2;
    if (others(part, origin, k, middle).slope < slope) left = middle;
    else right = middle;
  }
  return (left + right) / 2;
}

/** The slope and offset with which anchor k acts `by` further to the right.

    Between others: its weight peaks there, and is as large there as it was. With the smallest or largest slope its weight has
    no peak: the place moves where it takes over from its neighbour, by its offset alone. */
export function movedSideways(part, origin, k, by, low, high) {
  const { slopes, offsets } = part;
  const rest = slopes.filter((_, j) => j !== k);
  if (!rest.length) return { slope: slopes[k], offset: offsets[k] };
  const [least, most] = [Math.min(...rest), Math.max(...rest)];
  if (slopes[k] <= least || slopes[k] >= most) {
    const neighbour = slopes[k] >= most ? most : least;
    return { slope: slopes[k], offset: offsets[k] - (slopes[k] - neighbour) * by };
  }
  const from = peak(part, origin, k, low, high);
  const to = Math.min(high, Math.max(low, from + by));
  const before = slopes[k] * (from - origin) + offsets[k] - others(part, origin, k, from).log;
  const there = others(part, origin, k, to);
  return { slope: there.slope, offset: before + there.log - there.slope * (to - origin) };
}

/** The part and the place in it of the n-th anchor of a head. */
export function anchorAt(head, n) {
  let [which, k] = [0, n];
  while (k >= head.parts[which].slopes.length) {
    k -= head.parts[which].slopes.length;
    which += 1;
  }
  return { which, k, part: head.parts[which] };
}

export function anchorCount(head) {
  return head.parts.reduce((sum, part) => sum + part.slopes.length, 0);
}

/** The head with entries of the n-th anchor replaced: { slope, offset, value }, any of them. */
export function withAnchor(head, n, { slope, offset, value }) {
  const { which, k } = anchorAt(head, n);
  const put = (list, entry) => (entry === undefined ? list : list.map((one, j) => (j === k ? entry : one)));
  const parts = head.parts.map((part, j) =>
    j !== which ? part : { slopes: put(part.slopes, slope), offsets: put(part.offsets, offset), values: put(part.values, value) },
  );
  return { origin: head.origin, bias: head.bias, parts };
}

/** The head with one anchor more: the n-th becomes two that share its weight, which changes nothing yet. */
export function withOneMore(head, n) {
  const { which, k } = anchorAt(head, n);
  const twice = (list) => [...list.slice(0, k + 1), ...list.slice(k)];
  const parts = head.parts.map((part, j) => {
    if (j !== which) return part;
    const offsets = twice(part.offsets).map((offset, i) => (i === k || i === k + 1 ? offset - Math.LN2 : offset));
    return { slopes: twice(part.slopes), offsets, values: twice(part.values) };
  });
  return { origin: head.origin, bias: head.bias, parts };
}

/** The head without its n-th anchor; a part that is empty then goes, too. */
export function withOneLess(head, n) {
  const { which, k } = anchorAt(head, n);
  const left = (list) => list.filter((_, j) => j !== k);
  const parts = head.parts.map((part, j) => (j !== which ? part : { slopes: left(part.slopes), offsets: left(part.offsets), values: left(part.values) }));
  return { origin: head.origin, bias: head.bias, parts: parts.filter((part) => part.slopes.length) };
}
