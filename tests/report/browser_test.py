#!/usr/bin/env python3
"""Opens pages of godwit-report in a headless Chromium: they render, zoom, describe what is under the
pointer, say nothing on the console and ask the network for nothing.

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


def check_trace(page, path, name, workers):
    open_page(page, path)
    for chart in ("activity", "timeline", "bounds", "idle", "matrix", "histogram-steal", "histogram-run"):
        check(colours(page, chart) >= 4, f"{name}: chart {chart} shows {colours(page, chart)} colours")
    check(page.value("godwitReport.lines.length") == workers, f"{name}: {workers} lines")
    headline = page.value("byId('headline').textContent")
    check(headline.startswith("Speed-up "), f"{name}: headline {headline}")
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
    for button in (1, 2, 0):
        page.value(f"byId('matrix-{button}').click()")
    page.value("byId('show-path').click()")
    page.frames()
    before = page.value("godwitReport.painted()")
    page.dark(True)
    page.frames()
    check(page.value("godwitReport.painted()") > before, f"{name}: drawn again in the dark theme")
    check(colours(page, "timeline") >= 4, f"{name}: dark time line")
    page.dark(False)
    page.frames()
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
    check(page.value("document.documentElement.scrollWidth") <= 400, f"{name}: nothing sticks out of a narrow page")
    page.size(1280, 900)
    check_quiet(page, path, name)


def main():
    generate, report = sys.argv[1:3]
    path = browser.find()
    if path is None:
        print("SKIPPED: no Chromium here, so the pages of godwit-report were NOT tried in a browser. "
              "Install it (Debian: apt-get install chromium)")
        return 77
    with tempfile.TemporaryDirectory(prefix="godwit-report-") as folder:
        small, large, moves, counters = (
            os.path.join(folder, n) for n in ("small.pftrace", "large.pftrace", "moves.pftrace", "stats.json"))
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
        with browser.Browser(path) as page:
            check_trace(page, small + ".html", "small", 4)
            check(page.value("byId('moves-section').hidden"), "small: nothing moved, and no section says so")
            check_moves(page, moves + ".html", "moves")
            check_trace(page, large + ".html", "large", 48)
            check(page.value("godwitReport.model.timeline.threshold") > 0, "large: has less than full detail")
            open_page(page, counters + ".html")
            check(page.value("byId('activity-section').hidden && !byId('missing-section').hidden"),
                  "counters: sections")
            check(page.value("byId('counters').rows.length") >= 4, "counters: table")
            check(colours(page, "idle") >= 3, "counters: idle chart")
            check_quiet(page, counters + ".html", "counters")
    print("failed:", len(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
