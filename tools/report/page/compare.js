// The page that compares runs: its data come ready from tools/report/compare_page.cpp.

const model = JSON.parse(byId("model").textContent);

function fillVerdicts() {
  byId("headline").textContent = model.headline;
  byId("about").textContent = [...new Set(model.runs.map(r => r.command))].join(" · ");
  for (const r of model.runs)
    byId("summary").append(element(
        "div", {className: "finding hint"}, element("h3", {}, r.name), element("p", {}, r.verdict)));
}

function fillTables() {
  model.tables.forEach((t, i) => {
    const rows = t.rows.map(
        row => element(
            "tr", {}, cell(row.label, false, row.what),
            ...row.cells.map(([value, beside]) => cell(value, true, beside))));
    const section = element(
        "section", {id: "table-" + i}, element("h2", {}, t.title), element("p", {className: "note"}, t.note),
        element(
            "div", {className: "scroll"},
            element("table", {}, headRow(["", ...model.runs.map(r => r.name)]), ...rows)));
    document.querySelector("main").insertBefore(section, i === 0 ? byId("speed-up-section") : null);
  });
}

function drawSpeedUp() {
  const runs = model.runs, most = Math.max(...runs.map(r => r.workers)), least = runs[0].workers;
  const cpus = Math.max(...runs.map(r => r.cpus > 0 ? r.cpus : most));
  const bound = p => Math.min(p, cpus, model.parallelism > 0 ? model.parallelism : p);
  const bends = [cpus, model.parallelism].filter(p => p > least && p < most).sort((a, b) => a - b);
  const line = (name, colour, type, data, more) => ({
    name,
    type: "line",
    data,
    symbol: "none",
    silent: true,
    itemStyle: {color: cssColour(colour)},
    lineStyle: {color: cssColour(colour), type, width: 2},
    ...more
  });
  // Measured numbers stand at their points, and the lines end in their names: no legend has to be compared.
  const named = (text, lower = 0) =>
      ({endLabel: {show: true, formatter: text, color: cssColour("text"), distance: 6, offset: [0, lower]}});
  const bounds = [
    ...[0, ...bends].map(p => [p, bound(p)]), ...runs.map(r => [r.workers, r.bound])
  ].sort((a, b) => a[0] - b[0]);
  const bounded = runs.at(-1).bound < most * 0.9;
  chartOf("speed-up").setOption(
      {
        ...chartStyle(),
        grid: {left: 52, right: 96, top: 20, bottom: 48},
        xAxis: {
          type: "value",
          name: "workers",
          nameLocation: "middle",
          nameGap: 28,
          min: 0,
          max: most,
          minInterval: 1,
          ...axisStyle()
        },
        yAxis: {type: "value", name: "speed-up", nameLocation: "middle", nameGap: 34, min: 0, ...axisStyle()},
        series: [
          line("all workers", "unknown", "dotted", [[0, 0], [most, most]], named("one for each")),
          ...(bounded ? [line("bound", "good", "dashed", bounds, named("bound", -6))] : []),
          line("measured", "busy", "solid", runs.map(r => [r.workers, r.speed_up]), {
            symbol: "circle",
            symbolSize: 9,
            z: 4,
            label: {
              show: true,
              position: "bottom",
              distance: 8,
              color: cssColour("text"),
              formatter: p => digits(p.value[1])
            },
            ...named("measured", 6)
          })
        ]
      },
      true);
  byId("speed-up").setAttribute(
      "aria-label",
      "Speed-up over workers: " +
          runs.map(r => digits(r.speed_up) + " with " + r.workers + ", of at most " + digits(r.bound)).join("; "));
}

function drawStates() {
  const all = model.runs.map(r => r.states.reduce((sum, ns, s) => sum + (s === UNKNOWN ? 0 : ns), 0) || 1);
  const shown = STACK.filter(s => s !== UNKNOWN && model.runs.some(r => r.states[s] > 0));
  byId("states-legend").replaceChildren(...shown.map(stateSwatch));
  byId("states").style.height = 60 + model.runs.length * 34 + "px";
  chartOf("states").resize();
  chartOf("states").setOption(
      {
        ...chartStyle(),
        grid: {left: 12, right: 30, top: 4, bottom: 28, containLabel: true},
        xAxis: {
          type: "value",
          min: 0,
          max: 100,
          ...axisStyle(),
          axisLabel: {color: cssColour("soft"), formatter: "{value} %"}
        },
        yAxis: {
          type: "category",
          inverse: true,
          data: model.runs.map(r => r.name),
          ...axisStyle(),
          axisTick: {show: false},
          axisLabel: {color: cssColour("text"), width: 150, overflow: "truncate"}
        },
        series: shown.map(s => ({
                            name: STATE_NAMES[s],
                            type: "bar",
                            stack: "time",
                            silent: true,
                            barMaxWidth: 22,
                            itemStyle: {color: stateFill(STATES[s])},
                            data: model.runs.map((r, i) => 100 * r.states[s] / all[i])
                          }))
      },
      true);
}

function start() {
  fillVerdicts();
  fillTables();
  byId("speed-up-section").hidden = !model.scaling;
  listContents();
  keepDrawn(
      () => {
        if (model.scaling) drawSpeedUp();
        drawStates();
      },
      () => {});
  window.godwitReport = {model};  // for scripts that drive the page (tests/report/browser_test.py)
  document.documentElement.dataset.ready = "yes";
}
start();
