#!/usr/bin/env python3
"""Opens pages of godwit-report in a headless Chromium: they render, zoom, describe what is under the
pointer, say nothing on the console and ask the network for nothing. Both themes can be read, a phone shows all
of it, and keys reach what the pointer does.

browser_test.py GENERATE REPORT (ctest: report.browser)

Status 77, which ctest shows as skipped: no browser here (on Debian: chromium).
"""
import json
import os
import subprocess
import sys
import tempfile

import browser

failures = []


def check(condition, text):
    if not condition:
        failures.append(text)
        print("FAILED:", text, flush=True)


def open_page(page, path):
    page.events.clear()
    page.open("file://" + path)
    page.wait_for("!!document.documentElement && document.documentElement.dataset.ready === 'yes' && "
                  "location.pathname === " + json.dumps(path))
    page.frames()


def check_quiet(page, path, name):
    check(page.complaints() == [], f"{name}: the console says {page.complaints()}")
    others = [url for url in page.requests() if url != "file://" + path]
    check(others == [], f"{name}: the page asked for {others}")


def colours(page, chart):
    """How many different colours the canvases of a chart show: an empty one has few."""
    return page.value("""(() => { const seen = new Set();
      for (const c of document.querySelectorAll('#%s canvas')) {
        const copy = new OffscreenCanvas(c.width, c.height).getContext('2d', {willReadFrequently: true});
        copy.drawImage(c, 0, 0);
        const d = copy.getImageData(0, 0, c.width, c.height).data;
        for (let i = 0; i < d.length; i += 4 * 7)
          if (d[i + 3] > 0) seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]);
      } return seen.size; })()""" % chart)


def centre(page, chart, part=0.5):
    """A point in a chart, `part` of its width from the left, scrolled into view."""
    return page.value("""(() => { const e = document.getElementById('%s');
      e.scrollIntoView({block: 'center'});
      const r = e.getBoundingClientRect(); return [r.left + r.width * %f, r.top + r.height * 0.4]; })()"""
                      % (chart, part))


def width(page):
    return page.value("godwitReport.view.to - godwitReport.view.from")


def shown(page, chart):
    """What a chart itself says that it shows."""
    return page.value("""(() => { const z = echarts.getInstanceByDom(byId('%s')).getOption().dataZoom[0];
      return [z.startValue, z.endValue]; })()""" % chart)


# Text that is read badly: contrast below 4.5 : 1 with what lies behind it, as the guidelines of the W3C have it.
FAINT_TEXT = """(() => {
  const rgb = text => text.match(/[\\d.]+/g).map(Number);
  const hex = c => '#' + c.slice(0, 3).map(v => Math.round(v).toString(16).padStart(2, '0')).join('');
  const behind = e => {
    for (; e; e = e.parentElement) {
      const c = rgb(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] === 1) return hex(c);
    }
    return '#ffffff';
  };
  const found = new Set(), walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n; (n = walk.nextNode());) {
    const e = n.parentElement;
    if (!n.data.trim() || !e.checkVisibility() || /SCRIPT|STYLE/.test(e.tagName)) continue;
    const c = contrast(hex(rgb(getComputedStyle(e).color)), behind(e));
    if (c < 4.5) found.add(n.data.trim().slice(0, 40) + ' ' + c.toFixed(2));
  }
  return [...found];
})()"""
# The same for the text in charts: its colours are these properties.
FAINT_CHARTS = """[
  ...['text', 'soft'].flatMap(ink => ['page', 'card'].map(paper => [ink, cssColour(ink), paper, cssColour(paper)])),
  ...threadColours().map(c => ['label', inkOn(c), 'thread', c])
].filter(([, a, , b]) => contrast(a, b) < 4.5).map(x => x.join(' '))"""
# Text in charts whose colour is none of the theme's.
ODD_CHART_TEXT = """[...document.querySelectorAll('.chart')].flatMap(box => {
  const chart = echarts.getInstanceByDom(box), odd = new Set(), known = ['text', 'soft'].map(cssColour);
  const look = e => {
    if (e.isGroup) return e.eachChild(look);
    if (e.getTextContent && e.getTextContent()) look(e.getTextContent());
    if (e.type === 'text' && !e.ignore && e.style.text && !known.includes(e.style.fill))
      odd.add(box.id + ': ' + e.style.text + ' ' + e.style.fill);
  };
  if (chart) chart.getZr().storage.getRoots().forEach(look);
  return [...odd];
})"""
EMPTY_SECTIONS = """[...document.querySelectorAll('main > section:not([hidden]), .chart, details')]
  .filter(e => e.checkVisibility())
  .filter(e => e.classList.contains('chart') ? !e.querySelector('canvas') : !e.textContent.trim())
  .map(e => e.id)"""


def check_reading(page, name):
    """Both themes, a phone, the list of contents: what all pages have in common."""
    for dark in (False, True):
        page.dark(dark)
        page.frames()
        for what in (FAINT_TEXT, FAINT_CHARTS, ODD_CHART_TEXT):
            faint = page.value(what)
            check(faint == [], f"{name}, {'dark' if dark else 'light'}: {faint}")
    page.dark(False)
    empty = page.value(EMPTY_SECTIONS)
    check(empty == [], f"{name}: empty: {empty}")
    unnamed = page.value("[...document.querySelectorAll('.chart')].filter(e => e.checkVisibility() && "
                         "!e.getAttribute('aria-label')).map(e => e.id)")
    check(unnamed == [], f"{name}: charts without words: {unnamed}")
    links = page.value("[...document.querySelectorAll('#contents a')].map(a => a.getAttribute('href'))")
    sections = page.value("[...document.querySelectorAll('main > section:not([hidden])')].map(s => '#' + s.id)")
    check(links == sections and len(links) >= 3, f"{name}: contents {links} of {sections}")
    page.value("scrollTo(0, document.body.scrollHeight)")
    page.frames()
    check(page.value("byId('contents').getBoundingClientRect().top") == 0, f"{name}: contents stay in view")
    page.size(390, 844)
    page.wait_for("[...document.querySelectorAll('.chart canvas')].every(c => c.clientWidth <= 390)")
    page.frames()
    wide = page.value("document.documentElement.scrollWidth")
    check(wide <= 390, f"{name}: {wide} pixels wide on a phone")
    locked = page.value("[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth && "
                        "e.tabIndex !== 0).length")
    check(locked == 0, f"{name}: {locked} tables scroll, but not by keys")
    page.size(1280, 900)
    page.wait_for("[...document.querySelectorAll('.chart canvas')].some(c => c.clientWidth > 600) || "
                  "!document.querySelector('.chart canvas')")
    page.frames()


def press(page, key):
    page.call("Input.dispatchKeyEvent", type="keyDown", key=key)
    page.call("Input.dispatchKeyEvent", type="keyUp", key=key)
    page.frames()


def focused(page):
    return page.value("(e => e.id || e.getAttribute('href') || e.className || e.tagName)(document.activeElement)")


def check_keys(page, name):
    """The tabulator comes to all that can be used, and shows where it is; keys describe pieces of the time line."""
    page.value("scrollTo(0, 0)")
    seen = []
    for _ in range(80):
        page.call("Input.dispatchKeyEvent", type="keyDown", key="Tab", code="Tab", windowsVirtualKeyCode=9)
        page.call("Input.dispatchKeyEvent", type="keyUp", key="Tab", code="Tab", windowsVirtualKeyCode=9)
        seen.append(focused(page))
        if seen.count("BODY") == 2:  # all round, wherever it began
            break
        if seen[-1] == "BODY":
            continue
        check(page.value("getComputedStyle(document.activeElement).outlineStyle") != "none",
              f"{name}: no outline around {seen[-1]}")
    for wanted in ("#summary", "zoom-in", "activity", "show-path", "timeline", "SUMMARY"):
        check(wanted in seen, f"{name}: Tab does not come to {wanted}: {seen}")
    page.value("byId('timeline').focus()")
    press(page, "ArrowDown")
    first = page.value("byId('hover').hidden ? '' : byId('hover').textContent")
    check("worker 1" in first, f"{name}: arrow down describes worker 1: {first}")
    before = page.value("godwitReport.mark.time")
    press(page, ".")
    second = page.value("byId('hover').textContent")
    check(page.value("godwitReport.mark.time") > before and second != first, f"{name}: the next piece: {second}")
    press(page, "Escape")
    check(page.value("byId('hover').hidden"), f"{name}: Escape hides it")
    press(page, "0")


def check_zoom(page, name):
    whole, painted = width(page), page.value("godwitReport.painted()")
    x, y = centre(page, "activity", 0.3)
    page.mouse("mouseMoved", x, y)
    for _ in range(3):
        page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-240, modifiers=2)  # with Ctrl
        page.frames()
    first = width(page)
    check(first < whole * 0.9, f"{name}: Ctrl + wheel on the upper chart: {whole} -> {first} ns")
    x, y = centre(page, "timeline")
    for clicks in (1, 2):
        page.mouse("mousePressed", x, y, button="left", clickCount=clicks)
        page.mouse("mouseReleased", x, y, button="left", clickCount=clicks)
    page.frames()
    second = width(page)
    check(second < first * 0.5, f"{name}: double click on the time line: {first} -> {second} ns")
    check(page.value("godwitReport.painted()") > painted, f"{name}: zooming painted the time line again")
    a, b = shown(page, "activity"), shown(page, "timeline")
    check(abs(a[0] - b[0]) + abs(a[1] - b[1]) < second * 0.01, f"{name}: the charts show {a} and {b}")
    start = page.value("godwitReport.view.from")
    page.value("byId('timeline').focus()")
    page.call("Input.dispatchKeyEvent", type="keyDown", key="ArrowRight")
    page.frames()
    check(page.value("godwitReport.view.from") > start, f"{name}: the arrow key moves")
    page.call("Input.dispatchKeyEvent", type="keyDown", key="0")
    page.frames()
    check(width(page) == whole, f"{name}: 0 shows the whole run")


def check_idle_is_painted(page, name):
    """Every state that a worker was in for long has its colour in its row of the time line."""
    missing = page.value("""(() => {
      const c = canvases[turn], d = new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer);
      const seen = new Set(d);
      return present().filter(s => s !== BUSY)
          .filter(s => model.idle.some(w => w[s] > 0.02 * model.end) && !seen.has(pixel(cssColour(STATES[s]))))
          .map(s => STATES[s]);
    })()""")
    check(missing == [], f"{name}: the time line does not show {missing}")


def check_trace(page, path, name, workers):
    open_page(page, path)
    charts = ["activity", "timeline", "bounds", "idle", "histogram-steal", "histogram-run"]
    for chart in charts + (["matrix"] if workers > 10 else []):
        check(colours(page, chart) >= 4, f"{name}: chart {chart} shows {colours(page, chart)} colours")
    check(page.value("godwitReport.lines.length") == workers, f"{name}: {workers} lines")
    headline = page.value("byId('headline').textContent")
    check(headline.startswith("Speed-up "), f"{name}: headline {headline}")
    check(headline == page.value("godwitReport.model.findings[0].title"), f"{name}: headline {headline}")
    check_idle_is_painted(page, name)
    check(page.value("document.querySelectorAll('.finding').length") >= 2, f"{name}: findings")
    # The page's data have the whole run, and its sums are those of the analysis.
    check(page.value("""godwitReport.lines.every((line, w) =>
      line.begin[line.count] === godwitReport.model.end &&
      line.sums.every((s, i) => s[line.count] === godwitReport.model.idle[w][i]))"""),
          f"{name}: sums of the time lines")
    check_zoom(page, name)
    x, y = centre(page, "timeline", 0.4)
    for step in (0, 3):
        page.mouse("mouseMoved", x + step, y)
        page.frames()
    hover = page.value("byId('hover').hidden ? '' : byId('hover').textContent")
    check("worker" in hover, f"{name}: what is under the pointer: {hover}")
    page.value("[...byId('matrix-choice').children].reverse().forEach(button => button.click())")
    check(page.value("byId('matrix-table').rows.length") >= 4, f"{name}: table of who took from whom")
    page.value("byId('show-path').click()")
    page.frames()
    before = page.value("godwitReport.painted()")
    page.dark(True)
    page.frames()
    check(page.value("godwitReport.painted()") > before, f"{name}: drawn again in the dark theme")
    check(colours(page, "timeline") >= 4, f"{name}: dark time line")
    page.dark(False)
    page.frames()
    check_reading(page, name)
    check_quiet(page, path, name)


def check_tiny(page, path, name):
    """Few samples are numbers, and what there is none of is not there."""
    open_page(page, path)
    check(page.value("godwitReport.model.histograms.every(h => h.count > 0)"), f"{name}: histograms of nothing")
    check(page.value("document.querySelectorAll('.histogram .chart').length") == 0, f"{name}: charts of few samples")
    check(page.value("[...document.querySelectorAll('.histogram')].every(h => /\\d: (each about |about )?\\d/.test(h.textContent))"),
          f"{name}: few samples as numbers")
    check(page.value("godwitReport.model.histograms.every(h => !('samples' in h) || h.samples.length === h.count)"),
          f"{name}: all of few samples")
    check(page.value("byId('matrix-section').hidden && byId('counters-section').hidden"), f"{name}: empty sections")
    check_reading(page, name)
    check_quiet(page, path, name)


def check_comparison(page, path, name):
    open_page(page, path)
    check(page.value("byId('headline').textContent").startswith("Speed-up"), f"{name}: headline")
    verdicts = page.value("[...document.querySelectorAll('#summary .finding')].map(f => f.textContent)")
    check([v[:2] for v in verdicts] == ["p1", "p2", "p4"], f"{name}: verdicts by workers: {verdicts}")
    for chart, least in (("speed-up", 4), ("states", 4)):
        check(colours(page, chart) >= least, f"{name}: chart {chart} shows {colours(page, chart)} colours")
    shown_numbers = page.value("echarts.getInstanceByDom(byId('speed-up')).getOption().series"
                               ".find(s => s.name === 'measured').data")
    check(shown_numbers == page.value("godwitReport.model.runs.map(r => [r.workers, r.speed_up])"),
          f"{name}: the curve is {shown_numbers}")
    check(page.value("document.querySelectorAll('table').length") >= 2, f"{name}: tables")
    check_reading(page, name)
    check_quiet(page, path, name)


def check_bound(page, path, name):
    """The curve of the bound goes through the bounds of the runs, and bends where workers are enough."""
    open_page(page, path)
    curve = page.value("echarts.getInstanceByDom(byId('speed-up')).getOption().series"
                       ".find(s => s.name === 'bound').data")
    check(curve == [[0, 0], [1, 1], [2, 2], [3, 3], [4, 3], [8, 3]], f"{name}: {curve}")
    check_quiet(page, path, name)


def map_tooltip(page):
    """What is shown when the pointer is over the map of moves."""
    x, y = centre(page, "moves-map", 0.5)
    for step in (0, 2):
        page.mouse("mouseMoved", x + step, y)
        page.frames()
    return page.value("byId('moves-map').textContent")


def check_moves(page, path, name):
    open_page(page, path)
    check(page.value("!byId('moves-section').hidden"), f"{name}: the section Moves is shown")
    check("parts came from other hosts" in page.value("byId('moves-text').textContent"), f"{name}: moves in words")
    for parts in (24, 500):
        index = page.value(f"godwitReport.model.moves.memory.findIndex(m => m.parts === {parts})")
        page.value(f"byId('moves-{index}').click()")
        page.frames()
        check(colours(page, "moves-map") >= 8, f"{name}: {parts} parts: {colours(page, 'moves-map')} colours")
        check(page.value("byId('moves-busiest').rows.length") == 11, f"{name}: {parts} parts: busiest parts")
        shown_text = map_tooltip(page)
        check("part" in shown_text and "worker" in shown_text, f"{name}: under the pointer: {shown_text}")
    check(page.value("byId('moves-legend').children.length") == 4, f"{name}: an entry for each owner")
    check(page.value("byId('moves-workers').rows.length") == 5, f"{name}: who moved them")
    before = page.value("ownerColour(0)")
    page.dark(True)
    page.frames()
    check(page.value("ownerColour(0)") != before, f"{name}: other colours in the dark theme")
    check(colours(page, "moves-map") >= 8, f"{name}: dark map")
    page.dark(False)
    page.size(400, 900)
    page.wait_for("byId('moves-map').querySelector('canvas').getBoundingClientRect().width <= 400")
    page.frames()
    check(colours(page, "moves-map") >= 8, f"{name}: narrow map")
    page.size(1280, 900)
    check_reading(page, name)
    check_quiet(page, path, name)


def main():
    generate, report = sys.argv[1:3]
    path = browser.find()
    if path is None:
        print("SKIPPED: no Chromium here, so the pages of godwit-report were NOT tried in a browser. "
              "Install it (Debian: apt-get install chromium)")
        return 77
    with tempfile.TemporaryDirectory(prefix="godwit-report-") as folder:
        small, large, moves, tiny, counters, spare = (os.path.join(folder, n) for n in (
            "small.pftrace", "large.pftrace", "moves.pftrace", "tiny.pftrace", "stats.json",
            "spare.pftrace"))
        run = lambda *command: subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        run(generate, small, "4", "3000", "serial=0.1")
        run(generate, moves, "4", "3000", "hosts=2", "moves=200")
        run(generate, large, "48", "300000", "hosts=3", "policy=stalling")
        with open(counters, "w", encoding="utf-8") as out:
            json.dump({"run": {"program": "uts", "workers": 2, "seconds": 1.5},
                       "workers": [{"steals": 5, "life_ns": 10**9, "idle_join_ns": 10**8,
                                    "stack_high_bytes": 8192,
                                    "far_steal_times": [0, 3, 9, 1]}] * 2}, out)
        run(report, small)
        run(report, large, "--page-mib", "3")
        run(report, moves)
        run(report, counters)
        run(generate, spare, "4", "3000", "spares=1")
        run(report, spare)
        run(generate, tiny, "1", "2")
        run(report, tiny)
        scaling = [os.path.join(folder, "p" + workers) for workers in ("4", "1", "2")]
        for file in scaling:
            run(generate, file, file[-1], "3000")
        run(report, *scaling)
        numbers = [os.path.join(folder, "c" + workers) for workers in ("1", "2", "8")]
        for file in numbers:
            workers = int(file[-1])
            with open(file, "w", encoding="utf-8") as out:
                json.dump({"run": {"program": "uts", "workers": workers, "cpus": 4},
                           "workers": [{"life_ns": 10**9 // min(workers, 3), "work_ns": 6000, "span_ns": 2000,
                                        "idle_join_ns": 10**7}] * workers}, out)
        run(report, *numbers)
        with browser.Browser(path) as page:
            check_trace(page, small + ".html", "small", 4)
            check_keys(page, "small")
            check_trace(page, spare + ".html", "with a spare worker", 4)
            check(page.value("byId('moves-section').hidden"), "small: nothing moved, and no section says so")
            check_moves(page, moves + ".html", "moves")
            check_trace(page, large + ".html", "large", 48)
            check(page.value("godwitReport.model.timeline.threshold") > 0, "large: has less than full detail")
            open_page(page, counters + ".html")
            check(page.value("byId('activity-section').hidden && !byId('missing-section').hidden"),
                  "counters: sections")
            check(page.value("byId('counters').rows.length") >= 4, "counters: table")
            check(colours(page, "idle") >= 3, "counters: idle chart")
            check_reading(page, "counters")
            check_quiet(page, counters + ".html", "counters")
            check_tiny(page, tiny + ".html", "tiny")
            check_comparison(page, scaling[0] + ".compared.html", "comparison")
            check_bound(page, numbers[0] + ".compared.html", "bound")
    print("failed:", len(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
