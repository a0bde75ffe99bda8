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
export function story(cursor) {
  const { counts, path } = cursor;
  const [right, elbow, left] = counts;
  const isFree = (b, i) => b / path.cap[i] < 1 - 1e-9;
  const isHard =
    left === 0 &&
    (cursor.dense ? cursor.dense.every((b, i) => isFree(Math.abs(b), i)) : cursor.elbow.every((i, j) => isFree(cursor.b[j], i)));
  const share = left / path.n;
  const held = `${some(elbow, "point lies", "points lie")} exactly on the margin`;
  if (isHard) {
    return [
      "Hard margin",
      `No point violates its margin any more, so a larger C changes nothing. ${held} and ${elbow === 1 ? "holds" : "hold"} the boundary alone.`,
    ];
  }
  const inside = `${some(left, "point is", "points are")} inside the margin or on the wrong side`;
  if (share >= 0.6)
    return [
      "Small C: errors are cheap",
      `The margin is wide and many errors are allowed: ${inside}, of ${count(path.n)}. The boundary is smooth, an average of nearly all points.`,
    ];
  if (share >= 0.3)
    return [
      "C still small: a wide margin",
      `Errors cost something: ${inside}, ${held}. The margin gives way, and ${some(right, "point", "points")} no longer count.`,
    ];
  if (share >= 0.1)
    return [
      "Medium C: a compromise",
      `Margin and errors are balanced: ${inside}, ${held}. The other ${count(right)} could be left out and nothing would change.`,
    ];
  return [
    "Large C: errors are expensive",
    `The margin is narrow and the boundary bends around single points: only ${inside}, ${held}. The other ${count(right)} have no influence.`,
  ];
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
