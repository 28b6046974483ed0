// The charts without a time axis.

// ---- work and span
// ---------------------------------------------------------------------------------------------------

function drawBounds() {
  const b = model.bounds, ideal = b.t1 / b.workers, span = b.span > 0 ? b.span : b.chain;
  const exact = b.span > 0;
  const rows = [["measured TP", b.wall, "busy"], ["T1 / P", ideal, "good"]];
  if (exact)
    rows.push(["T∞", span, "good"], ["T1 / P + T∞", ideal + span, "good"]);
  else if (span > 0)
    rows.push(["longest chain ≥ T∞", span, "unknown"]);
  chartOf("bounds").setOption(
      {
        ...chartStyle(),
        grid: {left: 8, right: 80, top: 6, bottom: 8, containLabel: true},
        xAxis: {
          type: "value",
          min: 0,
          splitNumber: 4,
          ...axisStyle(),
          axisLabel: {color: cssColour("soft"), hideOverlap: true, formatter: formatTime}
        },
        yAxis: {
          type: "category",
          inverse: true,
          data: rows.map(r => r[0]),
          ...axisStyle(),
          axisLabel: {color: cssColour("text")},
          axisTick: {show: false}
        },
        series: [{
          type: "bar",
          barMaxWidth: 24,
          silent: true,
          data: rows.map(r => ({value: r[1], itemStyle: {color: cssColour(r[2])}})),
          label:
              {show: true, position: "right", color: cssColour("text"), formatter: p => formatTime(p.value)}
        }],
      },
      true);
}
function fillBoundsText() {
  const b = model.bounds, list = element("dl");
  const row = (name, value) => list.append(element("dt", {}, name), element("dd", {}, value));
  row("work T1", formatTime(b.t1) + (b.t1_measured ? " (measured)" : " (time that workers had threads)"));
  if (b.span > 0) {
    row("span T∞", formatTime(b.span) + " (measured)");
    row("parallelism", digits(b.t1 / b.span) + " (T1/T∞)");
  } else if (b.chain > 0) {
    row("longest chain", formatTime(b.chain) + " (T∞ is at most that)");
  }
  row("measured TP",
      formatTime(b.wall) +
          (b.run > 0 && hasTrace ? "; the run, with starting workers: " + formatTime(b.run) : ""));
  row("T1/P ÷ TP", formatPercent(b.t1 / b.workers / b.wall));
  if (b.span > 0)
    row("bounds",
        formatTime(Math.max(b.t1 / b.workers, b.span)) + " ≤ TP; a greedy scheduler needs at most " +
            formatTime(b.t1 / b.workers + b.span));
  byId("bounds-text").append(list);
  const p = model.path;
  if (p) {
    const total = p.running + p.stealing + p.ready;
    byId("bounds-text")
        .append(element(
            "p", {},
            "The chain of threads that ended last" + (p.complete ? "" : " (its beginning was not recorded)") +
                ": " + formatTime(p.running) + " running (" + formatPercent(p.running / total) + "), " +
                formatTime(p.stealing) + " being stolen (" + formatCount(p.steals) + " times), " +
                formatTime(p.ready) + " ready but not running (" + formatCount(p.joins) +
                " joins). Only what is on this chain made the run as long as it was."));
  }
  if (!(b.span > 0))
    byId("bounds-text")
        .append(element(
            "p", {className: "note"},
            "Events bound T∞ from above only: what a worker ran in one piece " +
                "may be parallel in itself. GODWIT_SPAN=1 measures T∞ exactly " +
                "(in a run of its own: it slows every spawn)."));
}

// ---- workers' time
// ---------------------------------------------------------------------------------------------------

const idleStates = () => STACK.filter(s => model.idle.some(w => w[s] > 0));

function fillIdle() {
  const shown = idleStates(), slept = model.sleep.some(ns => ns > 0);
  const rows = model.idle.map((ns, w) => {
    const all = ns.reduce((a, b) => a + b, 0) || 1;
    return [
      "worker " + w, ...shown.map(s => formatTime(ns[s]) + " (" + formatPercent(ns[s] / all) + ")"),
      ...(slept ? [formatTime(model.sleep[w])] : [])
    ];
  });
  const names = ["", ...shown.map(s => STATE_NAMES[s]), ...(slept ? ["asleep, of the idle time"] : [])];
  showNumbers("idle-numbers", names, rows, rows.length <= 8);
}
/// A bar for each worker.
function drawIdle() {
  const workers = model.idle.length, shown = idleStates();
  const total = w => model.idle[w].reduce((a, b) => a + b, 0) || 1;
  byId("idle-legend").replaceChildren(...shown.map(stateSwatch));
  byId("idle").style.height = 40 + workers * Math.max(3, Math.min(30, 700 / workers)) + "px";
  chartOf("idle").resize();
  chartOf("idle").setOption(
      {
        ...chartStyle(),
        grid: {left: 8, right: 30, top: 4, bottom: 8, containLabel: true},
        tooltip: {
          trigger: "axis",
          axisPointer: {type: "shadow"},
          ...tooltipStyle(),
          formatter: items => {
            const w = items[0].dataIndex;
            return "<b>worker " + w + "</b>" +
                shown
                    .map(s => "<br>" + STATE_NAMES[s] + ": " + formatTime(model.idle[w][s]) + " (" +
                             formatPercent(model.idle[w][s] / total(w)) + ")")
                    .join("");
          }
        },
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
          data: model.idle.map((_, w) => workerName(w)),
          ...axisStyle(),
          axisTick: {show: false}
        },
        series: shown.map(s => ({
                            name: STATE_NAMES[s],
                            type: "bar",
                            stack: "time",
                            itemStyle: {color: stateFill(STATES[s])},
                            barMaxWidth: 22,
                            barCategoryGap: workers > 40 ? "8%" : "25%",
                            data: model.idle.map((ns, w) => 100 * ns[s] / total(w)),
                          })),
      },
      true);
}

// ---- histograms
// ------------------------------------------------------------------------------------------------------

const FEW_SAMPLES = 20;
/// Few samples are numbers, and so is one bar; a chart has more to say.
const inWords = h => h.count <= FEW_SAMPLES || h.bins.filter(b => b[2] > 0).length < 2;
/// The samples of a histogram, or where only its bins are known, about: each as the middle of its bin.
function samples(h) {
  const format = formatBy(h.unit);
  if (h.samples?.length > 0) return h.samples.map(format).join(", ");
  const texts = h.bins.filter(b => b[2] > 0).map(([low, high, n]) => {
    const middle = Math.min(low === 0 ? high : Math.sqrt(low * high), h.max ?? Infinity);
    return format(Number(middle.toPrecision(2))) + (n > 1 ? " (" + formatCount(n) + " times)" : "");
  });
  return (h.count === 1 ? "about " : "each about ") + texts.join(", ");
}
function buildHistograms() {
  for (const h of [...model.histograms].sort((a, b) => inWords(a) - inWords(b))) {
    const format = formatBy(h.unit);
    let text = formatCount(h.count);
    if (inWords(h))
      text += ": " + samples(h);
    else if (h.median !== undefined)
      text += ": median " + format(h.median) + ", mean " + format(h.mean) + ", 99 % below " + format(h.p99) +
          ", most " + format(h.max);
    const box = element(
        "div", {className: "histogram"}, element("h3", {}, h.title), element("p", {}, h.note),
        element("p", {}, text));
    if (!inWords(h))
      box.append(element("div", {
        id: "histogram-" + h.id,
        className: "chart",
        role: "img",
        "aria-label": h.title + ": " + text
      }));
    byId("histograms").append(box);
  }
  byId("histograms-note").hidden = model.histograms.every(inWords);
}
function drawHistograms() {
  for (const h of model.histograms) {
    if (inWords(h)) continue;
    const format = formatBy(h.unit), most = Math.max(...h.bins.map(b => b[2]));
    const base = h.unit === "bytes" ? 4 : 10;
    // Whole powers at both ends, so that the axis has at least two numbers.
    const power = (v, round) =>
        Math.pow(base, round(Math.log(v) / Math.log(base) + (round === Math.floor ? 1e-9 : -1e-9)));
    const low = power(Math.max(1, h.bins[0][0]), Math.floor),
          high = Math.max(low * base, power(h.bins[h.bins.length - 1][1], Math.ceil));
    chartOf("histogram-" + h.id)
        .setOption(
            {
              ...chartStyle(),
              grid: {left: 56, right: 18, top: 10, bottom: 26},
              tooltip: {
                ...tooltipStyle(),
                formatter: p => format(h.bins[p.dataIndex][0]) + " … " + format(h.bins[p.dataIndex][1]) +
                    "<br><b>" + formatCount(h.bins[p.dataIndex][2]) + "</b> (" +
                    formatPercent(h.bins[p.dataIndex][2] / h.count) + ")"
              },
              xAxis: {
                type: "log",
                logBase: base,
                min: low,
                max: high,
                ...axisStyle(),
                splitLine: {show: false},
                splitNumber: 6,
                axisLabel: {color: cssColour("soft"), hideOverlap: true, formatter: format}
              },
              yAxis: {
                type: "log",
                min: 0.5,
                max: Math.pow(10, Math.ceil(Math.log10(most + 1))),
                ...axisStyle(),
                splitNumber: 4,
                axisLabel: {
                  color: cssColour("soft"),
                  formatter: v => v < 1 ? "" :
                      v >= 1e6          ? v / 1e6 + " M" :
                      v >= 1e3          ? v / 1e3 + " k" :
                                          String(v)
                }
              },
              series:
                  [{
                    type: "custom",
                    data: h.bins.map(b => [Math.max(b[0], 1), Math.max(b[1], 1.2), b[2]]),
                    encode: {x: [0, 1], y: 2},
                    clip: true,
                    renderItem: (params, api) => {
                      if (api.value(2) <= 0) return null;
                      const a = api.coord([api.value(0), api.value(2)]), b = api.coord([api.value(1), 0.5]);
                      return {
                        type: "rect",
                        shape: {
                          x: a[0] + 0.5,
                          y: a[1],
                          width: Math.max(1, b[0] - a[0] - 1),
                          height: b[1] - a[1]
                        },
                        style: {fill: cssColour("busy")}
                      };
                    }
                  }],
            },
            true);
  }
}

// ---- who took from whom
// ----------------------------------------------------------------------------------------------

const MATRIX = [
  ["steals", "number of steals", 2, formatCount], ["stolen bytes", "bytes of stack", 3, formatBytes],
  ["resumed threads", "suspended threads taken", 4, formatCount]
];
const SMALL_MATRIX = 10;  // rows: more are a chart, with the largest numbers beside it
let matrixShown = 0;
const matrixName = i => {
  const m = model.matrix, last = Math.min((i + 1) * m.group, model.hosts.length) - 1;
  return m.group === 1 ? String(i) : i * m.group + "–" + last;
};
function buildMatrix() {
  byId("matrix-section").hidden = model.hosts.length < 2;
  const shown = MATRIX.map((_, i) => i).filter(i => model.matrix.cells.some(c => c[MATRIX[i][2]] > 0));
  byId("matrix-none").hidden = shown.length > 0;
  byId("matrix").hidden = shown.length === 0 || model.matrix.size <= SMALL_MATRIX;
  byId("matrix-choice").hidden = shown.length < 2;
  if (shown.length === 0) return;
  matrixShown = shown[0];
  for (const i of shown)
    byId("matrix-choice")
        .append(element(
            "button", {
              id: "matrix-" + i,
              onclick: () => {
                matrixShown = i;
                drawMatrix();
              }
            },
            MATRIX[i][0]));
}
/// All pairs, or those with most.
function fillMatrixTable() {
  const m = model.matrix, [, what, column, format] = MATRIX[matrixShown];
  byId("matrix-table").replaceChildren();
  if (m.size <= SMALL_MATRIX) {
    const all = Array.from({length: m.size}, (_, i) => i);
    byId("matrix-table").append(headRow([what + ", by", ...all.map(from => "from " + matrixName(from))]));
    for (const by of all) {
      const found = from => m.cells.find(c => c[0] === from && c[1] === by)?.[column] ?? 0;
      byId("matrix-table").append(element(
          "tr", {}, cell("worker " + by, false),
          ...all.map(from => cell(from === by && found(from) === 0 ? "–" : format(found(from)), true))));
    }
    return;
  }
  byId("matrix-table").append(headRow(["most: taken by worker", "from worker", what]));
  for (const c of [...m.cells].sort((a, b) => b[column] - a[column]).slice(0, 12))
    byId("matrix-table").append(element(
        "tr", {}, cell(matrixName(c[1]), false), cell(matrixName(c[0]), true), cell(format(c[column]), true)));
}
function drawMatrix() {
  for (const button of byId("matrix-choice").children)
    button.setAttribute("aria-pressed", String(button.id === "matrix-" + matrixShown));
  const m = model.matrix, [, what, column, format] = MATRIX[matrixShown];
  if (m.cells.length === 0) return;
  fillMatrixTable();
  if (m.size <= SMALL_MATRIX) return;
  const names = Array.from({length: m.size}, (_, i) => matrixName(i));
  byId("matrix").setAttribute("aria-label", "By taker and owner: " + what + ". The table has the most of them.");
  const cells = m.cells.filter(c => c[column] > 0);
  const most = Math.max(1, ...cells.map(c => c[column]));
  const least = Math.min(most, ...cells.map(c => c[column]));
  const shade =
      most / Math.max(1, least) > 30 ? v => Math.log10(1 + v) : v => v;  // colours by size, or by its order
  const axis =
      {type: "category", data: names, ...axisStyle(), splitArea: {show: false}, axisTick: {show: false}};
  chartOf("matrix").setOption(
      {
        ...chartStyle(),
        grid: {left: 70, right: 110, top: 10, bottom: 52},
        tooltip: {
          ...tooltipStyle(),
          formatter: p => "worker " + names[p.value[1]] + " took from worker " + names[p.value[0]] +
              ":<br><b>" + format(p.value[3]) + "</b> " + what
        },
        xAxis: {...axis, name: "from worker", nameLocation: "middle", nameGap: 32},
        yAxis: {...axis, inverse: true, name: "taken by worker", nameLocation: "middle", nameGap: 46},
        visualMap: {
          min: 0,
          max: shade(most),
          calculable: false,
          right: 0,
          top: "middle",
          itemHeight: 200,
          dimension: 2,
          text: [format(most), "0"],
          textStyle: {color: cssColour("soft")},
          inRange: {color: ["heat0", "heat1", "heat2", "heat3"].map(cssColour)}
        },
        series: [{
          type: "heatmap",
          data: cells.map(c => [c[0], c[1], shade(c[column]), c[column]]),
          itemStyle: {borderColor: cssColour("card"), borderWidth: m.size > 32 ? 0 : 1}
        }],
      },
      true);
}
