// A path of any kind: straight lines in t from one breakpoint to the next, t = 1 / C or the parameter itself.  A breakpoint
// keeps which coefficients are not as they were at the one before; values are those of the parameter, ascending.

/** Breakpoints, coefficients and events; nothing here moves. */
export class LinePath {
  constructor(data) {
    Object.assign(this, data); // value, t, rows, weight, cap, y, sets, roles, sides, start, point, target, eventValue, before, ...
    this.n = this.y.length;
    this.C = this.value;
    this.eventC = this.eventValue;
    this.segments = this.value.length - 1;
    this.offset = new Int32Array(this.counts.length + 1);
    this.counts.forEach((size, k) => (this.offset[k + 1] = this.offset[k] + size));
    this.old = new Float64Array(this.index.length);
    const now = new Float64Array(this.n);
    this.index.forEach((i, at) => {
      this.old[at] = now[i];
      now[i] = this.new[at];
    });
    this.followEvents();
  }

  followEvents() {
    const status = Int8Array.from(this.start);
    this.from = Int8Array.from(this.point, (i, e) => {
      const before = status[i];
      status[i] = this.target[e];
      return before;
    });
    this.origin = Int8Array.from(this.from, (set) => this.roles[set]);
    this.goal = Int8Array.from(this.target, (set) => this.roles[set]);
    this.margin = new Int32Array(this.n); // changes of each point: those that move most are drawn
    for (const i of this.index) this.margin[i]++;
  }

  /** Return the segment of a value; at a breakpoint the one that begins there. */
  segmentAt(value) {
    let [low, high] = [0, this.segments - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.value[middle] <= value) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

/** The solution at one value, which can be moved to another. */
export class LineCursor {
  constructor(path) {
    this.path = path;
    this.set = Int8Array.from(path.start);
    this.status = Int8Array.from(path.start, (set) => path.roles[set]);
    this.side = Int8Array.from(path.start, (set, i) => path.sides[set] || path.y[i]);
    this.counts = [0, 0, 0];
    for (const role of this.status) this.counts[role]++;
    this.events = 0;
    this.now = new Float64Array(path.n); // at the last breakpoint
    this.dense = new Float64Array(path.n); // here
    this.k = -1;
    this.moveTo(path.C[0]);
  }

  moveTo(value) {
    const { path } = this;
    const k = path.segmentAt(value);
    while (this.events < path.before[k]) this.place(path.point[this.events], path.target[this.events++]);
    while (this.events > path.before[k]) this.place(path.point[--this.events], path.from[this.events]);
    for (; this.k < k; this.k++) this.apply(this.k + 1, path.new);
    for (; this.k > k; this.k--) this.apply(this.k, path.old);
    const t = path.isLog ? 1 / value : value;
    const share = Math.min(Math.max((t - path.t[k]) / (path.t[k + 1] - path.t[k]), 0), 1);
    this.dense.set(this.now);
    for (let at = path.offset[k + 1]; at < path.offset[k + 2]; at++) {
      this.dense[path.index[at]] += share * (path.new[at] - path.old[at]);
    }
    this.bias = (1 - share) * path.biasBegin[k] + share * path.biasEnd[k];
    this.C = value;
    this.lam = path.isLog ? t : 1;
  }

  apply(k, values) {
    const { path, now } = this;
    for (let at = path.offset[k]; at < path.offset[k + 1]; at++) now[path.index[at]] = values[at];
  }

  place(i, set) {
    const { path } = this;
    this.set[i] = set;
    this.side[i] = path.sides[set] || path.y[i];
    this.counts[this.status[i]]--;
    this.status[i] = path.roles[set];
    this.counts[this.status[i]]++;
  }

  /** Return |b| over the cap of some points. */
  shares(points) {
    return points.map((i) => Math.min(Math.abs(this.dense[i]) / this.path.cap[i], 1));
  }
}
