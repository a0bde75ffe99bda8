// The explorer of a path: everything follows from the cursor at one C.

import { BODY } from "./body.js";
import { Chart, chartColours, stepped } from "./charts.js";
import { eventList, solutionList } from "./events.js";
import { drawRug } from "./frame.js";
import { Grids } from "./grids.js";
import { amongPoints, onGrid } from "./kernels.js";
import { LineCursor, LinePath } from "./lines.js";
import { MODES } from "./modes.js";
import { Cursor, Path } from "./path.js";
import { featureLine, featurePlane, principalPlane, rangeOf, waysOf } from "./planes.js";
import { classesOf, gapInWords, isSettledAt, largest, ranked, samplesOf, scoreAt } from "./reading.js";
import { paletteOf, Scene } from "./scene.js";
import { certificate, certificateOfOneClass, certificateOfTube, Sum } from "./sum.js";
import { View } from "./view.js";
import { count, isHard, number, some, value } from "./words.js";

const SHOWN = 40; // points in the chart of coefficients
const NEAR = 14; // pixels
const LIST_EVERY = 250; // milliseconds between two looks at the list while things move
const AFFORDABLE = 5; // milliseconds a frame, for the values of all training points

const MANY_PAIRS = 10; // more are not looked through for their ends
const CURVE = 240; // points of a curve over one feature
const FIT = "On the diagonal the prediction is the target; within the band it is no further from it than epsilon.";

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
    const pairs = this.payload.paths.length;
    this.payload.paths.forEach((data, k) => select.add(new Option(`${[...data.labels].reverse().join(" against ")} (${k + 1} of ${pairs})`, k)));
    select.addEventListener("change", () => {
      this.show(Number(select.value), this.C);
      this.recolour();
    });
    this.root.querySelector(".zg-tools").prepend(select);
    const words = Object.assign(document.createElement("p"), { className: "zg-pairs" });
    words.textContent = `${count(classesOf(pairs))} classes: a machine for each of ${count(pairs)} pairs, and they vote. Shown is one pair; the menu has the others.`;
    this.find(".zg-sub").before(words);
  }

  show(k, C) {
    const data = (this.data = this.payload.paths[k]);
    const path = (this.path = pathOf(data));
    this.cursor = newCursor(path);
    this.mode = MODES[data.isApproximate ? "approximate" : (data.mode ?? "classes")];
    this.training = amongPoints(data);
    this.training &&= new Sum(this.training, path.n);
    this.trainingCost = 1;
    this.selected = this.decisions = this.sizes = this.explained = null;
    this.listed = 0;
    const features = data.features ? ` · ${some(data.features.d, "feature", "features")}` : "";
    const points =
      data.total > path.n ? `${count(data.total)} rows, ${count(path.n)} distinct points` : `${count(path.n)} points`;
    this.find(".zg-sub").textContent =
      `${points}${features} · ${data.kernel.words} · ${data.isApproximate ? some(path.C.length, "solution", "solutions") : some(path.point.length, "event", "events")} · ` +
      `${path.parameter} from ${value(path.C[0])} to ${value(path.C[path.segments])}`;
    this.find(".zg-main").innerHTML = BODY;
    this.fillStats();
    this.scene = new Scene(this.find(".zg-picture"), path.n, () => this.draw());
    const [low, high] = [this.onSlider(path.C[0]), this.onSlider(path.C[path.segments])];
    const label = path.isLog ? `${path.parameter}, on a logarithmic scale` : path.parameter;
    this.setRange(low, high, label, () => this.moveTo(path.isLog ? 10 ** this.value : this.value));
    this.fillList();
    const proved = `at most ${number(data.largestGap, 2)}`;
    this.find(".zg-proved").textContent = `Proven by zerogap for every ${path.parameter} of this path, rounding included: ${proved}${data.isApproximate ? ", an approximate path" : ""}.`;
    this.find(".zg-approximate").hidden = !data.isApproximate;
    this.find(".zg-approximate").textContent = `approximate: within a relative gap of ${number(data.gap)} at every C`;
    this.find(".zg-slide").title = `marks: ${data.isApproximate ? "solutions" : "events"}${data.best ? "; coloured: the best score" : ""}; arrow keys go from one to the next, space plays`;
    this.fillLegend();
    this.fillWays();
    this.makeCharts();
    this.listenToPicture();
    const middle = (low + high) / 2;
    this.setC(C ?? data.opening?.value ?? (path.isLog ? 10 ** middle : middle));
  }

  /** Return where a value is on the slider. */
  onSlider(value) {
    return this.path.isLog ? Math.log10(value) : value;
  }

  fillStats() {
    this.find(".zg-lead").textContent = `${this.mode.lead(this.path.parameter)}. Drag the slider, or press play.`;
    const score = this.find(".zg-score");
    for (const [name, words] of this.mode.stats) {
      const one = document.createElement("div");
      one.innerHTML = `<dt></dt><dd data-stat="${name}"></dd>`;
      one.firstChild.textContent = words;
      score.before(one);
    }
  }

  /** List the events, or of an approximate path, whose events are not known, the solutions it is made of. */
  fillList() {
    const { path, data } = this;
    const place = this.find(".zg-list");
    const isKnown = !data.isApproximate;
    this.list = isKnown
      ? eventList(place, path, (e) => this.jump(e), data.mode)
      : solutionList(place, path, (k) => this.jumpToSolution(k));
    this.find(".zg-events span").textContent = isKnown ? "Events" : "Solutions computed";
    this.find(".zg-events small").textContent = isKnown
      ? path.point.length ? `${count(path.point.length)}, click to jump` : "none: no point changes its set"
      : `${count(path.C.length)}, click to jump; between two of them it is not known where points change sets`;
  }

  fillLegend() {
    const [negative, positive] = this.mode.sides(this.data, this.way);
    const [circle, triangle] = this.mode.marks ?? ["● ", "▲ "];
    this.find(".zg-sets").innerHTML = this.mode.legend
      .map(([set, name, what]) => `<li><i class="zg-dot zg-set-${set}"></i><span><b>${name}</b> ${what}</span></li>`)
      .join("");
    this.find(".zg-classes").innerHTML =
      `<li><i class="zg-region zg-negative"></i><span class="zg-class">${circle}</span></li><li><i class="zg-region zg-positive"></i><span class="zg-class">${triangle}</span></li>`;
    const [one, two] = this.root.querySelectorAll(".zg-class");
    one.append(negative);
    two.append(positive);
  }

  // Ways to look at it.

  fillWays() {
    const { data } = this;
    const ways = waysOf(data).filter(([way]) => (way !== "decision" && way !== "fit") || this.training);
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
    this.fillLegend();
    this.find(".zg-pick").hidden = way !== "features" || data.features.columns.length === 2;
    this.find(".zg-region")?.closest("ul").classList.toggle("zg-no-regions", way === "curve" || way === "fit");
    if (way === "features") [this.find(".zg-a").value, this.find(".zg-b").value] = [a, b];
    this.plane =
      way === "features"
        ? featurePlane(data, a, b)
        : way === "principal"
          ? principalPlane(data)
          : way === "decision"
            ? this.decisionPlane()
            : this.targetPlane(way);
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
      note:
        this.data.mode === "one-class"
          ? "Every point where the model puts it: the boundary is f = 0, outside is left of it."
          : "Every point where the model puts it: the boundary is f = 0, the margins are f = ±1.",
    };
  }

  /** Return the plane of a regression: targets over the feature, or predictions over targets. */
  targetPlane(way) {
    const { target, features, kernel } = this.data;
    const range = rangeOf(target);
    if (way === "fit") return { xRange: range, yRange: range, xName: "target", yName: "prediction", note: FIT };
    const line = featureLine(this.data);
    const xRange = rangeOf(line.px);
    const xs = Float64Array.from({ length: CURVE }, (_, k) => xRange[0] + ((xRange[1] - xRange[0]) * k) / (CURVE - 1));
    this.curveSum = new Sum(onGrid(kernel, line, xs, [0]), this.path.n);
    return { px: line.px, py: target, xs, xRange, yRange: range, cx: line.cx, cy: 0, xName: features.names[0], yName: "target" };
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
    this.position.set(this.onSlider(C), { quiet: true });
    this.moveTo(C);
  }

  /** Go to an event: the solution where it has just happened. */
  jump(event) {
    this.pause();
    this.setC(this.path.eventC[event]);
    this.list.mark(event, { follow: false });
    this.select(this.path.point[event]);
  }

  jumpToSolution(k) {
    this.pause();
    this.setC(this.path.C[k]);
    this.list.mark(k, { follow: false });
  }

  /** Go to the next breakpoint, or the one before. */
  step(way) {
    const { path, cursor } = this;
    const k = way > 0 ? cursor.k + 1 : cursor.C > path.C[cursor.k] + 1e-12 * Math.abs(path.C[cursor.k]) ? cursor.k : cursor.k - 1;
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
    this.evaluate();
    this.tell();
    this.drawPicture();
    for (const chart of this.charts) chart.mark(this.C);
    if (!this.isMoving || began - this.listed > LIST_EVERY) {
      this.listed = began;
      this.list.mark(this.lastListed);
    }
  }

  /** Return the row of the list that was the last up to here. */
  get lastListed() {
    const { cursor, path, data } = this;
    if (!data.isApproximate) return cursor.events - 1;
    return cursor.C >= path.C[path.segments] ? path.segments : cursor.k;
  }

  tell() {
    const { cursor } = this;
    const [title, text] = this.mode.story(this);
    const name = this.path.parameter;
    write(this.find(".zg-c"), `${name} = ${value(cursor.C)}`);
    write(this.find(".zg-value"), `${name === "epsilon" ? "ε" : name === "nu" ? "ν" : name} = ${value(cursor.C)}`);
    write(this.find("h2"), title);
    write(this.find(".zg-say"), text);
    if (!this.isMoving) this.scene.canvas.setAttribute("aria-label", `${name} = ${value(cursor.C)}. ${title}. ${text}`);
    this.stat("support", `${count(cursor.counts[1] + cursor.counts[2])}`);
    this.stat("left", count(cursor.counts[2]));
    const { curve } = this.data;
    if (curve) this.stat("score", number(scoreAt(curve, cursor.C), 4));
  }

  stat(name, text) {
    write(this.find(`[data-stat=${name}]`), text);
  }

  /** Tell what follows from the decision values of all training points. */
  evaluate() {
    const known = (this.known = this.training ? this.evaluated() : null);
    this.explained = known?.explained ?? this.explained;
    const unknown = this.training ? "…" : "–";
    const name = this.path.parameter;
    write(this.find(".zg-gap"), known ? gapInWords(known, name) : this.training ? `Evaluating the gap at this ${name} …` : "");
    if (this.data.mode && this.data.mode !== "classes") {
      this.stat("errors", known ? known.error : unknown);
      this.stat("margin", number(this.data.mode === "tube" ? this.epsilon : this.C));
      return;
    }
    this.stat("errors", known ? count(known.errors) : unknown);
    this.stat("margin", known ? number(known.margin) : unknown);
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
    const f = (this.decisions ??= new Float64Array(values.length));
    for (let i = 0; i < f.length; i++) f[i] = values[i] / cursor.lam;
    const { mode, target } = this.data;
    if (mode === "tube") return { ...this.meanError(), ...certificateOfTube(cursor, values, target, this.epsilon) };
    if (mode === "one-class") return { ...this.shareOut(), ...certificateOfOneClass(cursor, values) };
    return certificate(cursor, values);
  }

  /** Return the half width of the tube. */
  get epsilon() {
    return this.data.epsilon ?? this.C;
  }

  /** Return the mean error, and the share of the targets' variance that is explained. */
  meanError() {
    const { target } = this.data;
    const { weight } = this.path;
    const mean = (of) => target.reduce((sum, t, i) => sum + weight[i] * of(t, this.decisions[i]), 0) / weight.reduce((a, b) => a + b, 0);
    const middle = mean((t) => t);
    const explained = 1 - mean((t, f) => (f - t) ** 2) / mean((t) => (t - middle) ** 2);
    return { error: number(mean((t, f) => Math.abs(f - t))), explained };
  }

  /** Return whether most of what happens on this path has happened, and little has of late. */
  get isSettled() {
    const { cursor, path, samples, setCounts } = this;
    const isLate = cursor.events > (2 / 3) * path.point.length;
    return isLate && isSettledAt(samples, setCounts[0], cursor.C, cursor.counts[2], path.n);
  }

  shareOut() {
    const { weight } = this.path;
    const total = weight.reduce((a, b) => a + b, 0);
    const out = weight.reduce((sum, w, i) => sum + (this.cursor.status[i] === 2 ? w : 0), 0);
    return { error: `${number((100 * out) / total)} %` };
  }

  drawPicture() {
    const { scene, cursor, plane } = this;
    if (!plane) return;
    if (scene.fit()) this.grids = this.place = null;
    if (!scene.width || !scene.height) return;
    scene.clear();
    if (this.way === "decision") {
      const limit = this.placeByDecision();
      scene.axis(scene.width / 2, this.data.mode === "one-class" ? 0 : scene.width / 2 / limit);
    } else if (this.way === "curve") this.drawCurve();
    else if (this.way === "fit") this.drawFit();
    else {
      this.place ??= this.placeInPlane();
      this.grids ??= Grids.of(this.data.kernel, plane, this.path.n, scene.width / scene.height) ?? "none";
      if (this.grids !== "none") {
        const grid = this.grids.values(this.isMoving, (sum, deadline) => sum.follow(cursor, deadline));
        if (!grid.isFinal && !this.isMoving) this.draw();
        scene.field(grid.values, grid.columns, grid.rows, this.data.mode === "one-class" ? largest(grid.values) : cursor.lam);
      }
    }
    scene.points(this.place.x, this.place.y, cursor.side ?? this.path.y, cursor.status);
    if (this.selected !== null) scene.ring(this.place.x[this.selected], this.place.y[this.selected]);
  }

  /** Draw the regression over its only feature, and its tube. */
  drawCurve() {
    const { scene, plane, cursor } = this;
    const [y0, y1] = plane.yRange;
    const unit = scene.height / (y1 - y0);
    this.place ??= this.placeInPlane();
    const values = this.curveSum.of(cursor.dense, cursor.bias);
    const x = plane.xs.map((_, k) => (k * scene.width) / (plane.xs.length - 1));
    scene.tube(x, Float64Array.from(values, (F) => (y1 - F / cursor.lam) * unit), this.epsilon * unit);
  }

  /** Draw predictions over targets: on the diagonal they are the same. */
  drawFit() {
    const { scene, plane, path } = this;
    const [y0, y1] = plane.yRange;
    const f = (this.decisions ??= new Float64Array(path.n));
    const inside = (v, size) => Math.min(Math.max(v, 7), size - 7);
    this.place = {
      x: Float64Array.from(this.data.target, (t) => ((t - y0) / (y1 - y0)) * scene.width),
      y: f.map((v) => inside(((y1 - v) / (y1 - y0)) * scene.height, scene.height)),
    };
    scene.tube([0, scene.width], [scene.height, 0], (this.epsilon * scene.height) / (y1 - y0));
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
    const sizes = (this.sizes ??= new Float64Array(path.n)); // the same memory in every frame
    for (let i = 0; i < path.n; i++) sizes[i] = Math.abs(f[i]);
    const limit = Math.max(1.05 * ranked(sizes, Math.floor(0.98 * (path.n - 1))), 1.4);
    const [y0, y1] = plane.yRange;
    const edge = 7;
    this.place ??= {
      x: new Float64Array(path.n),
      y: Float64Array.from(plane.py, (t) => ((y1 - t) / (y1 - y0)) * scene.height),
    };
    const { x } = this.place;
    for (let i = 0; i < path.n; i++) x[i] = Math.min(Math.max((1 + f[i] / limit) * 0.5 * scene.width, edge), scene.width - edge);
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
    const { path, cursor, mode } = this;
    const [share] = cursor.shares([i]);
    tip.textContent = `point ${path.rows[i]}${mode.nameOf(this, i)}: ${mode.setOf(this, i)}, coefficient ${number(100 * share)} % of its cap`;
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
    const over = { xName: path.parameter, log: path.isLog ? 3 : 1 };
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
      ...over,
    });
    this.sets = new Chart(this.find(".zg-sets-chart div"), {
      y: "points",
      move,
      ...over,
      data: [this.samples, ...this.setCounts],
      series: [
        { colour: "left", width: 2, paths: stepped },
        { colour: "elbow", width: 2, paths: stepped },
        { colour: "right", width: 2, dash: [4, 3], paths: stepped },
      ],
    });
    this.charts = [this.sets, this.coefficients];
    if (data.curve) this.addScore(data.curve, move, over);
  }

  addScore(curve, move, over) {
    this.find(".zg-score").hidden = false;
    this.find(".zg-score-chart").hidden = false;
    const of = this.payload.paths.length > 1 ? ` of all ${count(classesOf(this.payload.paths.length))} classes` : "";
    const name = `${curve.name ?? "score"}${of}`;
    this.find(".zg-score dt").textContent = `${curve.of ?? "held-out"} ${curve.short ?? "score"}${of ? ", all classes" : ""}`;
    this.find(".zg-score-chart h3").firstChild.textContent = `${curve.of === "cross-validated" ? "Cross-validated" : "Held-out"} ${name} `;
    const intervals = this.data.best.map(([a, b]) => (a === b ? value(a) : `${value(a)} to ${value(b)}`));
    const more = intervals.length > 3 ? ` and ${intervals.length - 3} more` : "";
    const { best, bestScore, opening } = this.data;
    const where = best.length === 1 && best[0][0] === best[0][1] ? `at ${over.xName} =` : `for ${over.xName} in`;
    const isAtEnd = best.length && best.at(-1)[1] >= this.path.C[this.path.segments] * (1 - 1e-9);
    this.find(".zg-score-chart small").textContent =
      `best ${number(bestScore, 4)} ${where} ${intervals.slice(0, 3).join(", ")}${more}` +
      `${isAtEnd && this.path.isLog ? `, up to the end of the range: a larger ${over.xName} ${this.endsHard() ? "changes nothing" : "may be better"}` : ""}` +
      `${opening ? `. Opened at ${value(opening.value)}, ${opening.words}.` : ""}`;
    this.charts.push(
      new Chart(this.find(".zg-score-chart div"), {
        y: curve.name ?? "score",
        move,
        ...over,
        bands: this.data.best,
        lines: opening ? [opening.value] : [],
        data: [Array.from(curve.C), curve.isSmooth ? Array.from(curve.score) : [...curve.score, curve.score.at(-1)]],
        series: [{ colour: "accent", width: 2, ...(curve.isSmooth ? {} : { paths: stepped }) }],
      }),
    );
  }

  /** Return whether no point of any pair is at its cap where the range ends: beyond it nothing changes. */
  endsHard() {
    const { paths } = this.payload;
    if (paths.length > MANY_PAIRS || paths.some((data) => data.isApproximate)) return false;
    return paths.map(pathOf).every((path) => {
      const cursor = newCursor(path);
      cursor.moveTo(path.C[path.segments]);
      return isHard(cursor);
    });
  }

  /** Return the shares of some points at the samples; the sizes of the sets are noted on the way. */
  follow(points) {
    const cursor = newCursor(this.path);
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
      colour: path.y[i] > 0 ? "positive-line" : "negative",
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
        ? `the ${chosen.length} points that ${path.sets ? "move" : "are on the margin"} most`
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
      Float64Array.from(this.data.isApproximate ? path.C : path.eventC, (C) => this.onSlider(C)),
      (this.data.best ?? []).map((ends) => ends.map((C) => this.onSlider(C))),
      position.low,
      position.high,
      this.colours,
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

const pathOf = (data) => (data.lines ? new LinePath(data.lines) : new Path(data.path));

const newCursor = (path) => (path instanceof LinePath ? new LineCursor(path) : new Cursor(path));

function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
