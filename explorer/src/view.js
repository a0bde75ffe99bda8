// What both pages do: hold a root and a position, draw once a frame, and know whether things move.

import { followTheme, listenToKeys, makeRoot, Position } from "./frame.js";

const SETTLED = 110; // milliseconds without a move
const KEPT = 600; // frames whose times are kept

/** A view has `render`, `recolour`, `drawAll` and `step`. */
export class View {
  constructor(place, payload, subtitle) {
    this.payload = payload;
    this.frames = []; // milliseconds of the last ones
    this.root = makeRoot(place, payload.title, subtitle);
    this.root.zerogap = this;
  }

  /** Begin to follow theme, size and keys, when everything is built. */
  start() {
    followTheme(this.root, () => this.recolourWithStyle());
    this.observer = new ResizeObserver(() => this.resized());
    this.observer.observe(this.root);
    const target = this.payload.isPage ? document : this.root;
    this.stopKeys = listenToKeys(this.root, target, this, (way) => this.step(way));
  }

  /** Take the colours; in a notebook the style may come later than the script, and then they are taken once more. */
  recolourWithStyle(tries = 200) {
    this.recolour();
    const isThere = getComputedStyle(this.root).getPropertyValue("--zg-ink") !== "";
    clearTimeout(this.waiting);
    if (!isThere && tries) this.waiting = setTimeout(() => this.recolourWithStyle(tries - 1), 50);
  }

  destroy() {
    clearTimeout(this.waiting);
    this.pause();
    this.observer.disconnect();
    this.stopKeys();
    this.root.remove();
  }

  find(selector) {
    return this.root.querySelector(selector);
  }

  // The position.

  /** Put the slider between two ends; a range before it is forgotten. */
  setRange(low, high, label, moved) {
    this.position?.pause();
    for (const selector of ["input[type=range]", ".zg-play"]) {
      const element = this.find(selector);
      element.replaceWith(element.cloneNode(true)); // without its listeners
    }
    this.position = new Position(this.root, low, high, moved);
    this.find("input[type=range]").setAttribute("aria-label", label);
  }

  get playing() {
    return this.position.playing;
  }

  get value() {
    return this.position.value;
  }

  get low() {
    return this.position.low;
  }

  get high() {
    return this.position.high;
  }

  set(value) {
    this.position.set(value);
  }

  play() {
    this.position.play();
  }

  pause() {
    this.position.pause();
  }

  // Drawing.

  /** Note that something has moved; when nothing has for a while, it is drawn once more, with care. */
  stir() {
    this.isMoving = true;
    clearTimeout(this.settling);
    this.settling = setTimeout(() => {
      this.isMoving = false;
      this.draw();
    }, SETTLED);
    this.draw();
  }

  draw() {
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => {
      this.isDue = false;
      const began = performance.now();
      this.render(began);
      if (this.frames.length >= KEPT) this.frames.shift();
      this.frames.push(performance.now() - began);
    });
  }

  resized() {
    const width = this.root.clientWidth;
    if (!this.colours || width === this.width) return;
    this.width = width;
    this.drawAll();
  }
}
