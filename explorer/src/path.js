// The exact path.  With lam = 1 / C the scaled coefficients b = lam beta are linear in lam on every segment: those of the elbow
// go from `begin` to `end`, those of the left are y w, those of the right zero.  f(x) = (sum_i b_i k(x_i, x) + bias) / lam.

export const RIGHT = 0;
export const ELBOW = 1;
export const LEFT = 2;

/** The lines of all segments; nothing here moves. */
export class Path {
  constructor(data) {
    Object.assign(this, data); // lam, y, weight, rows, start, before, point, target, eventLam, sizes, end, biasBegin, biasEnd
    this.n = this.y.length;
    this.segments = this.lam.length - 1;
    this.C = Float64Array.from(this.lam, (lam) => 1 / lam);
    this.eventC = Float64Array.from(this.eventLam, (lam) => 1 / lam);
    this.goal = this.target;
    this.parameter = "C";
    this.isLog = true;
    this.cap = Float64Array.from(this.y, (y, i) => y * this.weight[i]);
    this.follow();
  }

  // A point that joins the elbow begins where its bound was, and one that stays there where the segment before has ended.
  // Where that is not so, Python has written `begins`; and `elbows`, where the elbow is not the set of that name.
  follow() {
    const { n, segments, start, point, target, before, cap } = this;
    const status = Int8Array.from(start);
    const last = Float64Array.from(status, (set, i) => (set === LEFT ? cap[i] : 0));
    this.origin = new Int8Array(point.length);
    this.offset = new Int32Array(segments + 1);
    for (let k = 0; k < segments; k++) this.offset[k + 1] = this.offset[k] + this.sizes[k];
    this.elbow = new Int32Array(this.offset[segments]);
    this.begin = new Float64Array(this.offset[segments]);
    this.margin = new Int32Array(n); // segments on which each point is in the elbow
    let members = [];
    for (let i = 0; i < n; i++) if (status[i] === ELBOW) members.push(i);
    for (let k = 0, e = 0; k <= segments; k++) {
      const stop = k < segments ? before[k] : point.length;
      const has = e < stop;
      for (; e < stop; e++) {
        const i = point[e];
        this.origin[e] = status[i];
        status[i] = target[e];
        if (target[e] !== ELBOW) last[i] = target[e] === LEFT ? cap[i] : 0;
      }
      if (k === segments) break;
      if (has) members = this.membersAfter(members, k, status);
      const at = this.offset[k];
      const own = this.elbows[k] ?? members;
      const begins = this.begins[k];
      for (let j = 0; j < own.length; j++) {
        const i = own[j];
        this.elbow[at + j] = i;
        this.begin[at + j] = begins ? begins[j] : last[i];
        last[i] = this.end[at + j];
        this.margin[i]++;
      }
    }
  }

  membersAfter(members, k, status) {
    const moved = new Set();
    for (let e = k ? this.before[k - 1] : 0; e < this.before[k]; e++) moved.add(this.point[e]);
    const kept = members.filter((i) => !moved.has(i));
    for (const i of moved) if (status[i] === ELBOW) kept.push(i);
    return kept.sort((a, b) => a - b);
  }

  /** Return the segment of lam; at a breakpoint the one that begins there. */
  segmentAt(lam) {
    let low = 0;
    let high = this.segments - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.lam[middle] >= lam) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

/** The solution at one C, which can be moved to another. */
export class Cursor {
  constructor(path) {
    this.path = path;
    this.status = Int8Array.from(path.start);
    this.events = 0; // made so far
    this.counts = [0, 0, 0];
    for (const set of this.status) this.counts[set]++;
    this.b = new Float64Array(path.sizes.reduce((a, b) => Math.max(a, b), 0));
    this.version = 0; // changes with the sets
    this.moveTo(path.C[0]);
  }

  /** Move to C; what is passed on the way costs a step an event. */
  moveTo(C) {
    const { path } = this;
    const lam = Math.min(Math.max(1 / C, path.lam[path.segments]), path.lam[0]);
    const k = path.segmentAt(lam);
    while (this.events < path.before[k]) this.place(path.point[this.events], path.target[this.events], this.events++);
    while (this.events > path.before[k]) this.place(path.point[--this.events], path.origin[this.events]);
    const from = path.lam[k];
    const share = Math.min(Math.max((from - lam) / (from - path.lam[k + 1]), 0), 1);
    this.elbow = path.elbow.subarray(path.offset[k], path.offset[k + 1]);
    for (let j = 0, at = path.offset[k]; j < this.elbow.length; j++, at++) {
      this.b[j] = (1 - share) * path.begin[at] + share * path.end[at];
    }
    this.bias = (1 - share) * path.biasBegin[k] + share * path.biasEnd[k];
    this.C = C;
    this.lam = lam;
    this.k = k;
  }

  place(i, set) {
    this.counts[this.status[i]]--;
    this.counts[set]++;
    this.status[i] = set;
    this.version++;
  }

  /** Return y beta / (C w) of some points: 0 has no influence, 1 is at the cap. */
  shares(points) {
    const { path, elbow, b, status } = this;
    const place = new Map();
    for (let j = 0; j < elbow.length; j++) place.set(elbow[j], b[j] / path.cap[elbow[j]]);
    return points.map((i) => place.get(i) ?? (status[i] === LEFT ? 1 : 0));
  }
}
