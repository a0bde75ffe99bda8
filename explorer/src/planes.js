// Ways to look at the points: two features, two principal components, or the model's own decision axis.

const MARGIN = 0.08; // of the range, on either side

/** Return a range that shows all values. */
export function rangeOf(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const v of values) {
    low = Math.min(low, v);
    high = Math.max(high, v);
  }
  const pad = MARGIN * (high - low) || 1;
  return [low - pad, high + pad];
}

function named(plane) {
  return { ...plane, xRange: plane.xRange ?? rangeOf(plane.px), yRange: plane.yRange ?? rangeOf(plane.py) };
}

/** Return the plane of two features, through the mean of the others. */
export function featurePlane(data, a, b) {
  const { features, origin, n } = data;
  const [ca, cb] = [features.mean[a], features.mean[b]];
  const px = features.columns[a].map((x) => x - ca);
  const py = features.columns[b].map((x) => x - cb);
  const rest = new Float64Array(n);
  if (features.d > 2) for (let i = 0; i < n; i++) rest[i] = Math.max(features.square[i] - px[i] ** 2 - py[i] ** 2, 0);
  return named({
    px,
    py,
    rest,
    base: features.base,
    ox: ca - origin[a],
    oy: cb - origin[b],
    cx: ca,
    cy: cb,
    xName: features.names[a],
    yName: features.names[b],
    grid: features.grid?.a === a && features.grid?.b === b ? features.grid : null,
    xRange: features.grid?.xRange,
    yRange: features.grid?.yRange,
    note: features.d > 2 ? "Boundary: a slice where all other features have their mean. Sets are those of all features." : "",
  });
}

/** Return the plane of the two principal components, through the mean. */
export function principalPlane(data) {
  const { principal, features } = data;
  return named({
    ...principal,
    cx: 0,
    cy: 0,
    base: features?.base,
    note: "Boundary: a slice through the mean along two principal components. Sets are those of all features.",
  });
}

/** Return a line along the only feature, as a plane without height. */
export function featureLine(data) {
  const { features, origin, n } = data;
  const [centre] = features.mean;
  return {
    px: features.columns[0].map((x) => x - centre),
    py: new Float64Array(n),
    rest: new Float64Array(n),
    base: features.base,
    ox: centre - origin[0],
    oy: 0,
    cx: centre,
    cy: 0,
  };
}

/** Return which ways there are. */
export function waysOf(data) {
  const ways = [];
  if (data.mode === "tube") {
    if (data.features?.d === 1 && data.kernel.name !== "other") ways.push(["curve", "the curve"]);
    ways.push(["fit", "prediction over target"]);
    return ways;
  }
  if (data.features && data.features.columns.length >= 2) ways.push(["features", "two features"]);
  if (data.principal) ways.push(["principal", "principal components"]);
  ways.push(["decision", "decision axis"]);
  return ways;
}
