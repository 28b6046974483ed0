// Movable memory: the map of its parts and their owners over time, and tables of what moved (model.moves,
// written by page.cpp). Colours and patterns tell hosts apart, shades the workers of one host; on one host, workers.

const OWNER_COLOURS = 8;
let movesShown = 0;

/// What has a hue and a pattern of its own: a host, or a worker if there is one host.
const hueOf = worker => model.run.hosts > 1 ? model.hosts[worker] : worker;
const ownerPattern = worker =>
    worker < 0 ? PATTERNS.unknown : [null, ...Object.values(PATTERNS)][hueOf(worker) % OWNER_COLOURS];
function ownerColour(worker) {
  if (worker < 0) return cssColour("unknown");
  const several = model.run.hosts > 1, host = hueOf(worker);
  const turn = Math.floor(host / OWNER_COLOURS);  // the colours again, paler
  let paler = Math.min(turn * 0.3, 0.6);
  if (several) {
    const mates = model.hosts.filter(h => h === host).length;
    paler += mates > 1 ? 0.5 * (worker - model.hosts.indexOf(host)) / mates : 0;
  }
  return mixed(cssColour("owner" + host % OWNER_COLOURS), cssColour("card"), Math.min(paler, 0.75));
}
const ownerName = worker => worker < 0 ? "not recorded" :
    "worker " + worker + (model.run.hosts > 1 ? " (host " + model.hosts[worker] + ")" : "");

function rowName(m, row) {
  const first = row * m.map.group, last = Math.min(first + m.map.group, m.parts) - 1;
  return first === last ? "part " + first : "parts " + first + "–" + last;
}

function buildMoves() {
  const moves = model.moves;
  byId("moves-section").hidden = !moves;
  if (!moves) return;
  const t = moves.total, text = [];
  text.push(
      formatCount(t.came) + " parts came from other hosts (" + formatBytes(t.bytes) + ", " + formatTime(t.ns) +
      " of movers), " + formatCount(t.given) + " were given to another worker of their host");
  if (t.busy + t.no_room > 0)
    text.push(formatCount(t.busy) + " stayed because they were in use, " + formatCount(t.no_room) +
              " for want of room");
  if (t.waits > 0)
    text.push(formatCount(t.waits) + " accesses waited for parts on their way, " + formatTime(t.wait) + " in all");
  byId("moves-text").textContent = text.join("; ") + ".";
  byId("moves-choice").hidden = moves.memory.length < 2;
  moves.memory.forEach(
      (m, i) => byId("moves-choice")
                    .append(element(
                        "button", {
                          id: "moves-" + i,
                          onclick: () => {
                            movesShown = i;
                            fillBusiest();
                            fillUsed();
                            drawMoves();
                          }
                        },
                        allocationName(m))));
  if (moves.allocations > moves.memory.length)
    byId("moves-choice").append(element("span", {}, "of " + formatCount(moves.allocations) + " allocations"));
  fillBusiest();
  fillUsed();
  fillMovers();
}
const allocationName = m => "global:0x" + m.address.toString(16) + " (" + formatCount(m.moves) + " moves)";

function fillBusiest() {
  const m = model.moves.memory[movesShown], table = byId("moves-busiest");
  table.replaceChildren();
  if (!m || m.busiest.length === 0) {
    table.append(element("tr", {}, cell("No part moved.", false)));
    return;
  }
  table.append(headRow(["part", "moves", "different owners", "last owner"]));
  for (const [part, moves, owners, last] of m.busiest)
    table.append(element(
        "tr", {}, cell(String(part), false), cell(formatCount(moves), true), cell(formatCount(owners), true),
        cell(ownerName(last), true)));
}
function fillUsed() {
  const m = model.moves.memory[movesShown], table = byId("moves-used");
  byId("moves-used-box").hidden = !m || m.used.length === 0;
  table.replaceChildren();
  if (!m || m.used.length === 0) return;
  table.append(headRow(["part", "by its owner's host", "by others", "most of these"]));
  for (const [part, near, far, by] of m.used)
    table.append(element(
        "tr", {}, cell(String(part), false), cell(formatCount(near), true), cell(formatCount(far), true),
        cell(far > 0 && by >= 0 ? ownerName(by) : "", true)));
}
function fillMovers() {
  const table = byId("moves-workers");
  const rows = model.moves.workers.map((w, i) => [i, w])
                   .filter(([, w]) => w.came + w.given + w.busy + w.no_room + w.waits > 0)
                   .sort((a, b) => b[1].came + b[1].given - a[1].came - a[1].given)
                   .slice(0, 20);
  table.append(headRow(["worker", "from other hosts", "inside its host", "stayed", "time", "waits of accesses"]));
  for (const [worker, w] of rows)
    table.append(element(
        "tr", {}, cell(ownerName(worker), false), cell(formatCount(w.came), true, w.came > 0 ? formatBytes(w.bytes) : ""),
        cell(formatCount(w.given), true), cell(formatCount(w.busy + w.no_room), true), cell(formatTime(w.ns), true),
        cell(formatCount(w.waits), true, w.waits > 0 ? formatTime(w.wait) : "")));
}

function fillMovesLegend(m) {
  const seen = new Set();
  for (const row of m.map.rows)
    for (let i = 0; i < row.runs.length; i += 2) seen.add(row.runs[i]);
  const owners = [...seen].sort((a, b) => a - b), most = 16;
  byId("moves-legend").replaceChildren(
      ...owners.slice(0, most).map(w => swatch(ownerName(w), ownerColour(w), ownerPattern(w))));
  if (owners.length > most)
    byId("moves-legend").append("and " + (owners.length - most) + " more: hold the pointer over the map");
}

function drawMoves() {
  if (!model.moves) return;
  const m = model.moves.memory[movesShown], box = byId("moves-map");
  box.hidden = byId("moves-legend").hidden = !m;
  if (!m) return;
  model.moves.memory.forEach((_, i) => byId("moves-" + i).setAttribute("aria-pressed", String(i === movesShown)));
  fillMovesLegend(m);
  const map = m.map, span = map.to - map.from, time = column => map.from + span * column / map.columns;
  const rows = map.rows.length, height = Math.min(460, Math.max(90, rows * 16)), bars = 56, top = 8, gap = 12;
  box.style.height = top + bars + gap + height + 46 + "px";
  const together = Math.ceil(map.columns / 120);  // columns of the map in a bar
  const runs = [], marks = [], counts = new Array(Math.ceil(map.columns / together)).fill(0);
  map.rows.forEach((row, r) => {
    for (let i = 0, column = 0; i < row.runs.length; column += row.runs[i + 1], i += 2)
      runs.push([time(column), time(column + row.runs[i + 1]), r, row.runs[i]]);
    for (let i = 0; i < row.moves.length; i += 2) {
      marks.push([time(row.moves[i]), time(row.moves[i] + 1), r, row.moves[i + 1]]);
      counts[Math.floor(row.moves[i] / together)] += row.moves[i + 1];
    }
  });
  const most = Math.max(1, ...counts), text = cssColour("text");
  const owners = [...new Set(runs.map(r => r[3]))];
  const colour = new Map(owners.map(w => [w, fillOf(ownerColour(w), ownerPattern(w))]));
  const low = r => r * map.group, high = r => Math.min((r + 1) * map.group, m.parts);
  const moment = t => formatMoment(t, span / map.columns, map.to);
  const between = d => moment(d[0]) + " … " + moment(d[1]);
  const left = 58, right = 16;
  const axis = {type: "value", min: map.from, max: map.to, ...axisStyle(), splitLine: {show: false}};
  const rect = (api, from, to, y0, y1, fill, least) => {
    const [a, b] = [api.coord([from, y0]), api.coord([to, y1])].map(p => p.map(Math.round));
    const x = a[0], y = Math.min(a[1], b[1]);
    return {
      type: "rect",
      shape: {x, y, width: Math.max(least, b[0] - x), height: Math.max(1, Math.abs(b[1] - a[1]))},
      style: {fill}
    };
  };
  const gapBetweenRows = height / rows >= 6 ? 1 : 0;
  if (charts.has("moves-map")) chartOf("moves-map").resize();
  chartOf("moves-map").setOption(
      {
        ...chartStyle(),
        grid: [
          {left, right, top, height: bars}, {left, right, top: top + bars + gap, height}
        ],
        tooltip: {
          ...tooltipStyle(),
          confine: true,
          formatter: p => {
            const d = p.data;
            if (p.seriesIndex === 0) return "<b>" + formatCount(d[2]) + "</b> moves<br>" + between(d);
            const who = rowName(m, d[2]);
            return p.seriesIndex === 1 ?
                (map.group > 1 ? "most of " : "") + who + ": <b>" + ownerName(d[3]) + "</b><br>" + between(d) :
                who + ": <b>" + formatCount(d[3]) + "</b> moves<br>" + between(d);
          }
        },
        xAxis: [
          {...axis, gridIndex: 0, axisLabel: {show: false}, axisTick: {show: false}},
          {
            ...axis,
            gridIndex: 1,
            name: "time",
            nameLocation: "middle",
            nameGap: 26,
            splitNumber: box.clientWidth < 600 ? 3 : 8,
            axisLabel: {color: cssColour("soft"), hideOverlap: true, formatter: v => formatMoment(v, span / 8, map.to)}
          }
        ],
        yAxis: [
          {
            type: "value",
            gridIndex: 0,
            min: 0,
            max: most,
            interval: most,
            name: "moves",
            nameLocation: "middle",
            nameGap: 40,
            ...axisStyle(),
            axisLabel: {color: cssColour("soft"), formatter: v => formatCount(v)}
          },
          {
            type: "value",
            gridIndex: 1,
            min: 0,
            max: m.parts,
            inverse: true,
            minInterval: 1,
            name: "part",
            nameLocation: "middle",
            nameGap: 40,
            ...axisStyle(),
            splitLine: {show: false}
          }
        ],
        series: [
          {
            type: "custom",
            xAxisIndex: 0,
            yAxisIndex: 0,
            data: counts
                      .map((n, c) => [time(c * together), time(Math.min((c + 1) * together, map.columns)), n])
                      .filter(d => d[2] > 0),
            encode: {x: [0, 1], y: 2},
            clip: true,
            renderItem: (_, api) =>
                rect(api, api.value(0), api.value(1), 0, api.value(2), cssColour("accent"), 1)
          },
          {
            type: "custom",
            xAxisIndex: 1,
            yAxisIndex: 1,
            data: runs,
            encode: {x: [0, 1], y: 2},
            clip: true,
            renderItem: (_, api) => {
              const r = api.value(2);
              const shape = rect(api, api.value(0), api.value(1), low(r), high(r), colour.get(api.value(3)), 1);
              shape.shape.height -= Math.min(gapBetweenRows, shape.shape.height / 2);
              return shape;
            }
          },
          {
            type: "custom",
            xAxisIndex: 1,
            yAxisIndex: 1,
            data: marks,
            encode: {x: [0, 1], y: 2},
            clip: true,
            renderItem: (_, api) => {
              const r = api.value(2), upper = high(r) - (high(r) - low(r)) * 0.3;
              return rect(api, api.value(0), api.value(1), upper, high(r), text, 1);
            }
          }
        ],
      },
      true);
}
