// The list of events: all of them can be scrolled to, those in sight are in the document.

import { moveWords } from "./modes.js";
import { change, number } from "./words.js";

const ROW = 34; // pixels: two lines

export class EventList {
  constructor(place, path, jump, mode) {
    Object.assign(this, { place, path, jump, mode, now: -1 });
    place.innerHTML = `<div class="zg-list-all"></div>`;
    this.all = place.firstElementChild;
    this.all.style.height = `${ROW * path.point.length}px`;
    place.addEventListener("scroll", () => this.draw(), { passive: true });
    // Rows are drawn anew while the path plays: what counts is the one that was pressed.
    let pressed = null;
    const rowOf = (event) => event.target.closest("[data-event]")?.dataset.event ?? null;
    place.addEventListener("pointerdown", (event) => (pressed = rowOf(event)));
    place.addEventListener("click", (event) => {
      const row = rowOf(event) ?? pressed;
      if (row !== null) this.jump(Number(row));
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
    const { place, path, mode } = this;
    const first = Math.max(Math.floor(place.scrollTop / ROW) - 2, 0);
    const last = Math.min(first + Math.ceil((place.clientHeight || 300) / ROW) + 4, path.point.length);
    let html = "";
    for (let e = first; e < last; e++) {
      const { [e]: i } = path.point;
      const what = moveWords(mode, path.goal[e]) ?? change(path.origin[e], path.goal[e]);
      html +=
        `<button type="button" class="zg-event" data-event="${e}" aria-current="${e === this.now}" style="top:${ROW * e}px">` +
        `<span class="zg-event-c">${number(path.eventC[e], 4)}</span>` +
        `<span class="zg-event-move"><i class="zg-dot zg-set-${path.origin[e]}"></i>→<i class="zg-dot zg-set-${path.goal[e]}"></i></span>` +
        `<span class="zg-event-what" title="point ${path.rows[i]} ${what}">point ${path.rows[i]} ${what}</span></button>`;
    }
    this.all.innerHTML = html;
  }
}
