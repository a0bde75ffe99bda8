// Numbers and sentences.

export function number(x, digits = 3) {
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "–";
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size >= 1e5 || size < 1e-3) {
    const [mantissa, exponent] = x.toExponential(Math.max(digits - 2, 0)).split("e");
    return `${Number(mantissa)}e${Number(exponent)}`;
  }
  return String(Number(x.toPrecision(digits)));
}

/** Return a value of the slider's parameter, with the same digits wherever it is shown. */
export const value = (x) => number(x, 4);

export const count = (k) => k.toLocaleString("en").replace(/,/g, "\u2009");

export function some(k, one, many) {
  return `${count(k)} ${k === 1 ? one : many}`;
}

/** Say in one or two sentences what C does here. */
export function story({ cursor, data, known, isSettled }) {
  const { counts, path } = cursor;
  const { labels } = data;
  const isLinear = data.kernel.name === "linear"; // its boundary is straight, whatever C is
  const [right, elbow, left] = counts;
  const held = `${some(elbow, "point lies", "points lie")} exactly on the margin`;
  if (isHard(cursor)) {
    return [
      "Hard margin",
      `No point violates its margin any more, so a larger C changes nothing. ${held} and ${elbow === 1 ? "holds" : "hold"} the boundary alone.`,
    ];
  }
  if (known?.margin === Infinity)
    return ["No boundary", "The model is a constant here: as this kernel sees them, the two classes cancel each other out."];
  const classes = classesAt(cursor, labels, known);
  const inside = `${some(left, "point is", "points are")} inside the margin or on the wrong side`;
  const [small, large] = classes;
  if (small.wrong === small.size && large.wrong === 0) {
    return [
      `Everything is taken for ${large.label}`,
      `${small.size === 1 ? "The one point" : `All ${count(small.size)} points`} of ${small.label} ${small.size === 1 ? "is" : "are"} on the wrong side: at this price that costs less than a boundary would. A larger C makes it pay to find them.`,
    ];
  }
  const share = Math.max(small.capped / small.size, large.capped / large.size);
  const ofSmall =
    large.size > 2 * small.size ? `, ${count(small.capped)} of them of the ${count(small.size)} of ${small.label}, the smaller class` : "";
  if (share >= 0.3 && isSettled)
    return [
      "A larger C changes little here",
      `Most changes are behind, and still ${inside}${ofSmall}: up to C = ${value(path.C[path.segments])} the classes overlap. ${held}.`,
    ];
  if (share >= 0.6)
    return [
      "Small C: errors are cheap",
      `The margin is wide and many errors are allowed: ${inside}, of ${count(path.n)}${ofSmall}. The boundary is ${isLinear ? "" : "smooth, "}an average of ${left + elbow < 0.9 * path.n ? "these" : "nearly all points"}.`,
    ];
  if (share >= 0.3)
    return [
      "C still small: a wide margin",
      `Errors cost something: ${inside}${ofSmall}, ${held}. The margin gives way, and ${some(right, "point", "points")} no longer count.`,
    ];
  if (share >= 0.1)
    return [
      "Medium C: a compromise",
      `Margin and errors are balanced: ${inside}, ${held}. The other ${count(right)} could be left out and nothing would change.`,
    ];
  return [
    "Large C: errors are expensive",
    `The margin is narrow and ${isLinear ? "few points decide where the boundary is" : "the boundary bends around single points"}: only ${inside}, ${held}. The other ${count(right)} have no influence.`,
  ];
}

/** Return whether no coefficient is at its cap. */
export function isHard({ counts, path, dense, elbow, b }) {
  const isFree = (b, i) => b / path.cap[i] < 1 - 1e-9;
  return counts[2] === 0 && (dense ? dense.every((b, i) => isFree(Math.abs(b), i)) : elbow.every((i, j) => isFree(b[j], i)));
}

/** Return both classes, the smaller one first: how many points there are, at the cap, and on the wrong side, if that is known. */
export function classesAt({ path, status }, labels, known) {
  const both = labels.map((label, k) => ({ label, size: 0, capped: 0, wrong: known?.wrong?.[k] ?? null }));
  for (let i = 0; i < path.n; i++) {
    const own = both[path.y[i] > 0 ? 1 : 0];
    own.size++;
    if (status[i] === 2) own.capped++;
  }
  return both[1].size < both[0].size ? both.reverse() : both;
}

const SETS = ["outside the margin", "on the margin", "inside the margin"];

export const setName = (set) => SETS[set];

/** Say what happens to a point that goes from a set to another. */
export function change(origin, target) {
  return (
    {
      "0,1": "reaches the margin",
      "2,1": "comes to the margin",
      "1,0": "leaves: no influence",
      "1,2": "falls inside the margin",
      "0,2": "goes inside the margin",
      "2,0": "goes outside: no influence",
    }[`${origin},${target}`] ?? "stays"
  );
}
