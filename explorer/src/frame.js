// What both pages have: a root with its theme, a slider that plays, and keys.

const PLAY_SECONDS = 14; // from one end to the other
const MOON = "☾";
const SUN = "☀";

/** Build the root, with a title and a switch between light and dark. */
export function makeRoot(place, title, subtitle) {
  const root = document.createElement("div");
  root.className = "zg-root";
  root.tabIndex = -1;
  root.innerHTML = `
    <header class="zg-head">
      <div><h1></h1><p class="zg-sub"></p></div>
      <div class="zg-tools"><button type="button" class="zg-button zg-theme" aria-label="light or dark"></button></div>
    </header>
    <main class="zg-main"></main>
    <footer class="zg-bar">
      <button type="button" class="zg-button zg-play" aria-label="play" title="play (space)">▶</button>
      <div class="zg-slide"><input type="range" step="any"><canvas class="zg-rug" aria-hidden="true"></canvas></div>
      <output class="zg-value"></output>
    </footer>`;
  root.querySelector("h1").textContent = title;
  root.querySelector(".zg-sub").textContent = subtitle;
  place.append(root);
  return root;
}

/** Follow the reader's theme until it is switched; call `changed` whenever it is another. */
export function followTheme(root, changed) {
  const query = window.matchMedia("(prefers-color-scheme: dark)");
  const button = root.querySelector(".zg-theme");
  const set = (isDark) => {
    root.dataset.theme = isDark ? "dark" : "light";
    button.textContent = isDark ? SUN : MOON;
    changed();
  };
  const notebook = document.body.dataset.jpThemeLight; // JupyterLab has a theme of its own
  query.addEventListener("change", (event) => set(event.matches));
  button.addEventListener("click", () => set(root.dataset.theme !== "dark"));
  set(notebook ? notebook === "false" : query.matches);
}

/** A position between two ends, on a slider, which plays; `moved` is called whenever it is another. */
export class Position {
  constructor(root, low, high, moved) {
    Object.assign(this, { low, high, moved, value: low, playing: false });
    this.slider = root.querySelector("input[type=range]");
    Object.assign(this.slider, { min: low, max: high });
    this.slider.value = low; // a slider begins in its middle, or where the range before it has left it
    this.button = root.querySelector(".zg-play");
    this.slider.addEventListener("input", () => this.set(Number(this.slider.value)));
    this.slider.addEventListener("pointerdown", () => this.pause());
    this.button.addEventListener("click", () => (this.playing ? this.pause() : this.play()));
  }

  set(value, { quiet = false } = {}) {
    this.value = Math.min(Math.max(value, this.low), this.high);
    this.slider.value = this.value;
    if (!quiet) this.moved();
  }

  play() {
    if (this.playing) return;
    if (this.value >= this.high) this.set(this.low);
    this.playing = true;
    this.show();
    let last = null;
    const next = (time) => {
      if (!this.playing) return;
      const passed = last === null ? 0 : Math.min(time - last, 100) / 1000;
      last = time;
      this.set(this.value + (passed * (this.high - this.low)) / PLAY_SECONDS);
      if (this.value >= this.high) this.pause();
      else requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
  }

  pause() {
    this.playing = false;
    this.show();
  }

  show() {
    this.button.textContent = this.playing ? "❚❚" : "▶";
    this.button.setAttribute("aria-label", this.playing ? "pause" : "play");
  }
}

/** Arrows go to the next event, with Shift a hundredth of the way; space plays. */
export function listenToKeys(root, target, position, step) {
  const actions = {
    " ": () => (position.playing ? position.pause() : position.play()),
    Home: () => position.set(position.low),
    End: () => position.set(position.high),
    ArrowRight: (event) => (event.shiftKey ? position.set(position.value + (position.high - position.low) / 100) : step(1)),
    ArrowLeft: (event) => (event.shiftKey ? position.set(position.value - (position.high - position.low) / 100) : step(-1)),
  };
  actions.ArrowUp = actions.ArrowRight;
  actions.ArrowDown = actions.ArrowLeft;
  const listen = (event) => {
    const isField = event.target.closest?.("select, input:not([type=range]), textarea");
    const isButton = event.key === " " && event.target.closest?.("button");
    const isElsewhere = target === document && event.target !== document.body && !root.contains(event.target);
    if (!actions[event.key] || isField || isButton || isElsewhere || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    if (event.key.startsWith("Arrow")) position.pause();
    actions[event.key](event);
  };
  target.addEventListener("keydown", listen);
  return () => target.removeEventListener("keydown", listen);
}

/** Draw how many events there are at each place of the slider, and the best intervals behind them. */
export function drawRug(canvas, values, best, low, high, { faint, band }) {
  const ratio = window.devicePixelRatio || 1;
  const width = Math.max(Math.round(canvas.clientWidth * ratio), 1);
  const height = Math.max(Math.round(canvas.clientHeight * ratio), 1);
  Object.assign(canvas, { width, height });
  const bins = new Float64Array(Math.ceil(width / (2 * ratio)));
  for (const v of values) bins[Math.min(Math.floor(((v - low) / (high - low)) * bins.length), bins.length - 1)]++;
  const most = bins.reduce((a, b) => Math.max(a, b), 1);
  const context = canvas.getContext("2d");
  const at = (v) => ((v - low) / (high - low)) * width;
  context.fillStyle = band;
  for (const [from, to] of best) context.fillRect(at(from), 0, Math.max(at(to) - at(from), 2 * ratio), height);
  context.fillStyle = faint;
  bins.forEach((k, bin) => {
    const size = k ? Math.max((height * k) / most, ratio) : 0;
    context.fillRect((bin * width) / bins.length, height - size, width / bins.length - 0.4 * ratio, size);
  });
}
