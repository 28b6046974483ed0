"""The page of bench/scale.py: Markdown to standard output, the same with charts as HTML, and what is asked of the figures."""
import html

from reproduce import charts
from reproduce.page import STYLE

# Why something may be less than printed: by the number of what is asked, or by all of it.
REASONS = {
    "V3": "continuations become public only when asked for, and then half of the private ones: there are fewer, larger steals, and so fewer joins that wait",
    "V6 lcs 2^18, greedy: s": "it is within T1/P + span (0.503 s), which greedy scheduling promises; the papers' time is above that",
    "V2 recpfor, child_full: s": "a worker looks at its own waiting threads before it steals: it goes on with them earlier, and steals less",
}


class Page:
    """What has been said: Markdown to standard output, and the same with charts as HTML."""

    def __init__(self):
        self.html = []
        self.checks = []
        self.reasons = {}

    def head(self, text):
        print(f"## {text}\n")
        self.html.append(f"<h2>{html.escape(text)}</h2>")

    def say(self, text):
        print(text + "\n")
        self.html.append(f"<p>{html.escape(text)}</p>")

    def table(self, head, rows):
        rows = [[*row, *[""] * (len(head) - len(row))] for row in rows]
        lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
        print("\n".join(lines) + "\n")
        cells = [(tag, row) for tag, these in (("th", [head]), ("td", rows)) for row in these]
        self.html.append("<table>" + "".join(
            "<tr>" + "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in row) + "</tr>" for tag, row in cells) + "</table>")

    def chart(self, chart):
        self.html.append(charts.svg(chart))

    def check(self, name, what, ours, low, high, printed=""):
        """Is what is asked of ours so? Bounds may be infinite."""
        so = "yes" if low <= ours <= high else "**no**"
        self.checks.append((name, what, printed, f"{ours:.4g}", f"{low:.4g} to {high:.4g}", so))
        why = REASONS.get(f"{name} {what}", REASONS.get(name))
        if ours < low and why:
            self.reasons[name, what] = "; " + why

    def claims(self):
        """The checks, as the table of all rows takes them."""
        found = []
        for name, what, _, ours, asked, so in self.checks:
            why = self.reasons.get((name, what), "")
            found.append({"what": f"{name} {what}", "met": so == "yes", "seen": f"{ours} (asked: {asked}){why}"})
        return found

    def end(self, path):
        if self.checks:
            self.head("What is asked")
            self.table(["", "what", "printed", "simulated", "asked", "so?"], self.checks)
        if path:
            with open(path, "w", encoding="utf-8") as f:
                f.write("<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
                        f"<title>The papers' sizes, simulated</title><style>{STYLE}</style><h1>The papers' sizes, simulated</h1>"
                        "<p>The scheduler is the real one; the machines and what threads compute are modelled.</p>"
                        + "\n".join(self.html) + "</html>\n")
