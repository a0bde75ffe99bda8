// The explorer of a path: everything follows from the cursor at one C.

import { Chart, chartColours, stepped } from "./charts.js";
import { EventList } from "./events.js";
import { drawRug } from "./frame.js";
import { Grids } from "./grids.js";
import { amongPoints } from "./kernels.js";
import { Cursor, Path } from "./path.js";
import { featurePlane, principalPlane, rangeOf, waysOf } from "./planes.js";
import { paletteOf, Scene } from "./scene.js";
import { certificate, Sum } from "./sum.js";
import { View } from "./view.js";
import { count, number, setName, story } from "./words.js";

const SAMPLES = 500; // of a chart
const SHOWN = 40; // points in the chart of coefficients
const NEAR = 14; // pixels
const LIST_EVERY = 250; // milliseconds between two looks at the list while things move
const AFFORDABLE = 5; // milliseconds a frame, for the values of all training points

const BODY = `
  <section class="zg-card zg-scene">
    <div class="zg-scene-head">
      <label>View <select class="zg-way"></select></label>
      <span class="zg-pick"><select class="zg-a" aria-label="horizontal feature"></select> × <select class="zg-b" aria-label="vertical feature"></select></span>
    </div>
    <div class="zg-canvas-box">
      <canvas class="zg-picture" role="img"></canvas>
      <span class="zg-name zg-name-x"></span><span class="zg-name zg-name-y"></span>
      <div class="zg-tip" hidden></div>
    </div>
    <ul class="zg-legend"></ul>
    <p class="zg-note"></p>
  </section>
  <div class="zg-side">
    <section class="zg-card zg-story">
      <p class="zg-lead">C is the price of an error</p>
      <p class="zg-c"></p>
      <h2></h2>
      <p class="zg-say"></p>
      <dl class="zg-stats">
        <div><dt>support vectors</dt><dd data-stat="support"></dd></div>
        <div><dt>margin errors</dt><dd data-stat="left"></dd></div>
        <div><dt>wrong side</dt><dd data-stat="errors"></dd></div>
        <div><dt>half margin 1/‖w‖</dt><dd data-stat="margin"></dd></div>
        <div class="zg-score" hidden><dt>held-out score</dt><dd data-stat="score"></dd></div>
      </dl>
    </section>
    <section class="zg-card zg-proof">
      <h3>Certificate</h3>
      <p class="zg-gap"></p>
      <p class="zg-proved"></p>
    </section>
    <section class="zg-card zg-events">
      <h3>Events <small></small></h3>
      <div class="zg-list" tabindex="0"></div>
    </section>
  </div>
  <section class="zg-card zg-chart zg-score-chart" hidden><h3>Held-out score <small></small></h3><div></div></section>
  <section class="zg-card zg-chart zg-sets-chart"><h3>Points in each set</h3><div></div></section>
  <section class="zg-card zg-chart zg-coef-chart"><h3>Coefficients <small></small></h3><div></div></section>`;

export class Explorer extends View {
  constructor(place, payload, { C = null, changed = () => {} } = {}) {
    super(place, payload, "");
    this.changed = changed;
    if (payload.paths.length > 1) this.addPairs();
    this.show(0, C);
    this.start();
  }

  // One pair of classes.

  addPairs() {
    const select = document.createElement("select");
    select.setAttribute("aria-label", "pair of classes");
    this.payload.paths.forEach((data, k) => select.add(new Option([...data.labels].reverse().join(" against "), k)));
    select.addEventListener("change", () => {
      this.show(Number(select.value), this.C);
      this.recolour();
    });
    this.root.querySelector(".zg-tools").prepend(select);
  }

  show(k, C) {
    const data = (this.data = this.payload.paths[k]);
    const path = (this.path = new Path(data.path));
    this.cursor = new Cursor(path);
    this.training = amongPoints(data);
    this.training &&= new Sum(this.training, path.n);
    this.trainingCost = 1;
    this.selected = this.decisions = null;
    this.listed = 0;
    const features = data.features ? ` · ${count(data.features.d)} features` : "";
    const points =
      data.total > path.n ? `${count(data.total)} rows, ${count(path.n)} distinct points` : `${count(path.n)} points`;
    this.find(".zg-sub").textContent =
      `${points}${features} · ${data.kernel.words} · ${count(path.point.length)} events · ` +
      `C from ${number(path.C[0])} to ${number(path.C[path.segments])}`;
    this.find(".zg-main").innerHTML = BODY;
    this.scene = new Scene(this.find(".zg-picture"), path.n, () => this.draw());
    const [low, high] = [Math.log10(path.C[0]), Math.log10(path.C[path.segments])];
    this.setRange(low, high, "C, on a logarithmic scale", () => this.moveTo(10 ** this.value));
    this.list = new EventList(this.find(".zg-list"), path, (e) => this.jump(e));
    this.find(".zg-events small").textContent = `${count(path.point.length)}, click to jump`;
    const proved = `at most ${number(data.largestGap, 2)}`;
    this.find(".zg-proved").textContent = `Proven by zerogap for every C of this path, rounding included: ${proved}.`;
    this.fillLegend();
    this.fillWays();
    this.makeCharts();
    this.listenToPicture();
    const [best] = [...(data.best ?? [])].sort((one, two) => two[1] / two[0] - one[1] / one[0]);
    this.setC(C ?? (best ? Math.sqrt(best[0] * best[1]) : 10 ** ((low + high) / 2)));
  }

  fillLegend() {
    const [negative, positive] = this.data.labels;
    const sets = [
      [1, "on the margin", "holds the boundary"],
      [2, "inside the margin", "pays for it, at the cap C"],
      [0, "outside", "no influence"],
    ];
    this.find(".zg-legend").innerHTML =
      sets
        .map(([set, name, what]) => `<li><i class="zg-dot zg-set-${set}"></i><span><b>${name}</b> ${what}</span></li>`)
        .join("") +
      `<li><i class="zg-region zg-negative"></i><span class="zg-class">● </span></li><li><i class="zg-region zg-positive"></i><span class="zg-class">▲ </span></li>`;
    const [one, two] = this.root.querySelectorAll(".zg-class");
    one.append(negative);
    two.append(positive);
  }

  // Ways to look at it.

  fillWays() {
    const { data } = this;
    const ways = waysOf(data).filter(([way]) => way !== "decision" || this.training);
    const select = this.find(".zg-way");
    ways.forEach(([way, name]) => select.add(new Option(name, way)));
    select.addEventListener("change", () => this.setWay(select.value));
    const picks = [this.find(".zg-a"), this.find(".zg-b")];
    for (const pick of data.features ? picks : []) {
      data.features.names.forEach((name, k) => pick.add(new Option(name, k)));
      pick.addEventListener("change", () => this.setWay("features", ...picks.map((p) => Number(p.value))));
    }
    const first = ways.find(([way]) => way === (data.features?.d === 2 ? "features" : "principal")) ?? ways[0];
    if (first) this.setWay(first[0], 0, 1);
    else {
      this.find(".zg-scene").classList.add("zg-empty");
      this.note("");
    }
  }

  /** Look at it in another way: "features" (with two of them), "principal" or "decision". */
  setWay(way, a = Number(this.find(".zg-a").value), b = Number(this.find(".zg-b").value)) {
    const { data } = this;
    if (way === "features" && a === b) b = (a + 1) % data.features.columns.length;
    this.way = way;
    this.find(".zg-way").value = way;
    this.find(".zg-pick").hidden = way !== "features" || data.features.columns.length === 2;
    if (way === "features") [this.find(".zg-a").value, this.find(".zg-b").value] = [a, b];
    this.plane =
      way === "features" ? featurePlane(data, a, b) : way === "principal" ? principalPlane(data) : this.decisionPlane();
    this.find(".zg-name-x").textContent = `${this.plane.xName} →`;
    this.find(".zg-name-y").textContent = `${this.plane.yName} →`;
    this.grids = null;
    this.place = null;
    this.note(this.plane.note ?? "");
    this.draw();
  }

  decisionPlane() {
    const { values, name } = this.data.ordinate;
    return {
      py: values,
      yRange: rangeOf(values),
      xName: "decision value f(x)",
      yName: name,
      note: "Every point where the model puts it: the boundary is f = 0, the margins are f = ±1.",
    };
  }

  note(text) {
    this.find(".zg-note").textContent = [text, this.data.note].filter(Boolean).join(" ");
  }

  // Moving.

  get C() {
    return this.cursor.C;
  }

  /** Go to a C. */
  setC(C) {
    this.position.set(Math.log10(C), { quiet: true });
    this.moveTo(C);
  }

  /** Go to an event: the solution where it has just happened. */
  jump(event) {
    this.pause();
    this.setC(1 / this.path.eventLam[event]);
    this.list.mark(event, { follow: false });
    this.select(this.path.point[event]);
  }

  /** Go to the next breakpoint, or the one before. */
  step(way) {
    const { path, cursor } = this;
    const k = way > 0 ? cursor.k + 1 : 1 / cursor.C < path.lam[cursor.k] * (1 - 1e-12) ? cursor.k : cursor.k - 1;
    this.setC(path.C[Math.min(Math.max(k, 0), path.segments)]);
  }

  moveTo(C) {
    const { path } = this;
    this.cursor.moveTo(Math.min(Math.max(C, path.C[0]), path.C[path.segments]));
    this.stir();
    this.changed(this.C);
  }

  // Drawing.

  render(began) {
    this.tell();
    this.evaluate();
    this.drawPicture();
    for (const chart of this.charts) chart.mark(this.C);
    if (!this.isMoving || began - this.listed > LIST_EVERY) {
      this.listed = began;
      this.list.mark(this.cursor.events - 1);
    }
  }

  tell() {
    const { cursor } = this;
    const [title, text] = story(cursor);
    write(this.find(".zg-c"), `C = ${number(cursor.C, 4)}`);
    write(this.find(".zg-value"), `C = ${number(cursor.C, 3)}`);
    write(this.find("h2"), title);
    write(this.find(".zg-say"), text);
    if (!this.isMoving) this.scene.canvas.setAttribute("aria-label", `C = ${number(cursor.C, 4)}. ${title}. ${text}`);
    this.stat("support", `${count(cursor.counts[1] + cursor.counts[2])}`);
    this.stat("left", count(cursor.counts[2]));
    const { curve } = this.data;
    if (curve) this.stat("score", number(curve.score[intervalOf(curve.C, cursor.C)], 4));
  }

  stat(name, text) {
    write(this.find(`[data-stat=${name}]`), text);
  }

  /** Tell what follows from the decision values of all training points. */
  evaluate() {
    const known = (this.known = this.training ? this.evaluated() : null);
    const unknown = this.training ? "…" : "–";
    this.stat("errors", known ? count(known.errors) : unknown);
    this.stat("margin", known ? number(known.margin) : unknown);
    write(this.find(".zg-gap"), known ? gapInWords(known) : this.training ? "Evaluating the gap at this C …" : "");
  }

  /** Return the certificate at this C; null if there was no time for it in this frame, and the next ones will go on. */
  evaluated() {
    const { training, cursor, isMoving } = this;
    if (isMoving && this.way !== "decision" && this.trainingCost > AFFORDABLE) return null;
    const began = performance.now();
    const values = training.follow(cursor, began + (isMoving ? AFFORDABLE : 2 * AFFORDABLE));
    this.trainingCost += 0.2 * (performance.now() - began - this.trainingCost);
    if (values === null) {
      if (!isMoving) this.draw();
      return null;
    }
    this.decisions = Float64Array.from(values, (F) => F / cursor.lam);
    return certificate(cursor, values);
  }

  drawPicture() {
    const { scene, cursor, plane } = this;
    if (!plane) return;
    if (scene.fit()) this.grids = this.place = null;
    if (!scene.width || !scene.height) return;
    scene.clear();
    if (this.way === "decision") {
      const limit = this.placeByDecision();
      scene.axis(scene.width / 2, scene.width / 2 / limit);
    } else {
      this.place ??= this.placeInPlane();
      this.grids ??= Grids.of(this.data.kernel, plane, this.path.n, scene.width / scene.height) ?? "none";
      if (this.grids !== "none") {
        const grid = this.grids.values(this.isMoving, (sum, deadline) => sum.follow(cursor, deadline));
        if (!grid.isFinal && !this.isMoving) this.draw();
        scene.field(grid.values, grid.columns, grid.rows, cursor.lam);
      }
    }
    scene.points(this.place.x, this.place.y, this.path.y, cursor.status);
    if (this.selected !== null) scene.ring(this.place.x[this.selected], this.place.y[this.selected]);
  }

  placeInPlane() {
    const { scene, plane } = this;
    const [x0, x1] = plane.xRange;
    const [y0, y1] = plane.yRange;
    return {
      x: Float64Array.from(plane.px, (s) => ((s - x0) / (x1 - x0)) * scene.width),
      y: Float64Array.from(plane.py, (t) => ((y1 - t) / (y1 - y0)) * scene.height),
    };
  }

  /** Put points where their decision values are; the axis is as long as nearly all of them need. */
  placeByDecision() {
    const { scene, plane, path } = this;
    const f = (this.decisions ??= new Float64Array(path.n));
    const sizes = Float64Array.from(f, Math.abs).sort();
    const limit = Math.max(1.05 * sizes[Math.floor(0.98 * (path.n - 1))], 1.4);
    const [y0, y1] = plane.yRange;
    const edge = 7;
    this.place = {
      x: f.map((v) => Math.min(Math.max((1 + v / limit) * 0.5 * scene.width, edge), scene.width - edge)),
      y: Float64Array.from(plane.py, (t) => ((y1 - t) / (y1 - y0)) * scene.height),
    };
    return limit;
  }

  // Points.

  listenToPicture() {
    const { canvas } = this.scene;
    const tip = this.find(".zg-tip");
    const nearest = (event) => this.nearest(event.offsetX, event.offsetY);
    canvas.addEventListener("pointermove", (event) => this.tip(tip, nearest(event), event));
    canvas.addEventListener("pointerleave", () => (tip.hidden = true));
    canvas.addEventListener("click", (event) => this.select(nearest(event)));
  }

  nearest(x, y) {
    let [best, least] = [null, NEAR ** 2];
    for (let i = 0; this.place && i < this.path.n; i++) {
      const square = (this.place.x[i] - x) ** 2 + (this.place.y[i] - y) ** 2;
      if (square < least) [best, least] = [i, square];
    }
    return best;
  }

  tip(tip, i, event) {
    tip.hidden = i === null;
    if (i === null) return;
    const { path, cursor, data } = this;
    const [share] = cursor.shares([i]);
    tip.textContent = `point ${path.rows[i]}, ${data.labels[path.y[i] > 0 ? 1 : 0]}: ${setName(cursor.status[i])}, coefficient ${number(100 * share)} % of its cap`;
    const isRight = event.offsetX > this.scene.width / 2;
    Object.assign(tip.style, {
      left: isRight ? "auto" : `${event.offsetX + 14}px`,
      right: isRight ? `${this.scene.width - event.offsetX + 14}px` : "auto",
      top: `${event.offsetY + 10}px`,
    });
  }

  /** Mark a point, in the picture and among the coefficients; null marks none. */
  select(i) {
    this.selected = i;
    this.drawCoefficients();
    this.draw();
  }

  // Charts.

  makeCharts() {
    const { path, data } = this;
    const move = (C) => {
      this.pause();
      this.setC(C);
    };
    this.samples = samplesOf(path);
    const points = Array.from({ length: path.n }, (_, i) => i).filter((i) => path.margin[i]);
    points.sort((i, j) => path.margin[j] - path.margin[i] || i - j);
    this.chosen = points.slice(0, SHOWN);
    this.trajectories = this.follow(this.chosen);
    this.coefficients = new Chart(this.find(".zg-coef-chart div"), {
      y: "share of the cap",
      series: [],
      data: [],
      range: [-0.03, 1.03],
      move,
    });
    this.sets = new Chart(this.find(".zg-sets-chart div"), {
      y: "points",
      move,
      data: [this.samples, ...this.setCounts],
      series: [
        { colour: "left", width: 2 },
        { colour: "elbow", width: 2 },
        { colour: "right", width: 2, dash: [4, 3] },
      ],
    });
    this.charts = [this.sets, this.coefficients];
    if (data.curve) this.addScore(data.curve, move);
  }

  addScore(curve, move) {
    this.find(".zg-score").hidden = false;
    this.find(".zg-score-chart").hidden = false;
    const intervals = this.data.best.map(([a, b]) => `${number(a)} to ${number(b)}`);
    const more = intervals.length > 3 ? ` and ${intervals.length - 3} more` : "";
    this.find(".zg-score-chart small").textContent =
      `best ${number(this.data.bestScore, 4)} for C in ${intervals.slice(0, 3).join(", ")}${more}`;
    this.charts.push(
      new Chart(this.find(".zg-score-chart div"), {
        y: "score",
        move,
        bands: this.data.best,
        data: [Array.from(curve.C), [...curve.score, curve.score.at(-1)]],
        series: [{ colour: "accent", width: 2, paths: stepped }],
      }),
    );
  }

  /** Return the shares of some points at the samples; the sizes of the sets are noted on the way. */
  follow(points) {
    const cursor = new Cursor(this.path);
    this.setCounts = [[], [], []];
    const found = points.map(() => []);
    for (const C of this.samples) {
      cursor.moveTo(C);
      [2, 1, 0].forEach((set, k) => this.setCounts[k].push(cursor.counts[set]));
      cursor.shares(points).forEach((share, k) => found[k].push(share));
    }
    return found;
  }

  drawCoefficients() {
    const { coefficients, chosen, samples, selected, path } = this;
    const series = chosen.map((i) => ({
      colour: path.y[i] > 0 ? "positive" : "negative",
      alpha: selected === null ? 0.75 : 0.25,
      width: 1.2,
    }));
    const lines = [...this.trajectories];
    if (selected !== null) {
      lines.push(this.follow([selected])[0]);
      series.push({ colour: "ink", width: 2.5 });
    }
    this.find(".zg-coef-chart small").textContent =
      selected === null
        ? `the ${chosen.length} points that are on the margin most`
        : `point ${path.rows[selected]} (thick), among others`;
    coefficients.update([samples, ...lines], series);
    if (this.colours) coefficients.draw(this.colours);
  }

  // Size and colours.

  recolour() {
    this.colours = chartColours(this.root);
    this.scene.palette = paletteOf(this.root);
    this.drawAll();
  }

  drawAll() {
    this.drawCoefficients();
    for (const chart of this.charts) if (chart !== this.coefficients) chart.draw(this.colours);
    const { path, position } = this;
    drawRug(
      this.find(".zg-rug"),
      Float64Array.from(path.eventLam, (lam) => -Math.log10(lam)),
      position.low,
      position.high,
      this.colours.faint,
    );
    this.draw();
  }

  /** Return f on the fine grid of the current plane, and where: for whoever wants to check it. */
  gridValues() {
    const grid = this.grids.finest((sum) => sum.follow(this.cursor));
    return {
      x: Array.from(grid.xs, (s) => s + this.plane.cx),
      y: Array.from(grid.ys, (t) => t + this.plane.cy),
      f: Array.from(grid.values, (F) => F / this.cursor.lam),
    };
  }
}

function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function gapInWords({ gap, primal, dual }) {
  const objectives = `primal ${number(primal, 6)}, dual ${number(dual, 6)}`;
  return `Relative duality gap ${number(Math.max(gap, 0), 2)} at this C: ${objectives}, evaluated here in float64.`;
}

/** Return the interval of ascending edges that a value is in. */
function intervalOf(edges, value) {
  let [low, high] = [0, edges.length - 2];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (edges[middle] <= value) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Return C at which charts are drawn: every breakpoint and the middles between, or some breakpoints where they are many. */
function samplesOf(path) {
  const found = [];
  const every = Math.max(1, Math.ceil(path.segments / SAMPLES));
  for (let k = 0; k <= path.segments; k += every) {
    if (k && every === 1) found.push(Math.sqrt(path.C[k - 1] * path.C[k]));
    found.push(path.C[k]);
  }
  if (found.at(-1) < path.C[path.segments]) found.push(path.C[path.segments]);
  return found.filter((C, k) => !k || C > found[k - 1]);
}
