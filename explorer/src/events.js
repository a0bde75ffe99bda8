// The list of events, or of the solutions of an approximate path: all can be scrolled to, those in sight are in the document.

import { moveWords } from "./modes.js";
import { change, value } from "./words.js";

const ROW = 34; // pixels: two lines

class RowList {
  constructor(place, total, row, jump) {
    Object.assign(this, { place, total, row, now: -1 });
    place.innerHTML = `<div class="zg-list-all"></div>`;
    this.all = place.firstElementChild;
    this.all.style.height = `${ROW * total}px`;
    place.addEventListener("scroll", () => this.draw(), { passive: true });
    // Rows are drawn anew while the path plays: what counts is the one that was pressed.
    let pressed = null;
    const rowOf = (event) => event.target.closest("[data-event]")?.dataset.event ?? null;
    place.addEventListener("pointerdown", (event) => (pressed = rowOf(event)));
    place.addEventListener("click", (event) => {
      const chosen = rowOf(event) ?? pressed;
      if (chosen !== null) jump(Number(chosen));
    });
    this.draw();
  }

  /** Show which event was the last; bring it into sight, unless someone is scrolling the list. */
  mark(event, { follow = true } = {}) {
    if (event === this.now) return;
    this.now = event;
    const { place } = this;
    if (follow && !place.matches(":hover")) {
      const top = ROW * Math.max(event, 0);
      if (top < place.scrollTop + ROW || top > place.scrollTop + place.clientHeight - 2 * ROW) {
        place.scrollTop = top - place.clientHeight / 2;
      }
    }
    this.draw();
  }

  draw() {
    const { place, row, total } = this;
    const first = Math.max(Math.floor(place.scrollTop / ROW) - 2, 0);
    const last = Math.min(first + Math.ceil((place.clientHeight || 300) / ROW) + 4, total);
    let html = "";
    for (let e = first; e < last; e++) {
      html +=
        `<button type="button" class="zg-event" data-event="${e}" aria-current="${e === this.now}" style="top:${ROW * e}px">` +
        `${row(e)}</button>`;
    }
    this.all.innerHTML = html;
  }
}

/** Return the list of where points change their sets. */
export function eventList(place, path, jump, mode) {
  const row = (e) => {
    const { [e]: i } = path.point;
    const what = moveWords(mode, path.goal[e]) ?? change(path.origin[e], path.goal[e]);
    return (
      `<span class="zg-event-c">${value(path.eventC[e])}</span>` +
      `<span class="zg-event-move"><i class="zg-dot zg-set-${path.origin[e]}"></i>→<i class="zg-dot zg-set-${path.goal[e]}"></i></span>` +
      `<span class="zg-event-what" title="point ${path.rows[i]} ${what}">point ${path.rows[i]} ${what}</span>`
    );
  };
  return new RowList(place, path.point.length, row, jump);
}

/** Return the list of the solutions between which an approximate path is a straight line. */
export function solutionList(place, path, jump) {
  const row = (k) =>
    `<span class="zg-event-c">${value(path.C[k])}</span><span class="zg-event-what">solution ${k + 1} of ${path.C.length}</span>`;
  return new RowList(place, path.C.length, row, jump);
}
