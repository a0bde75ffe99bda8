// sum_i c_i k(x_i, .) + bias over everything a source of kernel values stands for, kept up to date as coefficients change.

import { LEFT } from "./path.js";

const FRESH = 3000; // changes, after which rounding is left behind by summing anew

export class Sum {
  constructor(source, n) {
    this.source = source;
    this.slow = new Float64Array(source.size); // of the coefficients in `held`
    this.held = new Float64Array(n);
    this.values = new Float64Array(source.size);
    this.changes = 0;
  }

  /** Let the coefficients be those that a function tells, a column for each that has changed; return whether there was time. */
  hold(wanted, deadline = Infinity) {
    const { held, slow, source } = this;
    let different = 0;
    let some = 0;
    for (let i = 0; i < held.length; i++) {
      const c = wanted(i);
      if (c !== held[i]) different++;
      if (c !== 0) some++;
    }
    if (different && (different > some || this.changes + different > FRESH + held.length)) {
      slow.fill(0);
      held.fill(0);
      this.changes = 0;
    }
    for (let i = 0; i < held.length; i++) {
      const c = wanted(i);
      if (c === held[i]) continue;
      source.add(slow, i, c - held[i]);
      held[i] = c;
      this.changes++;
      if (this.changes % 8 === 0 && performance.now() > deadline) return false;
    }
    return true;
  }

  /** Return lam f at the cursor's C: capped points are held, those of the elbow added each time; null if there was no time. */
  follow(cursor, deadline = Infinity) {
    if (cursor.dense) return this.of(cursor.dense, cursor.bias, deadline);
    const { status, path, elbow, b } = cursor;
    if (!this.hold((i) => (status[i] === LEFT ? path.cap[i] : 0), deadline)) return null;
    this.values.set(this.slow);
    for (let j = 0; j < elbow.length; j++) {
      const c = b[j] - this.held[elbow[j]]; // no point of the elbow is held, unless rounding has put it there
      if (c !== 0) this.source.add(this.values, elbow[j], c);
    }
    for (let k = 0; k < this.values.length; k++) this.values[k] += cursor.bias;
    return this.values;
  }

  /** Return f of coefficients and a bias; null if there was no time. */
  of(beta, bias, deadline = Infinity) {
    if (!this.hold((i) => beta[i], deadline)) return null;
    for (let k = 0; k < this.values.length; k++) this.values[k] = this.slow[k] + bias;
    return this.values;
  }
}

const LITTLE = 1e-4; // of what it costs to be off by one unit everywhere: what gaps are relative to where errors cost nothing

/** Return the objectives of a regression from lam f of all points, in float64; caps are C w. */
export function certificateOfTube({ path, dense, lam, bias }, F, target, epsilon) {
  let [square, loss, gain, gap, unit] = [0, 0, 0, 0, 0];
  for (let i = 0; i < path.n; i++) {
    const beta = dense[i] / lam;
    const cap = Math.abs(path.cap[i]) / lam;
    const residual = target[i] - F[i] / lam;
    const cost = cap * Math.max(Math.abs(residual) - epsilon, 0);
    square += beta * (F[i] - bias) / lam;
    loss += cost;
    gain += beta * target[i] - epsilon * Math.abs(beta);
    gap += Math.max(cost + epsilon * Math.abs(beta) - beta * residual, 0); // each at least zero
    unit += cap;
  }
  const primal = square / 2 + loss;
  return { primal, dual: gain - square / 2, gap: gap / Math.max(primal, LITTLE * unit) };
}

/** Return the objectives of one class from f of all points, in float64: coefficients sum to nu times all weight. */
export function certificateOfOneClass({ path, dense, bias }, f) {
  let [square, loss, gap, sum] = [0, 0, 0, 0];
  for (let i = 0; i < path.n; i++) {
    const cost = Math.abs(path.cap[i]) * Math.max(-f[i], 0);
    square += dense[i] * (f[i] - bias);
    loss += cost;
    gap += Math.max(cost + dense[i] * f[i], 0); // each at least zero
    sum += dense[i];
  }
  return { primal: square / 2 + bias * sum + loss, dual: -square / 2, gap: gap / (square / 2) };
}

/** Return the objectives at the cursor's C from lam f of all points, in float64: primal, dual, and 1 / |w|. */
export function certificate(cursor, F) {
  const { path, status, elbow, b, lam, dense } = cursor;
  const { y, weight, cap, n } = path;
  let square = 0; // b'K b = sum_i b_i (F_i - bias)
  let total = 0; // sum |b|
  let loss = 0;
  let gap = 0;
  const wrong = [0, 0]; // points of each class
  let place = 0;
  for (let i = 0; i < n; i++) {
    let own = status[i] === LEFT ? cap[i] : 0;
    if (dense) own = dense[i];
    else if (elbow[place] === i) own = b[place++];
    const short = lam - y[i] * F[i]; // lam times the slack of the margin
    const a = y[i] * own;
    square += own * (F[i] - cursor.bias);
    total += a;
    loss += weight[i] * Math.max(short, 0);
    gap += Math.max((weight[i] - a) * short, -a * short); // each at least zero
    if (y[i] * F[i] <= 0) wrong[y[i] > 0 ? 1 : 0]++;
  }
  const C = 1 / lam;
  const primal = C * C * (square / 2 + loss);
  return {
    primal,
    dual: C * C * (lam * total - square / 2),
    gap: (C * C * gap) / primal,
    margin: lam / Math.sqrt(Math.max(square, 0)),
    errors: wrong[0] + wrong[1],
    wrong,
  };
}
