"""Charts (data.Chart, Panels, Dots) as SVG: svg() for a page that has STYLE, picture() with the style in it, for a file of its own.

What is ours is filled, what a paper prints is hollow; a series has a colour, a mark and a dash of its own. Every chart's numbers are in a
table beside it as well. bench/scale.py draws with it, too.
"""

import html
import math

from .data import Chart, Dots, Panels, Point, number

COLOURS = {  # of a page: name -> (light, dark); at least 4.5 : 1 on the background
    "fg": ("#1c2430", "#e3e7ec"), "bg": ("#ffffff", "#14181d"), "soft": ("#5b6675", "#a7b1bd"), "line": ("#d9dee5", "#343c46"),
    "head": ("#f3f5f8", "#1e242b"), "link": ("#1d5fa8", "#8ab8f0"),
    "c0": ("#1d5fa8", "#7fb4f2"), "c1": ("#b4400b", "#f7a072"), "c2": ("#14703a", "#6fd08c"), "c3": ("#6d33d0", "#b9a1fb"),
    "c4": ("#b01c5a", "#f58ab4"), "c5": ("#0b6a80", "#5fcbe0"), "c6": ("#855600", "#e0b85c"), "c7": ("#475569", "#b4bfcc"),
}
MARKS = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0Z", "M-3.6-3.6h7.2v7.2h-7.2Z", "M0-4.8 4.6 3.6H-4.6Z", "M0-5 5 0 0 5-5 0Z",
    "M0 4.8 4.6-3.6H-4.6Z", "M-4.6-1.5h9.2v3h-9.2Z", "M-1.5-4.6h3v9.2h-3Z", "M-4.4-4.4 4.4 4.4H-4.4Z",
)
DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 2", "12 4", "1 2", "6 2 1 2 1 2")
WIDTH, HEIGHT = 520, 280
LEFT, RIGHT, TOP, BOTTOM = 70, 16, 12, 46
ROW, PANEL = 38, 84  # heights: of a row of Dots, of a panel
UNITS = ("s", "ms", "us", "ns", "%", "x", "GiB", "MB/s", "cycles", "bytes")
COUNTED = ("workers", "nodes", "threads", "moves", "messages", "blocks", "iterations", "workers or joins")


def variables(index):
    return ";".join(f"--{name}:{pair[index]}" for name, pair in COLOURS.items())


STYLE = f""":root{{color-scheme:light dark;{variables(0)}}}
@media(prefers-color-scheme:dark){{:root{{{variables(1)}}}}}
svg text{{font:13px system-ui,sans-serif;fill:var(--soft)}}svg .label{{fill:var(--fg)}}svg .grid{{stroke:var(--line)}}
@media(max-width:30rem){{svg text{{font-size:16px}}}}
"""


def unit_of(label):
    """"s" of "time, s"; a label that counts things is its own unit. ValueError: the label has none."""
    unit = label.rsplit(", ", 1)[-1]
    if unit in UNITS or unit in COUNTED:
        return unit
    raise ValueError(f"the label '{label}' has no unit of {', '.join(UNITS + COUNTED)}")


def text_of(value):
    """Three significant digits at most."""
    for unit, name in ((1e9, " G"), (1e6, " M")):
        if abs(value) >= 0.9995 * unit:
            return number(value / unit) + name
    return number(float(value))


def thinned(marks, most=6):
    return marks[:: max(1, math.ceil(len(marks) / most))]


def ticks(low, high, log, whole=False):
    """Positions of about five marks; whole: of numbers such as counts of workers, 1, 2, 4 ..."""
    if whole:
        return thinned([2**e for e in range(64) if low <= 2**e <= high]) or [math.ceil(low)]
    if log:
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for factors in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 5, 7)):
            found = [f * 10.0**e for e in decades for f in factors if low * 0.999 <= f * 10.0**e <= high * 1.001]
            if len(found) >= 3:
                break
        return thinned(found) if len(found) > 1 else [low, high]
    step = 10.0 ** math.floor(math.log10((high - low) / 5))
    step *= next(f for f in (1, 2, 5, 10) if (high - low) / (step * f) <= 6)
    return [i * step for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


class Axis:
    """From values to pixels."""

    def __init__(self, values, log, start, end, from_zero):
        values = [v for v in values if v is not None and (not log or v > 0)]
        low, high = min(values), max(values)
        if from_zero and not log:
            low = min(0.0, low)
        if low == high:
            low, high = (low / 2, high * 2) if log and low > 0 else (low - 0.5, high + 0.5)
        self.log, self.low, self.high, self.start, self.end = log, low, high, start, end

    def at(self, value):
        of = math.log if self.log else float
        value = max(value, self.low) if self.log else value
        return self.start + (of(value) - of(self.low)) / (of(self.high) - of(self.low)) * (self.end - self.start)


def mark(index, x, y, said, paper=False):
    """Of a point: filled, or hollow and larger for a paper's."""
    look = f'fill="var(--bg)" stroke="var(--c{index % 8})" stroke-width="1.5"' if paper else f'fill="var(--c{index % 8})"'
    grown = " scale(1.4)" if paper else ""
    return f'<path d="{MARKS[index % 8]}" transform="translate({x:.1f} {y:.1f}){grown}" {look}><title>{html.escape(said)}</title></path>'


def grid(x1, x2, y1, y2):
    return f'<line class="grid" x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1:.1f}" y2="{y2:.1f}"/>'


def text(x, y, said, anchor="middle", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{html.escape(said)}</text>'


def below(x, label, top, height):
    """The horizontal axis: its lines from top on, its marks and its label."""
    parts = []
    for v in ticks(x.low, x.high, x.log, unit_of(label) in ("workers", "nodes")):
        parts += [grid(x.at(v), x.at(v), top, height - BOTTOM), text(x.at(v), height - BOTTOM + 17, text_of(v))]
    return [*parts, text((x.start + x.end) / 2, height - 7, label)]


def beside(y, label, height):
    """The vertical axis."""
    parts = []
    for v in ticks(y.low, y.high, y.log):
        parts += [grid(LEFT, WIDTH - RIGHT, y.at(v), y.at(v)), text(LEFT - 7, y.at(v) + 4, text_of(v), "end")]
    return [*parts, text(15, height / 2, label, more=f' transform="rotate(-90 15 {height / 2:.0f})"')]


def line(points, index):
    path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
    dash = f' stroke-dasharray="{DASHES[index % 8]}"' if DASHES[index % 8] else ""
    return f'<polyline fill="none" stroke="var(--c{index % 8})" stroke-width="1.8"{dash} points="{path}"/>'


def drawn(points, log_x, log_y):
    """What can be drawn, as Points from left to right."""
    return sorted(p for p in (Point(*p) for p in points) if (p.x > 0 or not log_x) and (p.y > 0 or not log_y))


def of_chart(chart):
    """(parts, height, legend) of a Chart."""
    series = {name: drawn(points, chart.log_x, chart.log_y) for name, points in chart.series.items()}
    papers = {name: drawn(points, chart.log_x, chart.log_y) for name, points in chart.papers.items()}
    every = [p for points in (*series.values(), *papers.values()) for p in points]
    if not any(series.values()):
        return [], 0, []
    x = Axis([p.x for p in every], chart.log_x, LEFT + 8, WIDTH - RIGHT - 8, False)
    y = Axis([v for p in every for v in p[1:]], chart.log_y, HEIGHT - BOTTOM - 2, TOP + 8, True)
    parts, legend = beside(y, chart.y, HEIGHT) + below(x, chart.x, TOP, HEIGHT), []
    for i, name in enumerate(dict.fromkeys([*series, *papers])):
        at = [(x.at(p.x), y.at(p.y)) for p in series.get(name, [])]
        if at:
            parts.append(line(at, i))
            legend.append((i, name, False))
        for p, (a, b) in zip(series.get(name, []), at):
            if p.low is not None and p.high is not None:
                parts.append(f'<line stroke="var(--c{i % 8})" x1="{a:.1f}" x2="{a:.1f}" y1="{y.at(p.low):.1f}" y2="{y.at(p.high):.1f}"/>')
            parts.append(mark(i, a, b, f"{name}: {text_of(p.x)}, {text_of(p.y)}"))
        parts += [mark(i, x.at(p.x), y.at(p.y), f"{name}, the paper: {text_of(p.x)}, {text_of(p.y)}", True) for p in papers.get(name, [])]
        if papers.get(name):
            legend.append((i, f"{name}, the paper", True))
    return parts, HEIGHT, legend


def of_panels(chart):
    height = TOP + PANEL * len(chart.panels) + BOTTOM
    every = [p for series in chart.panels.values() for points in series.values() for p in points]
    if not every:
        return [], 0, []
    x = Axis([p[0] for p in every], False, LEFT, WIDTH - RIGHT, False)
    parts, names = below(x, chart.x, TOP, height), []
    parts.append(text(15, (height - BOTTOM) / 2, chart.y, more=f' transform="rotate(-90 15 {(height - BOTTOM) / 2:.0f})"'))
    for n, (title, series) in enumerate(chart.panels.items()):
        y = Axis([p[1] for p in every], False, TOP + PANEL * (n + 1), TOP + PANEL * n + 22, True)
        for v in (0, y.high):
            parts += [grid(LEFT, WIDTH - RIGHT, y.at(v), y.at(v)), text(LEFT - 7, y.at(v) + 4, text_of(v), "end")]
        parts.append(text(LEFT, TOP + PANEL * n + 15, title, "start", ' class="label"'))
        for i, (name, points) in enumerate(series.items()):
            at = [(x.at(a), y.at(b)) for a, b in points]
            if i == 0 and at:
                ends = [(at[0][0], y.at(0)), *at, (at[-1][0], y.at(0))]
                parts.append('<polygon fill="var(--c0)" fill-opacity="0.3" points="' + " ".join(f"{a:.1f},{b:.1f}" for a, b in ends) + '"/>')
            else:
                parts.append(line(at, i))
            names += [(i, name, False)] if (i, name, False) not in names else []
    return parts, height, names


def of_dots(chart):
    dots = [d for d in chart.dots if d.value is not None and (d.value > 0 or not chart.log)]
    if not any(not d.source for d in dots):
        return [], 0, []
    height = TOP + ROW * len(dots) + BOTTOM
    x = Axis([v for d in dots for v in d[1:4]], chart.log, 14, WIDTH - RIGHT, True)
    parts = below(x, chart.x, TOP, height)
    for n, d in enumerate(dots):
        y = TOP + ROW * n
        span = f" ({text_of(d.low)} to {text_of(d.high)})" if d.low is not None and d.high is not None and d.low != d.high else ""
        parts.append(text(14, y + 13, d.label, "start", ' class="label"'))
        parts.append(text(WIDTH - RIGHT, y + 13, text_of(d.value) + span + (f", {d.source}" if d.source else ""), "end"))
        parts.append(grid(14, WIDTH - RIGHT, y + 23, y + 23))
        if span:
            parts.append(f'<line stroke="var(--c0)" stroke-width="1.5" x1="{x.at(d.low):.1f}" x2="{x.at(d.high):.1f}" y1="{y + 23}" y2="{y + 23}"/>')
        parts.append(mark(1 if d.source else 0, x.at(d.value), y + 23, f"{d.label}: {text_of(d.value)}", bool(d.source)))
    return parts, height, [(0, "here", False)] + ([(1, "a paper", True)] if any(d.source for d in dots) else [])


OF = {Chart: of_chart, Panels: of_panels, Dots: of_dots}


def svg(chart):
    """The chart with its legend and note, for a page with STYLE; empty if there is nothing to draw."""
    parts, height, legend = OF[type(chart)](chart)
    if not parts:
        return ""
    names = "".join(f'<span><svg viewBox="-7 -7 14 14" width="14" height="14">{mark(i, 0, 0, n, p)}</svg> {html.escape(n)}</span>' for i, n, p in legend)
    note = f'<p class="note">{html.escape(chart.note)}</p>' if chart.note else ""
    return (f'<figure><figcaption>{html.escape(chart.title)}</figcaption><svg class="chart" viewBox="0 0 {WIDTH} {height}" role="img"'
            f' aria-label="{html.escape(chart.title)}">{"".join(parts)}</svg><p class="legend">{names}</p>{note}</figure>')


def picture(chart):
    """The chart as a file of its own, the legend in it."""
    parts, height, legend = OF[type(chart)](chart)
    if not parts:
        return ""
    for n, (i, name, paper) in enumerate(legend):
        at, y = 14 + n % 2 * WIDTH / 2, height + 14 + n // 2 * 20
        parts += [mark(i, at + 6, y - 4, name, paper), text(at + 18, y, name, "start")]
    height += 8 + 20 * math.ceil(len(legend) / 2)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">'
            f'<title>{html.escape(chart.title)}</title><style>{STYLE}</style><rect width="100%" height="100%" fill="var(--bg)"/>{"".join(parts)}</svg>\n')
