/* Numbers as people read them. */

/** About so many digits: 0.00123, 1.2e-7, 12,300. A real minus sign, as labels are set. */
export function shown(value, digits = 3) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "undefined" : value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text = size >= 1e5 || size < 1e-3 ? value.toExponential(digits - 1).replace(/\.?0*e\+?/, "e") : String(Number(value.toPrecision(digits)));
  return text.replace(/-/g, "−");
}

/** The shortest text that means this very number, as Python reads it. */
export function python(value) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "float('nan')" : value > 0 ? "float('inf')" : "-float('inf')";
  return Object.is(value, -0) ? "-0.0" : String(value).replace("e+", "e");
}

/** Round numbers between two ends, about `count` of them. */
export function ticks(low, high, count = 6) {
  const rough = (high - low) / Math.max(1, count);
  if (!(rough > 0) || !Number.isFinite(rough)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= rough * 0.999) ?? 10 * power;
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k <= high / step + 1e-9; k += 1) found.push(Number((k * step).toPrecision(12)));
  return found;
}

/** Powers of ten between two ends, thinned to at most `count`. */
export function powersOfTen(low, high, count = 6) {
  const from = Math.ceil(Math.log10(low) - 1e-9);
  const to = Math.floor(Math.log10(high) + 1e-9);
  const step = Math.max(1, Math.ceil((to - from + 1) / count));
  const found = [];
  for (let k = from; k <= to; k += step) found.push(10 ** k);
  return found;
}

/** `count` numbers from low to high, both ends exactly. */
export function spread(low, high, count) {
  const step = (high - low) / (count - 1);
  const found = Float64Array.from({ length: count }, (_, k) => low + k * step);
  found[count - 1] = high;
  return found;
}
