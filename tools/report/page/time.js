// The two charts over time and their common zoom. ECharts does axes, sliders and zooming; the time line
// itself is one picture per redraw, painted here column by column: the work depends on the width, not on the
// number of events.

const view = {
  from: 0,
  to: 1
};  // what both charts show, in ns
const whole = {
  from: 0,
  to: 1
};
let activityChart = null, timelineChart = null, redraw = 0;

function setView(from, to) {
  const least = Math.min(100, whole.to - whole.from);
  const width = Math.min(Math.max(to - from, least), whole.to - whole.from);
  from = Math.min(Math.max(from, whole.from), whole.to - width);
  if (from === view.from && from + width === view.to) return;
  view.from = from;
  view.to = from + width;
  for (const chart of [activityChart, timelineChart])
    chart.dispatchAction({type: "dataZoom", dataZoomIndex: 0, startValue: view.from, endValue: view.to});
  if (redraw === 0)
    redraw = requestAnimationFrame(() => {
      redraw = 0;
      fillActivity();
    });
  showRange();
}
function zoomBy(factor, centre = (view.from + view.to) / 2) {
  setView(centre - (centre - view.from) * factor, centre + (view.to - centre) * factor);
}
function moveBy(part) {
  const by = (view.to - view.from) * part;
  setView(view.from + by, view.to + by);
}
function showRange() {
  const width = view.to - view.from;
  byId("range").textContent = formatMoment(view.from, width / 100, whole.to) + " … " +
      formatMoment(view.to, width / 100, whole.to) + " (" + formatTime(width) + ")";
}
function onDataZoom(chart) {
  return () => {
    const zoom = chart.getOption().dataZoom[0];
    if (Math.abs(zoom.startValue - view.from) + Math.abs(zoom.endValue - view.to) <
        1e-4 * (view.to - view.from))
      return;
    setView(zoom.startValue, zoom.endValue);
  };
}

function timeAxis(extra) {
  return {
    type: "value",
    min: whole.from,
    max: whole.to,
    axisLine: {lineStyle: {color: cssColour("line")}},
    axisLabel: {
      color: cssColour("soft"),
      hideOverlap: true,
      showMinLabel: true,
      showMaxLabel: false,
      formatter: v => formatMoment(v, (view.to - view.from) / 8, whole.to)
    },
    splitLine: {show: false},
    axisTick: {show: true},
    ...extra,
  };
}
function zoomOptions(slider) {
  const inside = {
    type: "inside",
    xAxisIndex: 0,
    filterMode: "none",
    zoomOnMouseWheel: "ctrl",
    moveOnMouseMove: true,
    moveOnMouseWheel: false,
    preventDefaultMouseMove: false,
    minValueSpan: 100,
    startValue: view.from,
    endValue: view.to,
    throttle: 30
  };
  return slider ?
      [
        inside, {
          type: "slider",
          xAxisIndex: 0,
          filterMode: "none",
          bottom: 4,
          height: 22,
          startValue: view.from,
          endValue: view.to,
          minValueSpan: 100,
          showDetail: false,
          brushSelect: false,
          borderColor: cssColour("line"),
          fillerColor: cssColour("accent") + "33",
          backgroundColor: "transparent",
          showDataShadow: false,
          handleStyle: {color: cssColour("card"), borderColor: cssColour("accent")},
          moveHandleStyle: {color: cssColour("soft")}
        }
      ] :
      [inside];
}

/// The states that the time lines have. When threads waited for single values, or the operating system kept
/// them, is not known.
const present = () => STACK.filter(
    s => ![ACCESS, BLOCKED, KERNEL].includes(s) && (model.idle.some(w => w[s] > 0) || (s === UNKNOWN && model.dropped > 0)));

const everReady = () => model.ready_most > 0;

function activitySeries() {
  const box = byId("activity").clientWidth;
  const columns = Math.max(100, Math.min(800, Math.floor(box / 2)));
  const data = activity(view.from, view.to, columns);
  // [time, height, value]: stacked here and painted from the highest down, each over the one before.
  const points = (heights, values) => {
    const list = [];
    for (let c = 0; c < columns; ++c) list.push([view.from + c * data.width, heights[c], values[c]]);
    list.push([view.to, heights[columns - 1], values[columns - 1]]);
    return list;
  };
  const heights = new Float64Array(columns);
  const series = present()
                     .map(s => {
                       for (let c = 0; c < columns; ++c) heights[c] += data.states[s][c];
                       return {
                         id: STATES[s],
                         name: STATE_NAMES[s],
                         type: "line",
                         step: "end",
                         symbol: "none",
                         animation: false,
                         lineStyle: {width: 0},
                         areaStyle: {color: stateFill(STATES[s]), opacity: 1},
                         itemStyle: {color: stateFill(STATES[s])},
                         data: points(heights, data.states[s]),
                         emphasis: {disabled: true},
                       };
                     })
                     .reverse();
  if (!everReady()) return series;
  series.push({
    id: "ready",
    name: "ready, not running",
    type: "line",
    yAxisIndex: 1,
    step: "end",
    symbol: "none",
    animation: false,
    lineStyle: {width: 1.8, color: cssColour("ready")},
    itemStyle: {color: cssColour("ready")},
    z: 5,
    data: points(data.ready, data.ready),
    emphasis: {disabled: true},
  });
  return series;
}
function fillActivity() { activityChart.setOption({series: activitySeries()}, {lazyUpdate: false}); }

function activityTooltip(items) {
  if (items.length === 0) return "";
  let html = "<b>" + formatMoment(items[0].value[0], (view.to - view.from) / 1000, whole.to) + "</b>";
  const order = [...present().map(s => STATES[s]), "ready"];
  items.sort((a, b) => order.indexOf(a.seriesId) - order.indexOf(b.seriesId));
  for (const item of items) html += "<br>" + item.marker + item.seriesName + ": " + digits(item.value[2]);
  return html;
}
function drawActivity() {
  byId("activity-legend")
      .replaceChildren(
          ...present().map(stateSwatch),
          ...(everReady() ? [swatch("ready, not running (line)", cssColour("ready"))] : []));
  const axis = {
    axisLabel: {color: cssColour("soft")},
    nameTextStyle: {color: cssColour("soft")},
    minInterval: 1
  };
  activityChart.setOption(
      {
        ...chartStyle(),
        grid: {left: 64, right: 64, top: 30, bottom: 28},
        tooltip: {
          trigger: "axis",
          formatter: activityTooltip,
          backgroundColor: cssColour("card"),
          borderColor: cssColour("line"),
          textStyle: {color: cssColour("text"), fontSize: 13},
          transitionDuration: 0
        },
        xAxis: timeAxis(),
        yAxis: [
          {
            type: "value",
            name: "workers",
            nameGap: 8,
            min: 0,
            max: lines.length,
            ...axis,
            splitLine: {lineStyle: {color: cssColour("line")}}
          },
          {
            type: "value",
            name: "ready threads",
            show: everReady(),
            nameGap: 8,
            min: 0,
            max: v => Math.max(1, Math.ceil(v.max * 1.05)),
            ...axis,
            splitLine: {show: false}
          }
        ],
        dataZoom: zoomOptions(false),
        series: activitySeries(),
      },
      true);
}

// ---- the time line
// -------------------------------------------------------------------------------------------------

let canvases = [], turn = 0, painted = 0;
const rowHeight = () => Math.max(5, Math.min(34, Math.floor(880 / lines.length)));

/// Heights of a column's states, from below, in rows of pixels.
function columnPixels(share, height, colourAt, put) {
  let sum = 0, y = 0;
  for (const s of STACK) {
    sum += share[s];
    const to = Math.min(height, Math.round(sum * height));
    for (; y < to; ++y) put(y, colourAt(s, y));
  }
}

function paintRow(line, pixels, width, top, height, tiles, shades) {
  const last = stateSums(), now = stateSums(), share = stateSums();
  const perColumn = (view.to - view.from) / width;
  let piece = line.sumsAt(view.from, last), column = 0;
  const put = (y, colour) => {
    pixels[(top + height - 1 - y) * width + column] = colour;
  };
  for (column = 0; column < width; ++column) {
    const first = piece;
    piece = line.sumsAt(view.from + (column + 1) * perColumn, now, piece);
    for (let s = 0; s < STATES.length; ++s) share[s] = (now[s] - last[s]) / perColumn;
    last.set(now);
    // A column inside one thread has the thread's colour; where many meet, the common one.
    let colour = tiles[BUSY][0];
    if (line.kind[first] === BUSY && (piece === first || share[BUSY] > 0.5)) {
      const shown = line.kind[piece] === BUSY && piece === first + 1 ? piece : first;
      if (piece <= first + 2) colour = shades[(line.thread[shown] & 0x7fffffff) % shades.length];
    } else if (line.kind[piece] === BUSY && piece === first + 1) {
      colour = shades[(line.thread[piece] & 0x7fffffff) % shades.length];
    }
    columnPixels(
        share, height, (s, y) => s === BUSY ? colour : tiles[s][(y & 7) * 8 + (column & 7)], put);
  }
}

function paintLabels(context, box, ratio, rows) {
  const scale = box.width / (view.to - view.from);
  context.font = 11 * ratio + "px system-ui, sans-serif";
  const shades = threadColours();
  context.textBaseline = "middle";
  lines.forEach((line, w) => {
    if (line.count === 0) return;
    for (let i = line.pieceAt(view.from), shown = 0; i < line.count && line.begin[i] < view.to && shown < 60;
         ++i) {
      const from = Math.max(line.begin[i], view.from), to = Math.min(line.begin[i + 1], view.to);
      if (line.kind[i] !== BUSY || (to - from) * scale < 64 || line.thread[i] < 0) continue;
      context.fillStyle = inkOn(shades[line.thread[i] % shades.length]);
      context.fillText(
          nameOf(line, i), ((from - view.from) * scale + 5) * ratio, rows[w].middle,
          ((to - from) * scale - 8) * ratio);
      ++shown;
    }
  });
}

function paintPath(context, box, ratio, rows) {
  const scale = box.width * ratio / (view.to - view.from);
  const x = t => (t - view.from) * scale;
  context.strokeStyle = cssColour("path");
  context.lineWidth = 2 * ratio;
  let previous = -1;
  context.beginPath();
  for (const [worker, begin, end] of model.path.pieces) {  // the last first
    if (end < view.from || begin > view.to) {
      previous = worker;
      continue;
    }
    const y = rows[worker].middle;
    if (previous >= 0 && previous !== worker) {
      context.moveTo(x(end), rows[previous].middle);
      context.lineTo(x(end), y);
    }
    context.moveTo(x(begin), y);
    context.lineTo(Math.max(x(end), x(begin) + 1), y);
    previous = worker;
  }
  context.stroke();
}

/// The time line as one canvas of the size of the chart's grid.
function paintTimeline(box) {
  const ratio = Math.min(2, window.devicePixelRatio || 1);
  const width = Math.max(1, Math.round(box.width * ratio)),
        height = Math.max(1, Math.round(box.height * ratio));
  turn = 1 - turn;
  const canvas = canvases[turn] = canvases[turn] || document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  const tiles = STATES.map(stateTile), shades = threadColours().map(pixel);
  const band = height / lines.length, gap = band >= 4 * ratio ? Math.round(Math.max(1, band * 0.12)) : 0;
  const rows = lines.map((line, w) => {
    const top = Math.round(w * band) + (gap >> 1), bottom = Math.round((w + 1) * band) - ((gap + 1) >> 1);
    if (line.count > 0) paintRow(line, pixels, width, top, Math.max(1, bottom - top), tiles, shades);
    return {middle: (top + bottom) / 2};
  });
  context.putImageData(image, 0, 0);
  if (band >= 14 * ratio) paintLabels(context, box, ratio, rows);
  if (byId("show-path").checked) paintPath(context, box, ratio, rows);
  ++painted;
  return canvas;
}

function workerName(w) {
  return model.run.hosts > 1 ? "host " + model.hosts[w] + " · " + w :
                               (model.run.workers <= 24 ? "worker " : "") + w;
}
function drawTimeline() {
  const rows = lines.length;
  byId("legend").replaceChildren(...present().map(stateSwatch));
  byId("timeline").style.height = rows * rowHeight() + 76 + "px";
  timelineChart.resize();
  timelineChart.setOption(
      {
        ...chartStyle(),
        grid: {left: model.run.hosts > 1 ? 88 : 64, right: 64, top: 8, bottom: 62},
        xAxis: timeAxis({position: "bottom"}),
        yAxis: {
          type: "category",
          inverse: true,
          data: lines.map((_, w) => workerName(w)),
          axisTick: {show: false},
          axisLine: {lineStyle: {color: cssColour("line")}},
          axisLabel: {color: cssColour("soft"), fontSize: 12}
        },
        dataZoom: zoomOptions(true),
        series: [{
          type: "custom",
          data: [[0, 0]],
          silent: true,
          animation: false,
          renderItem: params => {
            const box = params.coordSys;
            return {
              type: "image",
              style: {image: paintTimeline(box), x: box.x, y: box.y, width: box.width, height: box.height}
            };
          },
        }],
      },
      true);
}

/// What a busy piece is called.
function nameOf(line, i) {
  return model.names[line.name[i]] ?? "thread " + line.thread[i];
}

function onKey(event) {
  const actions = {
    "+": () => zoomBy(0.5),
    "=": () => zoomBy(0.5),
    "-": () => zoomBy(2),
    "0": () => setView(whole.from, whole.to),
    "ArrowLeft": () => moveBy(-0.25),
    "ArrowRight": () => moveBy(0.25),
    "ArrowUp": () => markWorker(-1),
    "ArrowDown": () => markWorker(1),
    ",": () => markPiece(-1),
    ".": () => markPiece(1),
    "Escape": () => byId("hover").hidden = true
  };
  if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in actions)) return;
  event.preventDefault();
  actions[event.key]();
}

function activityInWords() {
  const sum = s => model.idle.reduce((n, worker) => n + worker[s], 0);
  const all = STACK.reduce((n, s) => n + sum(s), 0) || 1;
  return "Workers over time. On average, of " + lines.length + ": " +
      present().map(s => digits(lines.length * sum(s) / all) + " " + STATE_NAMES[s]).join(", ");
}
function startTime() {
  whole.from = view.from = model.timeline.from;
  whole.to = view.to = Math.max(model.timeline.to, model.timeline.from + 1);
  activityChart = chartOf("activity");
  timelineChart = chartOf("timeline");
  byId("activity").setAttribute("aria-label", activityInWords());
  byId("ready-note").textContent = everReady() ?
      "Line: threads at outstanding joins that could go on and do not (right axis). A line above zero while " +
          "workers are idle is work that nobody picks up." :
      "No thread was ever ready and not running: a line of these is left out.";
  const exact = model.timeline.threshold === 0;
  byId("detail").textContent = exact ?
      "All " + formatCount(model.timeline.pieces) + " pieces are exact." :
      "There are too many events for one page: pieces shorter than " + formatTime(model.timeline.threshold) +
          " are shown together (--from, --to and --page-mib show more).";
  byId("path-label").hidden = model.path.pieces.length === 0;
  if (model.path.cut)
    byId("path-label").append(" (its last " + formatCount(model.path.pieces.length) + " pieces)");
  byId("show-path").addEventListener("change", drawTimeline);
  const buttons = {
    "zoom-in": () => zoomBy(0.5),
    "zoom-out": () => zoomBy(2),
    "move-left": () => moveBy(-0.5),
    "move-right": () => moveBy(0.5),
    "zoom-all": () => setView(whole.from, whole.to)
  };
  for (const [id, action] of Object.entries(buttons)) byId(id).addEventListener("click", action);
  for (const chart of [activityChart, timelineChart]) {
    chart.on("datazoom", onDataZoom(chart));
    chart.getDom().addEventListener("keydown", onKey);
    chart.getZr().on("dblclick", event => {
      if (chart.containPixel({gridIndex: 0}, [event.offsetX, event.offsetY]))
        zoomBy(0.25, chart.convertFromPixel({gridIndex: 0}, [event.offsetX, event.offsetY])[0]);
    });
  }
  timelineChart.getZr().on("mousemove", showHover);
  timelineChart.getZr().on("globalout", () => {
    byId("hover").hidden = true;
  });
  showRange();
}
function drawTime() {
  drawActivity();
  drawTimeline();
}
