// The cards of a page of a path.

export const BODY = `
  <section class="zg-card zg-scene">
    <div class="zg-scene-head">
      <label>View <select class="zg-way"></select></label>
      <span class="zg-pick"><select class="zg-a" aria-label="horizontal feature"></select> × <select class="zg-b" aria-label="vertical feature"></select></span>
      <ul class="zg-legend zg-classes"></ul>
    </div>
    <div class="zg-canvas-box">
      <canvas class="zg-picture" role="img"></canvas>
      <span class="zg-name zg-name-x"></span><span class="zg-name zg-name-y"></span>
      <div class="zg-tip" hidden></div>
    </div>
    <ul class="zg-legend zg-sets"></ul>
    <p class="zg-note"></p>
  </section>
  <div class="zg-side">
    <section class="zg-card zg-story">
      <p class="zg-lead"></p>
      <p class="zg-c"></p>
      <p class="zg-approximate" hidden></p>
      <h2></h2>
      <p class="zg-say"></p>
      <dl class="zg-stats">
        <div class="zg-score" hidden><dt>held-out score</dt><dd data-stat="score"></dd></div>
      </dl>
    </section>
    <section class="zg-card zg-proof">
      <h3>Certificate</h3>
      <p class="zg-gap"></p>
      <p class="zg-proved"></p>
    </section>
    <section class="zg-card zg-events">
      <h3><span></span> <small></small></h3>
      <div class="zg-list" tabindex="0"></div>
    </section>
  </div>
  <section class="zg-card zg-chart zg-score-chart" hidden><h3>Held-out score <small></small></h3><div></div></section>
  <section class="zg-card zg-chart zg-sets-chart"><h3>Points in each set</h3><div></div></section>
  <section class="zg-card zg-chart zg-coef-chart"><h3>Coefficients <small></small></h3><div></div></section>`;
