/* Small dense systems. */

/** Solves A x = b for a symmetric positive definite A (n by n, row by row, lower half used) by Cholesky; A is overwritten.
    null if A is not positive definite as rounded. */
export function solvePositive(A, b) {
  const n = b.length;
  for (let i = 0; i < n; i += 1) {
    for (let j = 0; j <= i; j += 1) {
      let sum = A[i * n + j];
      for (let k = 0; k < j; k += 1) sum -= A[i * n + k] * A[j * n + k];
      if (i !== j) A[i * n + j] = sum / A[j * n + j];
      else if (!(sum > 0)) return null;
      else A[i * n + i] = Math.sqrt(sum);
    }
  }
  const x = Float64Array.from(b);
  for (let i = 0; i < n; i += 1) {
    for (let k = 0; k < i; k += 1) x[i] -= A[i * n + k] * x[k];
    x[i] /= A[i * n + i];
  }
  for (let i = n - 1; i >= 0; i -= 1) {
    for (let k = i + 1; k < n; k += 1) x[i] -= A[k * n + i] * x[k];
    x[i] /= A[i * n + i];
  }
  return x;
}

/** The x that makes |A x - b| smallest: A has m rows of n entries. Householder reflections; a column that the others nearly
    make up gets 0. */
export function leastSquares(A, b, m, n) {
  const R = Float64Array.from(A);
  const y = Float64Array.from(b);
  const size = Float64Array.from({ length: n }, (_, j) => columnNorm(R, m, n, j, 0));
  const used = [];
  let row = 0;
  for (let j = 0; j < n && row < m; j += 1) {
    const norm = columnNorm(R, m, n, j, row);
    if (!(norm > 1e-13 * size[j])) continue;
    reflect(R, y, m, n, j, row, norm);
    used.push(j);
    row += 1;
  }
  const x = new Float64Array(n);
  for (let i = used.length - 1; i >= 0; i -= 1) {
    let sum = y[i];
    for (let k = i + 1; k < used.length; k += 1) sum -= R[i * n + used[k]] * x[used[k]];
    x[used[i]] = sum / R[i * n + used[i]];
  }
  return x;
}

function columnNorm(R, m, n, j, from) {
  let sum = 0;
  for (let i = from; i < m; i += 1) sum += R[i * n + j] ** 2;
  return Math.sqrt(sum);
}

/** Makes the entries of column j below `row` vanish. */
function reflect(R, y, m, n, j, row, norm) {
  const head = R[row * n + j] > 0 ? -norm : norm;
  const v = new Float64Array(m);
  for (let i = row; i < m; i += 1) v[i] = R[i * n + j];
  v[row] -= head;
  let length = 0;
  for (let i = row; i < m; i += 1) length += v[i] ** 2;
  if (length === 0) return;
  for (let k = j; k < n; k += 1) {
    let dot = 0;
    for (let i = row; i < m; i += 1) dot += v[i] * R[i * n + k];
    for (let i = row; i < m; i += 1) R[i * n + k] -= (2 * dot * v[i]) / length;
  }
  let dot = 0;
  for (let i = row; i < m; i += 1) dot += v[i] * y[i];
  for (let i = row; i < m; i += 1) y[i] -= (2 * dot * v[i]) / length;
}
