// Values on grids over a picture: coarse ones while things move, a fine one when they rest.

import { onGrid } from "./kernels.js";
import { Sum } from "./sum.js";

const LEVELS = [40, 72, 136]; // columns
const AFFORDABLE = 6; // milliseconds a frame
const SLICE = 8; // milliseconds a frame for the fine grid

export class Grids {
  constructor(kernel, plane, n, aspect) {
    Object.assign(this, { kernel, plane, n, aspect, made: [], cost: [1, 1, 1] });
    this.hasTable = Boolean(plane.grid);
  }

  static of(kernel, plane, n, aspect) {
    const grids = new Grids(kernel, plane, n, aspect);
    return grids.at(0) ? grids : null;
  }

  at(level) {
    return (this.made[level] ??= this.make(level));
  }

  make(level) {
    const { plane } = this;
    const columns = this.hasTable ? plane.grid.columns : LEVELS[level];
    const rows = this.hasTable ? plane.grid.rows : Math.max(Math.round(columns / this.aspect), 8);
    const xs = between(plane.xRange, columns);
    const ys = between([...plane.yRange].reverse(), rows); // from the top
    const source = onGrid(this.kernel, plane, xs, ys);
    return source && { xs, ys, columns, rows, sum: new Sum(source, this.n) };
  }

  /** Return a grid with up-to-date values; `compute` lets a sum follow until a deadline.  `isFinal` tells if it is the finest. */
  values(isMoving, compute) {
    const level = this.hasTable ? 0 : isMoving ? (this.cost[1] < AFFORDABLE ? 1 : 0) : 2;
    const began = performance.now();
    const grid = this.at(level);
    const values = compute(grid.sum, level === 2 ? began + SLICE : Infinity);
    if (values === null) return { ...this.values(true, compute), isFinal: false }; // a little more of it in the next frame
    this.cost[level] += 0.2 * (performance.now() - began - this.cost[level]);
    return Object.assign(grid, { values, isFinal: !isMoving || this.hasTable });
  }

  /** Return the finest grid, however long that takes. */
  finest(compute) {
    const grid = this.at(this.hasTable ? 0 : 2);
    return Object.assign(grid, { values: compute(grid.sum, Infinity) });
  }
}

function between([from, to], size) {
  return Float64Array.from({ length: size }, (_, k) => from + ((to - from) * k) / (size - 1));
}
