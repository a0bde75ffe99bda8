// Charts over C, by uPlot, with a line where the explorer is.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { number } from "./words.js";

const FONT = "11px system-ui, sans-serif";

function axis(colours, label, more = {}) {
  return {
    stroke: colours.faint,
    grid: { stroke: colours.grid, width: 1 },
    ticks: { stroke: colours.grid, width: 1, size: 4 },
    font: FONT,
    labelFont: FONT,
    label,
    labelSize: 14,
    gap: 3,
    size: 28,
    ...more,
  };
}

// Of a logarithmic axis powers of ten only, and not too many of them; on a short one 2 and 5 times a power, too.
function splits(_, __, low, high) {
  const [first, last] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
  const every = Math.max(1, Math.ceil((last - first) / 7));
  const found = [];
  for (let k = first; k <= last; k += every) found.push(10 ** k);
  if (found.length > 2) return found;
  return [1, 2, 5]
    .flatMap((m) => [first - 1, first, last].map((k) => m * 10 ** k))
    .filter((v) => v >= low && v <= high)
    .sort((a, b) => a - b);
}

const figures = (_, values) =>
  values.map((v) => (v === null ? "" : v >= 1e4 || v < 1e-3 ? v.toExponential(0).replace("+", "") : number(v)));
const logarithmic = { splits, values: figures, filter: (_, found) => found };

/** A chart over a logarithmic axis; `move` is called with the value where someone points. */
export class Chart {
  constructor(
    place,
    { title, x, y, series, data, height = 190, isLogY = false, range, bands = [], lines = [], move, xName = "C", log = 3 },
  ) {
    this.place = place;
    this.options = { title, x, y, series, height, isLogY, range, bands, lines, xName, log };
    this.data = data;
    this.move = move;
    this.now = document.createElement("div");
    this.now.className = "zg-now";
  }

  /** Draw in these colours, in the width there is. */
  draw(colours) {
    const { place, options, data } = this;
    const { y, series, height, isLogY, range, bands, lines, xName, log } = options;
    this.plot?.destroy();
    const width = Math.max(place.clientWidth, 200);
    this.plot = new uPlot(
      {
        width,
        height,
        legend: { show: false },
        cursor: { x: false, y: false, points: { show: false }, drag: { x: false, y: false } },
        padding: [8, 16, 0, 0],
        scales: {
          x: { time: false, distr: log, log: 10, range: (_, low, high) => [low, high] },
          y: isLogY ? { distr: 3, log: 10 } : range ? { range: () => range } : {},
        },
        axes: [
          axis(colours, xName, log === 3 ? logarithmic : {}),
          axis(colours, y, { size: 48, ...(isLogY ? logarithmic : {}) }),
        ],
        series: [
          {},
          ...series.map((one) => ({ points: { show: false }, width: 1.5, ...one, stroke: colours[one.colour] ?? one.colour })),
        ],
        hooks: {
          drawClear: [
            (u) => {
              for (const [from, to] of bands) {
                const a = u.valToPos(from, "x", true);
                const b = u.valToPos(to, "x", true);
                u.ctx.fillStyle = colours.band;
                u.ctx.fillRect(a, u.bbox.top, Math.max(b - a, 2 * devicePixelRatio), u.bbox.height);
              }
              for (const value of lines) {
                u.ctx.fillStyle = colours.left;
                u.ctx.fillRect(u.valToPos(value, "x", true), u.bbox.top, 1.5 * devicePixelRatio, u.bbox.height);
              }
            },
          ],
        },
      },
      data,
      place,
    );
    const over = this.plot.over;
    over.append(this.now);
    over.style.touchAction = "pan-y";
    const point = (event) => this.move(this.plot.posToVal(event.clientX - over.getBoundingClientRect().left, "x"));
    over.addEventListener("pointerdown", (event) => {
      over.setPointerCapture(event.pointerId);
      point(event);
    });
    over.addEventListener("pointermove", (event) => event.buttons && point(event));
    if (this.at !== undefined) this.mark(this.at);
  }

  /** Put the line at a value. */
  mark(value) {
    this.at = value;
    if (this.plot) this.now.style.transform = `translateX(${this.plot.valToPos(value, "x")}px)`;
  }

  /** Replace what is drawn. */
  update(data, series) {
    this.data = data;
    if (series) this.options.series = series;
  }
}

export const stepped = uPlot.paths.stepped({ align: 1 });

export function chartColours(element) {
  const style = getComputedStyle(element);
  const names = [
    "ink",
    "faint",
    "grid",
    "band",
    "right",
    "elbow",
    "left",
    "negative",
    "positive",
    "positive-line",
    "accent",
    "s0",
    "s1",
    "s2",
    "s3",
    "s4",
  ];
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--zg-${name}`).trim()]));
}
