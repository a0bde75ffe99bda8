// A page that zerogap wrote shows itself; in a notebook anywidget calls `render`.

import "./style.css";
import { Explorer } from "./explorer.js";
import { decoded } from "./payload.js";
import { Replay } from "./replay.js";

function show(place, payload, options) {
  return payload.kind === "replay" ? new Replay(place, payload) : new Explorer(place, payload, options);
}

/** Show a widget, whose C is that of the page, both ways. */
function render({ model, el }) {
  let own = null; // what this page has told Python
  const changed = (C) => {
    own = C;
    model.set("C", C);
    model.save_changes();
  };
  const view = show(el, decoded(model.get("payload")), { C: model.get("C"), changed });
  const listen = () => {
    const C = model.get("C");
    if (C !== null && C !== own) view.setC?.(C);
  };
  model.on("change:C", listen);
  return () => {
    model.off("change:C", listen);
    view.destroy();
  };
}

const page = document.getElementById("zerogap-payload");
if (page) {
  const place = document.getElementById("zerogap-page");
  globalThis.zerogap = show(place, { ...decoded(page.textContent), isPage: true }, {});
}

export default { render };
