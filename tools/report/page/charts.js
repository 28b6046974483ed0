// The charts without a time axis, and the tables.

const charts = new Map();  // by element id
function chartOf(id) {
  if (!charts.has(id)) charts.set(id, echarts.init(byId(id)));
  return charts.get(id);
}
const chartStyle = () => ({animation: false, backgroundColor: "transparent", textStyle: {fontFamily: FONT}});
const tooltipStyle = () => ({
  backgroundColor: cssColour("card"),
  borderColor: cssColour("line"),
  transitionDuration: 0,
  textStyle: {color: cssColour("text"), fontSize: 13}
});
const axisStyle = () => ({
  axisLabel: {color: cssColour("soft"), hideOverlap: true},
  nameTextStyle: {color: cssColour("soft")},
  axisLine: {lineStyle: {color: cssColour("line")}},
  splitLine: {lineStyle: {color: cssColour("line")}}
});

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
        grid: {left: 130, right: 80, top: 6, bottom: 26},
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

function drawIdle() {
  const workers = model.idle.length, order = STACK.filter(s => model.idle.some(w => w[s] > 0));
  const total = w => model.idle[w].reduce((a, b) => a + b, 0) || 1;
  chartOf("idle").setOption(
      {
        ...chartStyle(),
        grid: {left: 54, right: 14, top: 58, bottom: 40},
        legend: {
          type: "scroll",
          top: 0,
          left: 0,
          right: 0,
          textStyle: {color: cssColour("text")},
          itemWidth: 14,
          itemHeight: 10
        },
        tooltip: {
          trigger: "axis",
          axisPointer: {type: "shadow"},
          ...tooltipStyle(),
          formatter: items => {
            const w = items[0].dataIndex;
            let html = "<b>worker " + w + "</b>";
            for (const item of items)
              html += "<br>" + item.marker + item.seriesName + ": " +
                  formatTime(model.idle[w][order[item.seriesIndex]]) + " (" +
                  formatPercent(item.value / 100) + ")";
            if (model.sleep[w] > 0) html += "<br>asleep (of the idle time): " + formatTime(model.sleep[w]);
            return html;
          }
        },
        xAxis: {
          type: "category",
          data: model.idle.map((_, w) => String(w)),
          name: "worker",
          nameLocation: "middle",
          nameGap: 24,
          ...axisStyle(),
          axisTick: {show: false}
        },
        yAxis: {
          type: "value",
          min: 0,
          max: 100,
          ...axisStyle(),
          axisLabel: {color: cssColour("soft"), formatter: "{value} %"}
        },
        series: order.map(s => ({
                            name: STATE_NAMES[s],
                            type: "bar",
                            stack: "time",
                            itemStyle: {color: cssColour(STATES[s])},
                            barMaxWidth: 60,
                            barCategoryGap: workers > 40 ? "8%" : "25%",
                            data: model.idle.map((ns, w) => 100 * ns[s] / total(w)),
                          })),
      },
      true);
}

// ---- histograms
// ------------------------------------------------------------------------------------------------------

function buildHistograms() {
  for (const h of model.histograms) {
    const format = formatBy(h.unit), known = h.median !== undefined;
    const text = h.count === 0 ? "none" :
                                 formatCount(h.count) +
            (known ? ": median " + format(h.median) + ", mean " + format(h.mean) + ", 99 % below " +
                     format(h.p99) + ", most " + format(h.max) :
                     "");
    byId("histograms")
        .append(element(
            "div", {className: "histogram"}, element("h3", {}, h.title), element("p", {}, h.note),
            element("p", {}, text), element("div", {
              id: "histogram-" + h.id,
              className: "chart",
              role: "img",
              hidden: h.count === 0,
              "aria-label": h.title + ": " + text
            })));
  }
}
function drawHistograms() {
  for (const h of model.histograms) {
    if (h.count === 0) continue;
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
let matrixShown = 0;
function buildMatrix() {
  MATRIX.forEach(
      ([name], i) => byId("matrix-choice")
                         .append(element(
                             "button", {
                               id: "matrix-" + i,
                               onclick: () => {
                                 matrixShown = i;
                                 drawMatrix();
                               }
                             },
                             name)));
}
function drawMatrix() {
  MATRIX.forEach((_, i) => byId("matrix-" + i).setAttribute("aria-pressed", String(i === matrixShown)));
  const m = model.matrix, [, what, column, format] = MATRIX[matrixShown];
  const names = Array.from(
      {length: m.size},
      (_, i) => m.group === 1 ? String(i) :
                                i * m.group + "–" + (Math.min((i + 1) * m.group, model.run.workers) - 1));
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
          itemStyle: {borderColor: cssColour("card"), borderWidth: m.size > 32 ? 0 : 1},
          label: {show: m.size <= 10, formatter: p => format(p.value[3])}
        }],
      },
      true);
}

// ---- tables
// ----------------------------------------------------------------------------------------------------------

const cell = (text, number, small) => {
  const td = element("td", {className: number ? "number" : ""}, text);
  if (small) td.append(element("small", {}, small));
  return td;
};
const headRow = names => element(
    "tr", {}, ...names.map((n, i) => element("th", {className: i > 0 ? "number" : "", scope: "col"}, n)));

function fillPlaces() {
  const rows =
      model.places.filter(p => p.count > 0).sort((a, b) => b.idle - a.idle || b.wait - a.wait).slice(0, 20);
  if (rows.length === 0) {
    byId("places").replaceWith(element("p", {}, "No thread waited for another worker's thread, nor for anything else."));
    return;
  }
  byId("places").append(headRow([
    "place", "waits", "workers idle because of it", "threads waited", "of that, ready", "each"
  ]));
  for (const p of rows) {
    const tr = element(
        "tr", {}, cell(p.name, false, p.what || p.function), cell(formatCount(p.count), true),
        cell(formatTime(p.idle), true), cell(formatTime(p.wait), true), cell(formatTime(p.ready), true),
        cell(formatTime(p.wait / p.count), true));
    tr.title = p.line > 0 ? p.file + ":" + p.line : p.file;
    byId("places").append(tr);
  }
}
function fillStays() {
  const rows = model.places.filter(p => p.stays > 0).sort((a, b) => b.stays - a.stays).slice(0, 20);
  byId("stays-section").hidden = rows.length === 0;
  if (rows.length === 0) return;
  byId("stays").append(headRow(["spawned or waited at", "threads that stayed", "by stale words only"]));
  for (const p of rows)
    byId("stays").append(element(
        "tr", {}, cell(p.name, false, p.function), cell(formatCount(p.stays), true),
        cell(formatCount(p.stale), true)));
}
function fillCounters() {
  const of_global = c => /^global_|^far_(gets|puts|atomics)$/.test(c.name);
  const global = model.counters.filter(of_global);
  byId("global-section").hidden = global.length === 0;
  if (global.length !== 0) fillTable("global", global);
  if (model.counters.length === 0) {
    byId("counters").replaceWith(element("p", {}, "The file has no counters."));
    return;
  }
  fillTable("counters", model.counters.filter(c => !of_global(c)));
}
function fillTable(id, counters) {
  const workers = model.run.workers, each = workers <= 8;
  const perWorker =
      each ? Array.from({length: workers}, (_, w) => "worker " + w) : ["least of a worker", "mean", "most"];
  byId(id).append(headRow(["counter", "all", ...perWorker]));
  for (const c of counters) {
    const format = formatBy(c.unit), values = c.values;
    const shown = each ?
        values :
        [Math.min(...values), values.reduce((a, b) => a + b, 0) / values.length, Math.max(...values)];
    byId(id).append(element(
            "tr", {title: c.name}, cell(c.label, false, c.what),
            cell(format(c.total) + (c.maximum ? " (most)" : ""), true),
            ...shown.map(v => cell(format(v), true))));
  }
}
