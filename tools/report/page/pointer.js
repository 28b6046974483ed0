// What the time line has under the pointer, or under the mark that the keys move.

const BEGUN = ["", "began as the first thread", "stolen", "resumed", "began here", "left here by a thief"];
const ENDED =
    ["", "ended", "ended; its waiter follows", "left at an outstanding join", "yielded", "taken by a thief",
     "left to wait for something else"];

function describePiece(line, i) {
  const out = [], from = line.begin[i], to = line.begin[i + 1], kind = line.kind[i];
  if (kind === MIXTURE) {
    out.push(["", formatCount(line.thread[i]) + " short pieces, shown together"]);
    STATES.forEach((_, s) => {
      const ns = line.sums[s][i + 1] - line.sums[s][i];
      if (ns > 0) out.push([STATE_NAMES[s], formatPercent(ns / (to - from)) + " (" + formatTime(ns) + ")"]);
    });
  } else if (kind === BUSY) {
    const other = line.other[i], place = line.place[i];
    const origin = other >= 0 && [2, 3, 4].includes(line.begun[i]) ? " (from worker " + other + ")" : "";
    out.push(["", line.thread[i] >= 0 ? "thread " + line.thread[i] : "a thread"]);
    if (BEGUN[line.begun[i]]) out.push(["how it came", BEGUN[line.begun[i]] + origin]);
    if (ENDED[line.ended[i]]) out.push(["how it went", ENDED[line.ended[i]]]);
    if (place >= 0)
      out.push([
        "at",
        model.places[place].name + (model.places[place].function ? ", " + model.places[place].function : "")
      ]);
  } else {
    out.push(["", STATE_NAMES[kind]]);
    const before = i - 1;
    if (kind === JOIN && before >= 0 && line.place[before] >= 0)
      out.push(["at", model.places[line.place[before]].name]);
  }
  out.push(
      ["from", formatMoment(from, Math.max(1, (to - from) / 1000), whole.to)],
      ["for", formatTime(to - from)]);
  return out;
}
function describe(worker, time, perPixel) {
  const line = lines[worker];
  if (!line || line.count === 0) return [];
  const first = line.pieceAt(time), last = line.pieceAt(time + perPixel);
  if (last - first < 2) {
    const longer =
        last > first && line.begin[last + 1] - line.begin[last] > line.begin[first + 1] - line.begin[first];
    return describePiece(line, longer ? last : first);
  }
  const a = stateSums(), b = stateSums();
  line.sumsAt(time, a);
  line.sumsAt(time + perPixel, b);
  const out = [["", formatCount(last - first + 1) + " pieces within this pixel: zoom in to see them"]];
  STATES.forEach((_, s) => {
    if (b[s] > a[s]) out.push([STATE_NAMES[s], formatPercent((b[s] - a[s]) / perPixel)]);
  });
  out.push(["at", formatMoment(time, perPixel, whole.to)]);
  return out;
}
function showHover(event) {
  const point = [event.offsetX, event.offsetY];
  byId("hover").hidden = true;
  if (!timelineChart.containPixel({gridIndex: 0}, point)) return;
  const [time, row] = timelineChart.convertFromPixel({gridIndex: 0}, point);
  const perPixel = (view.to - view.from) / Math.max(1, timelineChart.getWidth() - 128);
  showBeside(point, row, describe(row, time, perPixel));
}
/// What worker `row` did, beside a point of the chart.
function showBeside([x, y], row, parts) {
  const box = byId("hover");
  box.hidden = parts.length === 0;
  if (box.hidden) return;
  box.replaceChildren(
      element("b", {}, "worker " + row + (model.run.hosts > 1 ? " on host " + model.hosts[row] : "")));
  for (const [name, value] of parts)
    box.append(element("br"), name ? name + ": " + value : element("b", {}, value));
  const host = byId("timeline"), left = host.offsetLeft + x,
        flip = left > host.clientWidth * 0.65;
  box.style.left = flip ? Math.max(0, left - box.offsetWidth - 14) + "px" : left + 16 + "px";
  box.style.top = host.offsetTop + y + 14 + "px";
}

// The mark: a moment of a worker, chosen by keys.
const mark = {worker: 0, time: 0};
function showMark() {
  setView(mark.time - (view.to - view.from) / 2, mark.time + (view.to - view.from) / 2);
  const line = lines[mark.worker];
  if (line.count > 0)
    showBeside(
        timelineChart.convertToPixel({gridIndex: 0}, [mark.time, mark.worker]), mark.worker,
        describePiece(line, line.pieceAt(mark.time)));
}
/// To the worker above or below, at the middle of what is shown.
function markWorker(by) {
  mark.worker = Math.min(Math.max(mark.worker + by, 0), lines.length - 1);
  mark.time = (view.from + view.to) / 2;
  showMark();
}
/// To the piece before or behind.
function markPiece(by) {
  const line = lines[mark.worker];
  if (line.count === 0) return;
  if (byId("hover").hidden) mark.time = (view.from + view.to) / 2;
  const i = Math.min(Math.max(line.pieceAt(mark.time) + by, 0), line.count - 1);
  mark.time = (line.begin[i] + line.begin[i + 1]) / 2;
  showMark();
}
