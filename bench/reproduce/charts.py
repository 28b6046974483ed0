"""Line charts as inline SVG. Every chart's numbers are in a table beside it as well."""

import html
import math

COLOURS = ("#2563a8", "#c2410c", "#15803d", "#7c3aed", "#b91c1c", "#0e7490", "#92400e", "#475569")
WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 62, 16, 12, 44


def ticks(low, high, log, whole=False):
    """Positions of about five marks; whole: of numbers such as counts of workers."""
    if log:
        return [
            10.0**e
            for e in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
            if low * 0.999 <= 10.0**e <= high * 1.001
        ] or [low, high]
    span = high - low
    step = 10.0 ** math.floor(math.log10(span / 5))
    for factor in (1, 2, 5, 10):
        if span / (step * factor) <= 6:
            step *= factor
            break
    step = max(step, 1.0) if whole else step
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, int(math.floor(high / step + 1e-9)) + 1)]


def text_of(value):
    if value == 0:
        return "0"
    if abs(value) >= 1e5 or abs(value) < 1e-3:
        return f"{value:.0e}".replace("e+0", "e").replace("e-0", "e-")
    return f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"


class Axis:
    """From values to pixels."""

    def __init__(self, values, log, start, end, from_zero):
        values = [v for v in values if not log or v > 0]
        low, high = min(values), max(values)
        if from_zero and not log:
            low = min(0.0, low)
        if low == high:
            low, high = (low / 2, high * 2) if log and low > 0 else (low - 0.5, high + 0.5)
        self.log, self.low, self.high, self.start, self.end = log, low, high, start, end

    def at(self, value):
        if self.log:
            part = (math.log(max(value, self.low)) - math.log(self.low)) / (
                math.log(self.high) - math.log(self.low)
            )
        else:
            part = (value - self.low) / (self.high - self.low)
        return self.start + part * (self.end - self.start)


def frame(chart, x, y):
    parts = []
    for v in ticks(y.low, y.high, y.log):
        at = y.at(v)
        parts.append(
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>'
            f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{text_of(v)}</text>'
        )
    for v in ticks(x.low, x.high, x.log, chart.x == "workers"):
        at = x.at(v)
        parts.append(
            f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
            f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{text_of(v)}</text>'
        )
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 6}"'
        f' text-anchor="middle">{html.escape(chart.x)}</text><text transform="rotate(-90 14'
        f' {HEIGHT / 2:.0f})" x="14" y="{HEIGHT / 2:.0f}" text-anchor="middle">{html.escape(chart.y)}</text>'
    )
    return parts


def svg(chart):
    """The chart with its legend; empty if there is nothing to draw."""
    series = {name: sorted(points) for name, points in chart.series.items() if points}
    if not series:
        return ""
    every = [p for points in series.values() for p in points]
    if (chart.log_x and all(p[0] <= 0 for p in every)) or (chart.log_y and all(p[1] <= 0 for p in every)):
        return ""
    x = Axis([p[0] for p in every] + ([chart.x_to] if chart.x_to else []), chart.log_x, LEFT, WIDTH - RIGHT, False)
    y = Axis([p[1] for p in every], chart.log_y, HEIGHT - BOTTOM, TOP, True)
    parts = frame(chart, x, y)
    legend = []
    for i, (name, points) in enumerate(series.items()):
        colour = COLOURS[i % len(COLOURS)]
        path = " ".join(f"{x.at(a):.1f},{y.at(b):.1f}" for a, b in points)
        if name in chart.areas:
            base = y.at(y.low)
            parts.append(
                f'<polygon fill="{colour}" fill-opacity="0.25" points="{x.at(points[0][0]):.1f},{base:.1f}'
                f' {path} {x.at(points[-1][0]):.1f},{base:.1f}"/>'
            )
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.8" points="{path}"/>')
        if len(points) <= 20:
            parts += [
                f'<circle cx="{x.at(a):.1f}" cy="{y.at(b):.1f}" r="3"'
                f' fill="{colour}"><title>{html.escape(name)}: {text_of(a)}, {text_of(b)}</title></circle>'
                for a, b in points
            ]
        legend.append(f'<span><i style="background:{colour}"></i>{html.escape(name)}</span>')
    return (
        f'<figure><figcaption>{html.escape(chart.title)}</figcaption><svg viewBox="0 0 {WIDTH} {HEIGHT}"'
        f' role="img" aria-label="{html.escape(chart.title)}">{"".join(parts)}</svg><p'
        f' class="legend">{"".join(legend)}</p></figure>'
    )
