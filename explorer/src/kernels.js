// Kernel values of the training points: on a grid in a plane through feature space, and among each other.  A source adds
// c k(x_i, .) to an array, for everything the array stands for.
//
// A plane is centre + s e1 + t e2 with orthonormal e1 and e2.  Of a point it keeps the coordinates px, py about the centre, the
// squared distance `rest` from the plane, and `base` = <x - o, centre - o>, o being the kernel's origin.

function power(x, degree) {
  let value = 1;
  for (let k = 0; k < degree; k++) value *= x;
  return value;
}

function ofProduct(kernel) {
  const { gamma, degree, coef0 } = kernel;
  if (kernel.name === "linear") return (z) => z;
  if (kernel.name === "poly") return (z) => power(gamma * z + coef0, degree);
  if (kernel.name === "sigmoid") return (z) => Math.tanh(gamma * z + coef0);
  return null;
}

/** rbf on a grid is the product of two Gaussians, one of each coordinate. */
class GaussianGrid {
  constructor(kernel, plane, xs, ys) {
    Object.assign(this, { gamma: kernel.gamma, plane, xs, ys, size: xs.length * ys.length, known: [] });
  }

  factors(i) {
    const { plane, xs, ys, gamma } = this;
    const constant = Math.exp(-gamma * plane.rest[i]);
    return (this.known[i] ??= [
      Float64Array.from(xs, (s) => Math.exp(-gamma * (s - plane.px[i]) ** 2)),
      Float64Array.from(ys, (t) => constant * Math.exp(-gamma * (t - plane.py[i]) ** 2)),
    ]);
  }

  add(out, i, c) {
    const [ex, ey] = this.factors(i);
    const width = ex.length;
    for (let r = 0, at = 0; r < ey.length; r++, at += width) {
      const a = c * ey[r];
      if (a === 0) continue;
      for (let q = 0; q < width; q++) out[at + q] += a * ex[q];
    }
  }
}

/** Kernels of <x, z> = base + s <x, e1> + t <x, e2> on a grid. */
class ProductGrid {
  constructor(kernel, plane, xs, ys) {
    Object.assign(this, { value: ofProduct(kernel), isLinear: kernel.name === "linear", plane, xs, ys });
    this.size = xs.length * ys.length;
  }

  add(out, i, c) {
    const { plane, xs, ys, value } = this;
    const x = plane.px[i] + plane.ox;
    const y = plane.py[i] + plane.oy;
    for (let r = 0, at = 0; r < ys.length; r++) {
      const z = plane.base[i] + ys[r] * y;
      if (this.isLinear) for (let q = 0; q < xs.length; q++) out[at++] += c * (z + xs[q] * x);
      else for (let q = 0; q < xs.length; q++) out[at++] += c * value(z + xs[q] * x);
    }
  }
}

/** Kernel values that Python has computed, a row a training point. */
class Table {
  constructor(values, size) {
    Object.assign(this, { values, size });
  }

  add(out, i, c) {
    const at = i * this.size;
    for (let k = 0; k < this.size; k++) out[k] += c * this.values[at + k];
  }
}

/** Return the kernel values on a grid, or null where the page has none. */
export function onGrid(kernel, plane, xs, ys) {
  if (kernel.name === "rbf") return new GaussianGrid(kernel, plane, xs, ys);
  if (ofProduct(kernel)) return new ProductGrid(kernel, plane, xs, ys);
  return plane.grid ? new Table(plane.grid.values, xs.length * ys.length) : null;
}

const COLUMNS = 40_000_000; // bytes of kernel columns that are kept

/** Kernel values among the training points, computed when they are first needed. */
class Columns {
  constructor(kernel, n, features, origin) {
    Object.assign(this, { size: n, kernel, value: ofProduct(kernel), known: new Map() });
    this.most = Math.max(8, Math.floor(COLUMNS / (8 * n)));
    this.X = features.columns.map((column, k) => (this.value ? column.map((x) => x - origin[k]) : column));
  }

  column(i) {
    let found = this.known.get(i);
    if (found) return found;
    if (this.known.size >= this.most) this.known.delete(this.known.keys().next().value);
    found = new Float64Array(this.size);
    for (const x of this.X) {
      const own = x[i];
      if (this.value) for (let j = 0; j < this.size; j++) found[j] += own * x[j];
      else for (let j = 0; j < this.size; j++) found[j] += (own - x[j]) * (own - x[j]);
    }
    const { value, kernel } = this;
    for (let j = 0; j < this.size; j++) found[j] = value ? value(found[j]) : Math.exp(-kernel.gamma * found[j]);
    this.known.set(i, found);
    return found;
  }

  add(out, i, c) {
    const column = this.column(i);
    for (let j = 0; j < out.length; j++) out[j] += c * column[j];
  }
}

/** Return the kernel values among the points, or null where the page has none. */
export function amongPoints(data) {
  const { kernel, features, gram, n } = data;
  if (gram) return new Table(gram, n);
  const isWhole = features && features.columns.length === features.d;
  return isWhole && (kernel.name === "rbf" || ofProduct(kernel)) ? new Columns(kernel, n, features, data.origin) : null;
}
