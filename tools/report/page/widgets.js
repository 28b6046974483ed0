// What both pages are made of: charts and their styles, patterns, tables, the list of contents.

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

// ---- patterns: what a colour says is also said by a pattern of 8 x 8 pixels
// -------------------------------------------------------------------------------------------------

const PATTERNS = {
  getting: (x, y) => x % 4 === 0,
  join: (x, y) => (x + y) % 8 < 2,
  transport: (x, y) => (x - y + 8) % 8 < 2,
  lock: (x, y) => (x + y) % 8 === 0 || (x - y + 8) % 8 === 0,
  event: (x, y) => x % 4 < 2 && y % 4 < 2,
  outside: (x, y) => y % 4 === 0,
  access: (x, y) => x < 4 === y < 4,
  blocked: (x, y) => (x & 3) < 1 && (y & 3) < 1,
  kernel: (x, y) => (x & 3) < 1 && (y & 1) < 1,
  unknown: (x, y) => x === 0 && y === 0
};
/// The pixels of a tile, row by row. Without a pattern it is plain.
function tileOf(colour, pattern) {
  const ink = pixel(mixed(colour, inkOn(colour), 0.5)), tile = new Uint32Array(64).fill(pixel(colour));
  if (pattern)
    for (let i = 0; i < 64; ++i)
      if (pattern(i & 7, i >> 3)) tile[i] = ink;
  return tile;
}
function tileCanvas(colour, pattern) {
  const canvas = element("canvas", {width: 8, height: 8}), context = canvas.getContext("2d");
  const image = context.createImageData(8, 8);
  new Uint32Array(image.data.buffer).set(tileOf(colour, pattern));
  context.putImageData(image, 0, 0);
  return canvas;
}
const stateTile = state => tileOf(cssColour(state), PATTERNS[state]);
/// For colours of ECharts.
const fillOf = (colour, pattern) =>
    pattern ? {image: tileCanvas(colour, pattern), repeat: "repeat"} : colour;
const stateFill = state => fillOf(cssColour(state), PATTERNS[state]);
/// An entry of a legend.
function swatch(text, colour, pattern) {
  const s = element("span", {}, text);
  s.style.setProperty("--swatch", "url(" + tileCanvas(colour, pattern).toDataURL() + ")");
  return s;
}
const stateSwatch = s => swatch(STATE_NAMES[s], cssColour(STATES[s]), PATTERNS[STATES[s]]);

// ---- tables
// ----------------------------------------------------------------------------------------------------------

const cell = (text, number, small) => {
  const td = element("td", {className: number ? "number" : ""}, text);
  if (small) td.append(element("small", {}, small));
  return td;
};
const headRow = names => element(
    "tr", {}, ...names.map((n, i) => element("th", {className: i > 0 ? "number" : "", scope: "col"}, n)));
/// What a chart shows, as a table that can be opened below it; open from the start if it is small.
function showNumbers(id, head, rows, open) {
  byId(id).replaceChildren(element(
      "details", {open}, element("summary", {}, "The numbers"),
      element(
          "div", {className: "scroll"},
          element(
              "table", {}, headRow(head),
              ...rows.map(row => element("tr", {}, ...row.map((text, i) => cell(text, i > 0))))))));
}

// ---- finding one's way
// -------------------------------------------------------------------------------------------

/// Links to all sections that are shown; the one that is read is marked.
function listContents() {
  const links = new Map();
  for (const section of document.querySelectorAll("main > section:not([hidden])")) {
    const name = section.dataset.name || section.querySelector("h2").textContent;
    const link = element("a", {href: "#" + section.id}, name);
    links.set(section, link);
    byId("contents").append(link);
  }
  const seen = new IntersectionObserver(entries => {
    for (const entry of entries) links.get(entry.target).classList.toggle("seen", entry.isIntersecting);
  }, {rootMargin: "-60px 0px -40% 0px"});
  for (const section of links.keys()) seen.observe(section);
}
/// What scrolls sideways can be reached and scrolled by keys.
function reachScrolling() {
  for (const box of document.querySelectorAll(".scroll")) {
    const more = box.scrollWidth > box.clientWidth;
    box.tabIndex = more ? 0 : -1;
    if (more) box.setAttribute("role", "region");
    box.setAttribute("aria-label", "Table");
  }
}
/// Calls `draw` now and for another theme, `resize` for another width.
function keepDrawn(draw, resize) {
  draw();
  reachScrolling();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  let width = innerWidth, pending = 0;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    clearTimeout(pending);
    pending = setTimeout(() => {
      for (const chart of charts.values()) chart.resize();
      resize();
      reachScrolling();
    }, 100);
  });
}
