// What a page says of classes, of a regression and of one class.

import { classesAt, count, number, setName, some, story } from "./words.js";

const PRICE = "C is the price of an error";
const FLAT = 0.3; // of the targets' variance: a regression that explains less is flat
const CLOSE = 0.7; // and one that explains more follows them

const classes = {
  lead: () => PRICE,
  stats: [
    ["support", "support vectors"],
    ["left", "margin errors"],
    ["errors", "wrong side"],
    ["margin", "half margin 1/‖w‖"],
  ],
  legend: [
    [1, "on the margin", "holds the boundary"],
    [2, "inside the margin", "pays for it, at the cap C"],
    [0, "outside", "no influence"],
  ],
  sides: (data) => data.labels,
  story,
  setOf: (view, i) => setName(view.cursor.status[i]),
  nameOf: (view, i) => `, ${view.data.labels[view.path.y[i] > 0 ? 1 : 0]}`,
};

// Of an approximate path nobody knows which points are exactly on the margin, nor where they change sets.
const approximate = {
  ...classes,
  stats: [["support", "support vectors"], ["left", "at the cap C"], ...classes.stats.slice(2)],
  legend: [
    [1, "between the bounds", "coefficient moves"],
    [2, "at the cap", "coefficient C"],
    [0, "at zero", "no influence here"],
  ],
  story(view) {
    const [zero, between, cap] = view.cursor.counts;
    const classes = classesAt(view.cursor, view.data.labels);
    const share = Math.max(...classes.map((one) => one.capped / one.size));
    const title = share >= 0.6 ? "Small C: errors are cheap" : share >= 0.1 ? "Medium C: a compromise" : "Large C: errors are expensive";
    return [
      title,
      `${some(cap, "coefficient is", "coefficients are")} at the cap C, ${count(between)} between the bounds, ${count(zero)} at zero, ` +
        `in an approximate solution: the exact one may have others.`,
    ];
  },
  setOf: (view, i) => ["at zero", "between the bounds", "at the cap"][view.cursor.status[i]],
};

const byCost = (it) => [
  [`Small C: a flat ${it}`, `Errors are cheap, so the ${it} stays near a constant.`],
  ["Medium C: the outline", `Errors cost something, and the ${it} follows the points in outline.`],
  [`Large C: the ${it} follows`, `Errors are expensive, so the ${it} goes after the points.`],
];
const byWidth = (it) => [
  ["A narrow tube", "Hardly any error is free: most points have a say."],
  ["A tube of medium width", "Small errors are free, larger ones cost."],
  ["A wide tube", `Most errors are free: few points have a say, and the ${it} is simple.`],
];

const rankOf = (outside) => (outside > 0.6 ? 0 : outside > 0.25 ? 1 : 2);

// A narrow tube leaves many points outside at any C: whether a model is flat is seen by what it explains of the targets.
const rankOfFit = (outside, explained) =>
  explained < FLAT ? 0 : outside <= 0.25 || (outside <= 0.6 && explained >= CLOSE) ? 2 : 1;

/** Return what a regression is called. */
const nounOf = ({ features, kernel }) => (features?.d !== 1 ? "model" : kernel.name === "linear" ? "line" : "curve");

const tube = {
  lead: (parameter) => (parameter === "C" ? PRICE : "epsilon is the error that costs nothing"),
  stats: [
    ["support", "support vectors"],
    ["left", "outside the tube"],
    ["errors", "mean |error|"],
    ["margin", "tube ± epsilon"],
  ],
  legend: [
    [1, "on the edge", "of the tube"],
    [2, "outside the tube", "at the cap C"],
    [0, "inside", "no influence"],
  ],
  sides: (data, way) =>
    way === "fit"
      ? ["inside, or target below its prediction", "target above its prediction"]
      : ["inside, or below the curve", "above the curve"],
  story(view) {
    const { counts } = view.cursor;
    const [inside, edge, outside] = counts;
    const n = view.path.n;
    const facts =
      `${some(inside, "point is", "points are")} inside the tube and could be left out, ` +
      `${count(edge)} on its edge, ${count(outside)} outside.`;
    if (inside + edge === n) return ["The tube holds every point", `No error costs anything. ${facts}`];
    if (inside === 0 && view.epsilon === 0) return ["No tube", `Every error costs. ${count(edge)} of ${count(n)} points are met exactly.`];
    const share = outside / n;
    if (view.path.parameter === "C" && share > 0.25 && view.isSettled)
      return ["A larger C changes little here", `Most changes are behind, and still many errors cost something. ${facts}`];
    const isOverC = view.path.parameter === "C";
    const rank = isOverC && Number.isFinite(view.explained) ? rankOfFit(share, view.explained) : rankOf(share);
    const [title, why] = (isOverC ? byCost : byWidth)(nounOf(view.data))[rank];
    return [title, `${why} ${facts}`];
  },
  setOf: (view, i) => view.path.sets[view.cursor.set[i]],
  nameOf: (view, i) => `, target ${number(view.data.target[i], 4)}`,
};

const oneClass = {
  lead: () => "nu is the share of points that may be left outside",
  stats: [
    ["support", "support vectors"],
    ["left", "outside"],
    ["errors", "share outside"],
    ["margin", "nu"],
  ],
  legend: [
    [1, "on the boundary", "holds it"],
    [2, "outside", "at the cap"],
    [0, "inside", "no influence"],
  ],
  marks: ["", ""],
  sides: () => ["left out", "taken for normal"],
  story(view) {
    const [inside, edge, outside] = view.cursor.counts;
    const nu = view.C;
    const title = nu < 0.1 ? "Small nu: nearly everything is normal" : nu < 0.5 ? "Medium nu: the bulk" : "Large nu: the core only";
    return [
      title,
      `At most ${number(100 * nu)} % of the weight may be outside: ${some(outside, "point is", "points are")}, ` +
        `${count(edge)} on the boundary, ${count(inside)} inside without influence.`,
    ];
  },
  setOf: (view, i) => view.path.sets[view.cursor.set[i]],
  nameOf: () => "",
};

export const MODES = { classes, approximate, tube, "one-class": oneClass };

const MOVES = {
  tube: ["comes inside: no influence", "reaches the edge", "goes outside the tube"],
  "one-class": ["comes inside: no influence", "reaches the boundary", "goes outside"],
};

/** Say what happens to a point that comes to mean something else. */
export const moveWords = (mode, target) => MOVES[mode]?.[target];
