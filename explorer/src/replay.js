// Several solvers on one problem, side by side, step by step; the gaps below.

import uPlot from "uplot";
import { Chart, chartColours } from "./charts.js";
import { Grids } from "./grids.js";
import { ELBOW, LEFT, RIGHT } from "./path.js";
import { featurePlane, principalPlane } from "./planes.js";
import { paletteOf, Scene } from "./scene.js";
import { View } from "./view.js";
import { count, number } from "./words.js";

const MEASURES = [
  ["step", "iterations"],
  ["evaluations", "kernel evaluations"],
  ["seconds", "seconds"],
];
const AT_CAP = 1 - 1e-9;
const SERIES = 5; // colours there are

/** The frames of one solver; coefficients are those of frame `at`. */
class Run {
  constructor(data, n) {
    Object.assign(this, data); // name, words, step, evaluations, seconds, gap, bias, sizes, index, value
    this.beta = new Float64Array(n);
    this.old = new Float64Array(this.index.length); // what each change replaces, to go back by
    this.offset = [0];
    let at = 0;
    for (const size of this.sizes) {
      for (const stop = at + size; at < stop; at++) {
        this.old[at] = this.beta[this.index[at]];
        this.beta[this.index[at]] = this.value[at];
      }
      this.offset.push(at);
    }
    this.frames = this.sizes.length;
    this.at = this.frames - 1;
  }

  moveTo(frame) {
    while (this.at < frame) {
      this.at++;
      for (let j = this.offset[this.at]; j < this.offset[this.at + 1]; j++) this.beta[this.index[j]] = this.value[j];
    }
    while (this.at > frame) {
      for (let j = this.offset[this.at + 1] - 1; j >= this.offset[this.at]; j--) this.beta[this.index[j]] = this.old[j];
      this.at--;
    }
  }

  /** Return the last frame up to a value of a measure. */
  frameAt(measure, value) {
    let k = 0;
    while (k + 1 < this.frames && this[measure][k + 1] <= value) k++;
    return k;
  }
}

export class Replay extends View {
  constructor(place, payload) {
    const { problem } = payload;
    super(place, payload, `${payload.words} · ${problem.kernel.words}`);
    this.problem = problem;
    this.runs = payload.solvers.map((data) => new Run(data, problem.n));
    this.plane = problem.features?.d === 2 ? featurePlane(problem, 0, 1) : principalPlane(problem);
    this.build();
    this.setMeasure("step");
    this.start();
  }

  build() {
    const main = this.find(".zg-main");
    main.classList.add("zg-race");
    main.innerHTML = `<section class="zg-card zg-lesson"><p>All solvers look for the same boundary. Watch how they get there: press play, or drag.</p>
      <ul class="zg-legend"><li><span>● ▲ the two classes</span></li><li><i class="zg-dot zg-set-1"></i><span><b>free</b> between its bounds</span></li><li><i class="zg-dot zg-set-2"></i><span><b>at its cap</b></span></li>
      <li><i class="zg-dot zg-set-0"></i><span><b>zero</b> no support vector</span></li></ul></section>
      <div class="zg-runs"></div>
      <section class="zg-card zg-chart zg-gap-chart"><h3>Relative duality gap</h3><div></div></section>`;
    this.find(".zg-runs").classList.toggle("zg-four", this.runs.length === 4);
    this.scenes = this.runs.map((run, k) => {
      const card = document.createElement("section");
      card.className = "zg-card zg-run";
      card.innerHTML = `<h3><i class="zg-swatch" style="background:var(--zg-s${k % SERIES})"></i><span></span></h3>
        <div class="zg-canvas-box"><canvas class="zg-picture" role="img"></canvas></div>
        <dl class="zg-stats"><div><dt>iterations</dt><dd data-stat="step"></dd></div><div><dt>kernel values</dt><dd data-stat="evaluations"></dd></div>
        <div><dt>support vectors</dt><dd data-stat="support"></dd></div><div><dt>gap</dt><dd data-stat="gap"></dd></div></dl><p class="zg-note"></p>`;
      card.querySelector("h3 span").textContent = run.name;
      this.find(".zg-runs").append(card);
      return {
        card,
        scene: new Scene(card.querySelector("canvas"), this.problem.n, () => this.draw()),
        status: new Int8Array(this.problem.n),
        grids: null,
      };
    });
    const select = document.createElement("select");
    select.setAttribute("aria-label", "measured in");
    MEASURES.forEach(([measure, name]) => select.add(new Option(name, measure)));
    select.addEventListener("change", () => {
      this.setMeasure(select.value);
      this.recolour();
    });
    this.find(".zg-tools").prepend(select);
  }

  /** Compare by another measure: "step", "evaluations" or "seconds". */
  setMeasure(measure) {
    this.measure = measure;
    const all = this.runs.flatMap((run) => Array.from(run[measure])).filter((v) => v > 0);
    this.unit = all.reduce((a, b) => Math.min(a, b), Infinity) || 1;
    const most = all.reduce((a, b) => Math.max(a, b), this.unit);
    this.setRange(Math.log10(0.5 * this.unit), Math.log10(most), measure, () => this.moved());
    const name = MEASURES.find(([key]) => key === measure)[1];
    const shifted = this.runs.map((run) => [
      Array.from(run[measure], (v) => Math.max(v, 0.5 * this.unit)),
      Array.from(run.gap, (g) => (g > 0 ? g : null)),
    ]);
    this.chart = new Chart(this.find(".zg-gap-chart div"), {
      y: "gap",
      isLogY: true,
      height: 220,
      xName: `${name}, logarithmic`,
      move: (v) => this.set(Math.log10(v)),
      data: uPlot.join(shifted.map(([x, y]) => unique(x, y))),
      series: this.runs.map((_, k) => ({
        colour: `s${k % SERIES}`,
        width: 2,
        spanGaps: true,
        dash: k % 2 ? [7, 3] : undefined,
      })),
    });
    this.find(".zg-gap-chart div").replaceChildren();
    this.moved();
  }

  /** Go to the next frame of any solver, or the one before. */
  step(way) {
    const now = 10 ** this.value;
    const next = this.runs.flatMap((run) => Array.from(run[this.measure])).filter((v) => v > 0 && (v - now) * way > 1e-9 * now);
    const best = next.reduce((a, b) => (a === null || (b - a) * way < 0 ? b : a), null);
    this.set(best === null ? (way > 0 ? this.high : this.low) : Math.log10(best) + 1e-12);
  }

  moved() {
    const value = 10 ** this.value * (1 + 1e-9);
    this.runs.forEach((run) => run.moveTo(run.frameAt(this.measure, value)));
    this.stir();
  }

  render() {
    this.runs.forEach((run, k) => this.drawRun(run, this.scenes[k]));
    const value = 10 ** this.value;
    this.chart.mark(Math.max(value, 0.5 * this.unit));
    const unit = { step: "iterations", evaluations: "values", seconds: "s" }[this.measure];
    const text = this.measure === "seconds" ? number(value) : count(Math.floor(value + 1e-6));
    this.find(".zg-value").textContent = `${text} ${unit}`;
  }

  drawRun(run, view) {
    const { problem, plane } = this;
    const { scene, status, card } = view;
    let support = 0;
    for (let i = 0; i < problem.n; i++) {
      const b = run.beta[i];
      status[i] = b === 0 ? RIGHT : Math.abs(b) >= AT_CAP * problem.cap[i] ? LEFT : ELBOW;
      support += b !== 0;
    }
    const tell = (name, text) => (card.querySelector(`[data-stat=${name}]`).textContent = text);
    tell("step", count(run.step[run.at]));
    tell("evaluations", count(run.evaluations[run.at]));
    tell("support", count(support));
    tell("gap", number(run.gap[run.at], 2));
    card.querySelector(".zg-note").textContent = run.at === run.frames - 1 ? run.words : "";
    if (!scene.colours) return;
    if (scene.fit()) view.grids = null;
    if (!scene.width || !scene.height) return;
    scene.clear();
    if (!view.grids) {
      const [[x0, x1], [y0, y1]] = [plane.xRange, plane.yRange];
      view.x = Float64Array.from(plane.px, (s) => ((s - x0) / (x1 - x0)) * scene.width);
      view.y = Float64Array.from(plane.py, (t) => ((y1 - t) / (y1 - y0)) * scene.height);
      view.grids = Grids.of(problem.kernel, plane, problem.n, scene.width / scene.height) ?? "none";
    }
    if (view.grids !== "none") {
      const grid = view.grids.values(this.isMoving, (sum, deadline) => sum.of(run.beta, run.bias[run.at], deadline));
      if (!grid.isFinal && !this.isMoving) this.draw();
      scene.field(grid.values, grid.columns, grid.rows, 1);
    }
    scene.points(view.x, view.y, problem.y, status);
  }

  recolour() {
    this.colours = chartColours(this.root);
    const palette = paletteOf(this.root);
    for (const { scene } of this.scenes) scene.palette = palette;
    this.drawAll();
  }

  drawAll() {
    this.chart.draw(this.colours);
    this.draw();
  }

  /** Return f of a solver's frame on the fine grid, and where. */
  gridValues(k) {
    const run = this.runs[k];
    const grid = this.scenes[k].grids.finest((sum) => sum.of(run.beta, run.bias[run.at]));
    return {
      x: Array.from(grid.xs, (s) => s + this.plane.cx),
      y: Array.from(grid.ys, (t) => t + this.plane.cy),
      f: Array.from(grid.values),
    };
  }
}

/** Of frames at one place the last counts. */
function unique(x, y) {
  const found = new Map(x.map((v, k) => [v, y[k]]));
  return [[...found.keys()], [...found.values()]];
}
