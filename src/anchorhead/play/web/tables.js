/* What Python put into the page: the named functions, the heads that ship with their proven bounds, words for terms. */

const data = JSON.parse(document.getElementById("tables").textContent);

/** Named functions by name: { name, description, signature, parameters: [[name, default or null], …] }. */
export const NAMED = new Map(data.named.map((one) => [one.name, one]));

/** Words for the terms of a certificate, by kind and by what they are of, with places for {variables} and a {label}. */
export const TERMS = data.terms;

/** The best proven head for a named function with at most so many anchors: { head, bound, anchors }; null if none is known.

    function  a name; low, high: the very interval; dtype: "float64" or "float32". */
export function provenHead(name, low, high, dtype, anchors) {
  const known = data.heads.find((one) => one.function === name && one.on[0] === low && one.on[1] === high && one.dtype === dtype);
  let best = null;
  for (const [bound, origin, bias, parts] of known ? known.heads : []) {
    const count = parts.reduce((sum, [slopes]) => sum + slopes.length, 0);
    if (count <= anchors) best = { bound, anchors: count, head: { dtype, ...decoded(origin, bias, parts, dtype) } };
  }
  return best;
}

/** The intervals on which heads of a function are known. */
export function provenIntervals(name) {
  const found = data.heads.filter((one) => one.function === name && one.dtype === "float64").map((one) => one.on);
  return found.sort((a, b) => a[1] - a[0] - (b[1] - b[0]));
}

/** All that is in the table, for tests: [{ function, on, dtype, heads: [{ bound, head }] }]. */
export function allProven() {
  return data.heads.map((one) => ({
    function: one.function,
    on: one.on,
    dtype: one.dtype,
    heads: one.heads.map(([bound, origin, bias, parts]) => ({ bound, head: { dtype: one.dtype, ...decoded(origin, bias, parts, one.dtype) } })),
  }));
}

/** Numbers of a float32 head are written as the shortest decimals among float32. */
function decoded(origin, bias, parts, dtype) {
  const read = dtype === "float32" ? Math.fround : (value) => value;
  return {
    origin: read(origin),
    bias: read(bias),
    parts: parts.map(([slopes, offsets, values]) => ({ slopes: slopes.map(read), offsets: offsets.map(read), values: values.map(read) })),
  };
}
