// Puts the page together, and again when the theme or the size changes.

const LEVELS = {good: "good", cause: "cause", hint: "hint", caveat: "caution"};

function fillSummary() {
  model.findings.forEach((f, i) => {
    if (i === 0 && !f.text && !f.advice) return;
    const box = element("div", {className: "finding " + f.level + (i === 0 ? " first" : "")});
    if (i > 0) box.append(element("span", {className: "level"}, LEVELS[f.level]));
    if (i > 0) box.append(element("h3", {}, f.title));
    if (f.text) box.append(element("p", {}, f.text));
    if (f.advice) box.append(element("p", {className: "advice"}, f.advice));
    byId("summary").append(box);
  });
  byId("headline").textContent = model.findings[0].title;
  byId("command").textContent = model.run.command || model.file;
  const about = [model.file];
  if (model.run.policy) about.push("policy " + model.run.policy);
  if (model.run.hosts > 1) about.push(model.run.hosts + " hosts");
  if (hasTrace)
    about.push(
        formatCount(model.events) + " events",
        formatCount(model.threads) + " threads that were separated from their parents");
  if (model.run.version) about.push("godwit " + model.run.version);
  byId("about").textContent = about.join(" · ");
}

function draw() {
  if (hasTrace) {
    drawTime();
    drawMatrix();
    drawMoves();
  }
  if (model.idle.length > 0) drawIdle();
  if (model.bounds.t1 > 0) drawBounds();
  drawHistograms();
}

function start() {
  fillSummary();
  for (const section of document.querySelectorAll(".of-trace")) section.hidden = !hasTrace;
  byId("missing-section").hidden = hasTrace;
  byId("idle-section").hidden = model.idle.length === 0;
  byId("bounds-section").hidden = !(model.bounds.t1 > 0);
  byId("histograms-section").hidden = model.histograms.length === 0;
  if (model.idle.length > 0) fillIdle();
  if (hasTrace) {
    startTime();
    buildMatrix();
    buildMoves();
    fillPlaces();
    fillStays();
  }
  if (model.bounds.t1 > 0) fillBoundsText();
  buildHistograms();
  fillCounters();
  listContents();
  keepDrawn(draw, () => {
    if (!hasTrace) return;
    fillActivity();
    drawMoves();
  });
  // For scripts that drive the page (tests/report/browser_test.py).
  window.godwitReport = {view, setView, painted: () => painted, model, lines, mark};
  document.documentElement.dataset.ready = "yes";
}
start();
