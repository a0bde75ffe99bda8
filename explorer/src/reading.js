// Numbers and sentences that follow from a certificate, a score or a path.

import { number } from "./words.js";

const SAMPLES = 500; // of a chart
const FILLED = 150; // parts of a chart's width without a gap

export function gapInWords({ gap, primal, dual }, parameter) {
  const objectives = `primal ${number(primal, 6)}, dual ${number(dual, 6)}`;
  return `Relative duality gap ${number(Math.max(gap, 0), 2)} at this ${parameter}: ${objectives}, evaluated here in float64.`;
}

/** Return the score at a value: that of its interval, or of a curved one between two neighbours. */
export function scoreAt(curve, value) {
  const k = intervalOf(curve.C, value);
  if (!curve.isSmooth) return curve.score[k];
  const share = Math.min(Math.max((value - curve.C[k]) / (curve.C[k + 1] - curve.C[k]), 0), 1);
  return (1 - share) * curve.score[k] + share * curve.score[k + 1];
}

export const largest = (values) => 1.0001 * values.reduce((most, v) => Math.max(most, Math.abs(v)), 1e-300);

/** Return the k-th of some values, counted from zero; they are put in another order.  Sorting them all takes ten times as long. */
export function ranked(values, k) {
  let [low, high] = [0, values.length - 1];
  while (low < high) {
    const pivot = values[(low + high) >> 1];
    let [i, j] = [low, high];
    while (i <= j) {
      while (values[i] < pivot) i++;
      while (values[j] > pivot) j--;
      if (i <= j) {
        const v = values[i];
        values[i++] = values[j];
        values[j--] = v;
      }
    }
    if (k <= j) high = j;
    else if (k >= i) low = i;
    else break;
  }
  return values[k];
}

/** Return how many classes have so many pairs. */
export const classesOf = (pairs) => Math.round((1 + Math.sqrt(1 + 8 * pairs)) / 2);

/** Return the interval of ascending edges that a value is in. */
function intervalOf(edges, value) {
  let [low, high] = [0, edges.length - 2];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (edges[middle] <= value) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Return C at which charts are drawn: every breakpoint, and others between, or some breakpoints where they are many. */
export function samplesOf(path) {
  const found = [];
  const every = Math.max(1, Math.ceil(path.segments / SAMPLES));
  for (let k = 0; k <= path.segments; k += every) {
    if (k && every === 1) found.push(path.isLog ? Math.sqrt(path.C[k - 1] * path.C[k]) : (path.C[k - 1] + path.C[k]) / 2);
    found.push(path.C[k]);
  }
  if (found.at(-1) < path.C[path.segments]) found.push(path.C[path.segments]);
  return filled(found.filter((C, k) => !k || C > found[k - 1]), path.isLog);
}

/** Return values with others between those that are far apart: over log C no line of 1 / C is straight. */
function filled(values, isLog) {
  const [at, back] = isLog ? [Math.log, Math.exp] : [Number, Number];
  const widest = (at(values.at(-1)) - at(values[0])) / FILLED;
  return values.flatMap((v, k) => {
    if (!k) return [v];
    const from = at(values[k - 1]);
    const gap = at(v) - from;
    const parts = Math.ceil(gap / widest);
    return [...Array.from({ length: Math.max(parts - 1, 0) }, (_, j) => back(from + (gap * (j + 1)) / parts)), v];
  });
}

const SETTLED = 0.15; // of the points at the cap: no more have left it since C was a tenth
const FEW = 0.02; // of all points: that many do not count

/** Return whether few points have left the cap since C was a tenth of what it is. */
export function isSettledAt(samples, capped, C, now, n) {
  let k = 0;
  while (k + 1 < samples.length && samples[k + 1] <= C / 10) k++;
  return capped[k] - now <= Math.max(SETTLED * capped[k], FEW * n);
}
