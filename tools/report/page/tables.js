// The tables of the page: places, counters.

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
  byId("stays").append(headRow(["spawned or waited at", "threads that stayed"]));
  for (const p of rows)
    byId("stays").append(element(
        "tr", {}, cell(p.name, false, p.function), cell(formatCount(p.stays), true)));
}
function fillCounters() {
  const of_global = c => /^global_|^far_(gets|puts|atomics)$/.test(c.name);
  const global = model.counters.filter(of_global);
  byId("global-section").hidden = global.length === 0;
  if (global.length !== 0) fillTable("global", global);
  const others = model.counters.filter(c => !of_global(c));
  byId("counters-section").hidden = others.length === 0;
  if (others.length > 0) fillTable("counters", others);
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
        [  // not min(...values): of a hundred thousand arguments that fails
          values.reduce((a, b) => Math.min(a, b), Infinity), values.reduce((a, b) => a + b, 0) / values.length,
          values.reduce((a, b) => Math.max(a, b), -Infinity)
        ];
    byId(id).append(element(
            "tr", {title: c.name}, cell(c.label, false, c.what),
            cell(format(c.total) + (c.maximum ? " (most)" : ""), true),
            ...shown.map(v => cell(format(v), true))));
  }
}
