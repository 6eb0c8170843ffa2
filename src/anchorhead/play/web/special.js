/* erf and erfc to the last digits: JavaScript has neither. After Sun's fdlibm (s_erf.c, which may be freely used, copied
   and distributed): rational approximations, each on its range of |x|, with x² taken apart so that exp(-x²) keeps its digits. */

const ERX = 8.45062911510467529297e-1;
const SMALL = [
  [1.28379167095512558561e-1, -3.25042107247001499370e-1, -2.84817495755985104766e-2, -5.77027029648944159157e-3, -2.37630166566501626084e-5],
  [1, 3.97917223959155352819e-1, 6.50222499887672944485e-2, 5.08130628187576562776e-3, 1.32494738004321644526e-4, -3.96022827877536812320e-6],
];
const NEAR_ONE = [
  [-2.36211856075265944077e-3, 4.14856118683748331666e-1, -3.72207876035701323847e-1, 3.18346619901161753674e-1, -1.10894694282396677476e-1, 3.54783043256182359371e-2, -2.16637559486879084300e-3],
  [1, 1.06420880400844228286e-1, 5.40397917702171048937e-1, 7.18286544141962662868e-2, 1.26171219808761642112e-1, 1.36370839120290507362e-2, 1.19844998467991074170e-2],
];
const MIDDLE = [
  [-9.86494403484714822705e-3, -6.93858572707181764372e-1, -1.05586262253232909814e1, -6.23753324503260060396e1, -1.62396669462573470355e2, -1.84605092906711035994e2, -8.12874355063065934246e1, -9.81432934416914548592],
  [1, 1.96512716674392571292e1, 1.37657754143519042600e2, 4.34565877475229228821e2, 6.45387271733267880336e2, 4.29008140027567833386e2, 1.08635005541779435134e2, 6.57024977031928170135, -6.04244152148580987438e-2],
];
const TAIL = [
  [-9.86494292470009928597e-3, -7.99283237680523006574e-1, -1.77579549177547519889e1, -1.60636384855821916062e2, -6.37566443368389627722e2, -1.02509513161107724954e3, -4.83519191608651397019e2],
  [1, 3.03380607434824582924e1, 3.25792512996573918826e2, 1.53672958608443695994e3, 3.19985821950859553908e3, 2.55305040643316442583e3, 4.74528541206955367215e2, -2.24409524465858183362e1],
];

function polynomial(coefficients, x) {
  let sum = 0;
  for (let k = coefficients.length - 1; k >= 0; k -= 1) sum = sum * x + coefficients[k];
  return sum;
}

function quotient([above, below], x) {
  return polynomial(above, x) / polynomial(below, x);
}

const bits = new DataView(new ArrayBuffer(8));

/** erfc(x) for x >= 1.25. */
function tail(x) {
  const rest = quotient(x < 1 / 0.35 ? MIDDLE : TAIL, 1 / (x * x));
  bits.setFloat64(0, x);
  bits.setUint32(4, 0);
  const short = bits.getFloat64(0); // its square is exact
  return (Math.exp(-short * short - 0.5625) * Math.exp((short - x) * (short + x) + rest)) / x;
}

export function erf(x) {
  const size = Math.abs(x);
  if (Number.isNaN(x)) return x;
  if (size < 0.84375) return size < 2 ** -28 ? x + 1.28379167095512586316e-1 * x : x + x * quotient(SMALL, x * x);
  const value = size < 1.25 ? ERX + quotient(NEAR_ONE, size - 1) : size >= 6 ? 1 : 1 - tail(size);
  return x < 0 ? -value : value;
}

export function erfc(x) {
  if (Number.isNaN(x)) return x;
  const size = Math.abs(x);
  if (size < 0.84375) {
    if (size < 2 ** -56) return 1 - x;
    const rest = x * quotient(SMALL, x * x);
    return x < 0.25 ? 1 - (x + rest) : 0.5 - (rest + (x - 0.5));
  }
  if (size < 1.25) {
    const rest = quotient(NEAR_ONE, size - 1);
    return x >= 0 ? 1 - ERX - rest : 1 + (ERX + rest);
  }
  if (x < -6) return 2;
  if (size >= 28) return 0;
  return x > 0 ? tail(x) : 2 - tail(size);
}
