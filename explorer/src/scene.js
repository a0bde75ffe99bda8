// The picture: regions, boundary and margins on one canvas, points on another above it.

import { contour } from "./contour.js";
import { ELBOW, LEFT, RIGHT } from "./path.js";

const RADIUS = { [RIGHT]: 3.2, [ELBOW]: 5.4, [LEFT]: 4.2 };
const ORDER = [RIGHT, LEFT, ELBOW]; // drawn last, seen best

/** Return red, green and blue; grey while the style is not there yet. */
function colour(text) {
  return (text.match(/[0-9a-f]{2}/gi) ?? ["80", "80", "80"]).map((part) => parseInt(part, 16));
}

/** Colours of the page, as canvas needs them. */
export function paletteOf(element) {
  const style = getComputedStyle(element);
  const read = (name) => style.getPropertyValue(`--zg-${name}`).trim();
  const names = ["ink", "paper", "faint", "negative", "positive", "right", "elbow", "left", "line"];
  return Object.fromEntries(names.map((name) => [name, read(name)]));
}

export class Scene {
  constructor(canvas, n, resized) {
    this.canvas = canvas;
    this.scale = Math.min(Math.max((500 / n) ** 0.25, 0.6), 1); // many points are small, so that they are seen apart
    this.mayDiffer = true;
    new ResizeObserver(() => {
      this.mayDiffer = true;
      resized();
    }).observe(canvas);
    this.context = canvas.getContext("2d");
    this.image = document.createElement("canvas");
    this.top = Object.assign(document.createElement("canvas"), { className: "zg-picture zg-points" });
    canvas.after(this.top);
    this.stamps = new Map();
  }

  /** Take the size of the element, if it may be another one; return whether it is. */
  fit() {
    const { canvas } = this;
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    if (!this.mayDiffer && ratio === this.ratio) return false; // asking for the size makes the browser lay out the page
    this.mayDiffer = false;
    const width = Math.round(canvas.clientWidth * ratio);
    const height = Math.round(canvas.clientHeight * ratio);
    if (canvas.width === width && canvas.height === height && this.ratio === ratio) return false;
    for (const each of [canvas, this.top]) Object.assign(each, { width, height });
    this.sheet = null;
    this.ratio = ratio;
    this.stamps.clear();
    return true;
  }

  set palette(palette) {
    this.colours = palette;
    this.sides = [colour(palette.negative), colour(palette.positive)];
    this.stamps.clear();
  }

  clear() {
    this.context.setTransform(1, 0, 0, 1, 0, 0);
    this.context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    this.context.scale(this.ratio, this.ratio);
  }

  get width() {
    return this.canvas.width / this.ratio;
  }

  get height() {
    return this.canvas.height / this.ratio;
  }

  /** Draw regions and lines of values over the whole picture; a value of `unit` is a margin. */
  field(values, columns, rows, unit) {
    this.regions(values, columns, rows, unit);
    const { context, colours } = this;
    const dx = this.width / (columns - 1);
    const dy = this.height / (rows - 1);
    for (const [level, width] of [
      [-unit, 1.3],
      [unit, 1.3],
      [0, 2.6],
    ]) {
      context.beginPath();
      contour(values, columns, rows, level, (x0, y0, x1, y1) => {
        context.moveTo(x0 * dx, y0 * dy);
        context.lineTo(x1 * dx, y1 * dy);
      });
      Object.assign(context, { strokeStyle: colours.line, lineWidth: width, lineCap: "round" });
      context.globalAlpha = level ? 0.65 : 1;
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  regions(values, columns, rows, unit) {
    const { image, context, sides } = this;
    if (image.width !== columns || image.height !== rows) {
      Object.assign(image, { width: columns, height: rows });
      this.pixels = image.getContext("2d").createImageData(columns, rows);
    }
    const { data } = this.pixels;
    for (let k = 0; k < values.length; k++) {
      const f = values[k] / unit;
      const [r, g, b] = sides[f > 0 ? 1 : 0];
      const size = Math.min(Math.abs(f), 2);
      data[4 * k] = r;
      data[4 * k + 1] = g;
      data[4 * k + 2] = b;
      data[4 * k + 3] = size < 1 ? 14 + 30 * size : 62 + 22 * (size - 1); // the margins are seen as steps
    }
    image.getContext("2d").putImageData(this.pixels, 0, 0);
    context.imageSmoothingEnabled = true;
    context.imageSmoothingQuality = "low";
    // Values stand for the corners of cells, pixels for their middles.
    const dx = this.width / (columns - 1);
    const dy = this.height / (rows - 1);
    context.drawImage(image, -dx / 2, -dy / 2, this.width + dx, this.height + dy);
  }

  /** Draw two half planes and a line between, with margins: what the boundary is on the decision axis. */
  axis(zero, one) {
    const { context, colours, width, height } = this;
    const bands = [
      [0, zero - one, "negative", 0.3],
      [zero - one, zero, "negative", 0.12],
      [zero, zero + one, "positive", 0.12],
      [zero + one, width, "positive", 0.3],
    ];
    for (const [from, to, side, alpha] of bands) {
      context.globalAlpha = alpha;
      context.fillStyle = colours[side];
      context.fillRect(from, 0, to - from, height);
    }
    context.globalAlpha = 1;
    context.strokeStyle = colours.line;
    for (const [x, lineWidth] of [
      [zero - one, 1.3],
      [zero, 2.6],
      [zero + one, 1.3],
    ]) {
      context.lineWidth = lineWidth;
      context.beginPath();
      context.moveTo(x, 0);
      context.lineTo(x, height);
      context.stroke();
    }
  }

  /** Draw a curve through points in pixels, with a tube of half this height about it. */
  tube(x, y, half) {
    const { context, colours } = this;
    const trace = (shift, isBack) => {
      for (let k = 0; k < x.length; k++) {
        const at = isBack ? x.length - 1 - k : k;
        if (k || isBack) context.lineTo(x[at], y[at] + shift);
        else context.moveTo(x[at], y[at] + shift);
      }
    };
    context.beginPath();
    trace(-half, false);
    trace(half, true);
    context.closePath();
    context.globalAlpha = 0.16;
    context.fillStyle = colours.negative;
    context.fill();
    context.strokeStyle = colours.line;
    for (const [shift, lineWidth, alpha] of [
      [-half, 1.3, 0.65],
      [half, 1.3, 0.65],
      [0, 2.6, 1],
    ]) {
      context.globalAlpha = alpha;
      context.lineWidth = lineWidth;
      context.beginPath();
      trace(shift, false);
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  /** Draw points: colour and size tell the set, the shape the class.  Thousands of small pictures are faster put together here. */
  points(x, y, sides, status) {
    const { top } = this;
    this.sheet ??= top.getContext("2d").createImageData(top.width, top.height);
    const pixels = new Uint32Array(this.sheet.data.buffer);
    pixels.fill(0);
    for (const set of ORDER) {
      const stamps = [this.stamp(set, -1), this.stamp(set, 1)];
      for (let i = 0; i < status.length; i++) {
        if (status[i] === set)
          press(pixels, top.width, top.height, stamps[sides[i] > 0 ? 1 : 0], x[i] * this.ratio, y[i] * this.ratio);
      }
    }
    top.getContext("2d").putImageData(this.sheet, 0, 0);
  }

  /** Return the picture of a point: the pixels that are not empty, and where they are from its corner. */
  stamp(set, side) {
    const key = 2 * set + (side > 0);
    if (this.stamps.has(key)) return this.stamps.get(key);
    const { ratio, colours } = this;
    const radius = this.scale * RADIUS[set];
    const half = Math.ceil((radius + 2.5) * ratio);
    const picture = Object.assign(document.createElement("canvas"), { width: 2 * half, height: 2 * half });
    const context = picture.getContext("2d");
    context.translate(half, half);
    context.scale(ratio, ratio);
    shape(context, side, radius);
    context.fillStyle = colours[["right", "elbow", "left"][set]];
    context.globalAlpha = set === RIGHT ? 0.75 : 1;
    context.fill();
    context.globalAlpha = 1;
    context.lineWidth = set === ELBOW ? 1.8 * Math.sqrt(this.scale) : 0.9 * this.scale;
    context.strokeStyle = set === ELBOW ? colours.ink : colours.paper;
    context.stroke();
    const { data } = context.getImageData(0, 0, 2 * half, 2 * half);
    const all = new Uint32Array(data.buffer);
    const seen = [...all.keys()].filter((k) => all[k] >>> 24);
    const places = Int32Array.from(seen, (k) => Math.floor(k / (2 * half)) * this.canvas.width + (k % (2 * half)));
    const stamp = { half, places, pixels: Uint32Array.from(seen, (k) => all[k]) };
    this.stamps.set(key, stamp);
    return stamp;
  }

  /** Draw a ring around a point. */
  ring(x, y) {
    const { colours, ratio } = this;
    const context = this.top.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.beginPath();
    context.arc(x, y, 10, 0, 2 * Math.PI);
    Object.assign(context, { strokeStyle: colours.ink, lineWidth: 2 });
    context.stroke();
  }
}

/** Circles are of one class, triangles of the other. */
export function shape(context, side, radius) {
  context.beginPath();
  if (side < 0) {
    context.arc(0, 0, radius, 0, 2 * Math.PI);
  } else {
    const r = 1.28 * radius;
    context.moveTo(0, -r);
    context.lineTo(0.9 * r, 0.62 * r);
    context.lineTo(-0.9 * r, 0.62 * r);
    context.closePath();
  }
}

/** Put a stamp on a sheet of pixels, over what is there; at an edge only the rows and columns that are on it. */
function press(sheet, width, height, stamp, x, y) {
  const { half, places, pixels } = stamp;
  const left = Math.round(x) - half;
  const top = Math.round(y) - half;
  const isInside = left >= 0 && top >= 0 && left + 2 * half <= width && top + 2 * half <= height;
  const from = top * width + left;
  for (let k = 0; k < pixels.length; k++) {
    const at = from + places[k];
    if (!isInside && !isOn(at, left, half, width, sheet.length)) continue;
    // Where points overlap the soft edge of the upper one is left out: mixing colours would take longer than all the rest.
    if (sheet[at] === 0 || pixels[k] >>> 31) sheet[at] = pixels[k];
  }
}

function isOn(at, left, half, width, size) {
  if (at < 0 || at >= size) return false;
  const column = at % width;
  return column >= left && column < left + 2 * half;
}
