/* Small dense systems. Matrices are arrays of columns. */

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

/** A = Q R by Householder reflections, for least squares: columns that the others nearly make up are passed over. */
export class Factored {
  constructor(columns) {
    this.columns = columns.map((column) => Float64Array.from(column));
    this.reflections = [];
    this.used = [];
    this.columns.forEach((column, j) => {
      const row = this.used.length;
      const size = norm(columns[j], 0);
      const left = norm(column, row);
      if (row >= column.length || !(left > 1e-14 * size)) return;
      const reflection = Float64Array.from(column.subarray(row));
      reflection[0] += reflection[0] > 0 ? left : -left;
      const one = { row, reflection, length: dot(reflection, reflection, 0) };
      this.reflections.push(one);
      this.used.push(j);
      for (let k = j; k < this.columns.length; k += 1) reflect(one, this.columns[k]);
    });
  }

  /** Qᵗ y in place of y; its first entries, as many as `rank`, are what A can make of y. */
  turn(y) {
    for (const one of this.reflections) reflect(one, y);
    return y;
  }

  /** How many columns count. */
  get rank() { return this.used.length; }

  /** The x that makes |A x - y| smallest, from Qᵗ y. */
  solveTurned(turned) {
    const x = new Float64Array(this.columns.length);
    for (let i = this.rank - 1; i >= 0; i -= 1) {
      let sum = turned[i];
      for (let k = i + 1; k < this.rank; k += 1) sum -= this.columns[this.used[k]][i] * x[this.used[k]];
      x[this.used[i]] = sum / this.columns[this.used[i]][i];
    }
    return x;
  }
}

/** The x that makes |A x - y| smallest. */
export function leastSquares(columns, y) {
  const factored = new Factored(columns);
  return factored.solveTurned(factored.turn(Float64Array.from(y)));
}

function norm(column, from) {
  let sum = 0;
  for (let i = from; i < column.length; i += 1) sum += column[i] * column[i];
  return Math.sqrt(sum);
}

function dot(a, b, from) {
  let sum = 0;
  for (let i = 0; i < a.length; i += 1) sum += a[i] * b[i + from];
  return sum;
}

function reflect({ row, reflection, length }, column) {
  const much = (2 * dot(reflection, column, row)) / length;
  for (let i = 0; i < reflection.length; i += 1) column[i + row] -= much * reflection[i];
}
