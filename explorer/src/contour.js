// Marching squares: the line on which values on a grid have a level, as pieces from edge to edge of the cells.

/** Call draw(x0, y0, x1, y1) for every piece, in units of grid steps. */
export function contour(values, width, height, level, draw) {
  for (let r = 0; r + 1 < height; r++) {
    for (let q = 0; q + 1 < width; q++) {
      const at = r * width + q;
      const a = values[at] - level;
      const b = values[at + 1] - level;
      const c = values[at + width + 1] - level;
      const d = values[at + width] - level;
      const signs = (a > 0) | ((b > 0) << 1) | ((c > 0) << 2) | ((d > 0) << 3);
      if (signs === 0 || signs === 15) continue;
      const top = () => [q + a / (a - b), r];
      const right = () => [q + 1, r + b / (b - c)];
      const bottom = () => [q + d / (d - c), r + 1];
      const left = () => [q, r + a / (a - d)];
      const pieces = PIECES(signs, a + b + c + d > 0);
      for (const [from, to] of pieces) {
        const [x0, y0] = [top, right, bottom, left][from]();
        const [x1, y1] = [top, right, bottom, left][to]();
        draw(x0, y0, x1, y1);
      }
    }
  }
}

const TOP = 0;
const RIGHT = 1;
const BOTTOM = 2;
const LEFT = 3;
const SIMPLE = {
  1: [[LEFT, TOP]],
  2: [[TOP, RIGHT]],
  3: [[LEFT, RIGHT]],
  4: [[RIGHT, BOTTOM]],
  6: [[TOP, BOTTOM]],
  7: [[LEFT, BOTTOM]],
  8: [[BOTTOM, LEFT]],
  9: [[BOTTOM, TOP]],
  11: [[BOTTOM, RIGHT]],
  12: [[RIGHT, LEFT]],
  13: [[RIGHT, TOP]],
  14: [[TOP, LEFT]],
};

/** At a saddle the mean of the four corners tells which of them are joined. */
function PIECES(signs, isPositive) {
  if (signs === 5)
    return isPositive
      ? [
          [TOP, RIGHT],
          [BOTTOM, LEFT],
        ]
      : [
          [LEFT, TOP],
          [RIGHT, BOTTOM],
        ];
  if (signs === 10)
    return isPositive
      ? [
          [LEFT, TOP],
          [RIGHT, BOTTOM],
        ]
      : [
          [TOP, RIGHT],
          [BOTTOM, LEFT],
        ];
  return SIMPLE[signs];
}
