#!/usr/bin/env python3
"""Draws docs/images/{stack,deque,join}.svg: drawings.py [FOLDER]. ctest: docs.drawings.

The colours follow the reader's choice of light or dark; each drawing has its own ground, so it can be read on any page.
"""

import os
import sys
from xml.sax.saxutils import escape

STYLE = """
    text { font: 14px system-ui, sans-serif; fill: #1c2430 }
    .small { font-size: 12px; fill: #4a5566 } .bold { font-weight: 600 } .mid { text-anchor: middle }
    .ground { fill: #fbfcfe } .line { stroke: #4a5566; stroke-width: 1.5; fill: none } .dash { stroke-dasharray: 5 4 }
    .box { stroke: #4a5566; stroke-width: 1.5; fill: #ffffff } .a { fill: #cfe3fb } .b { fill: #d5efd9 } .c { fill: #fde5c4 }
    .move { stroke: #b3400d; stroke-width: 2.5; fill: none } .moved { fill: #b3400d } .tip { fill: #b3400d } .tick { fill: #4a5566 }
    @media (prefers-color-scheme: dark) {
      text { fill: #e8ecf3 } .small { fill: #b4bfce } .ground { fill: #161b22 } .line { stroke: #b4bfce }
      .box { stroke: #b4bfce; fill: #222a35 } .a { fill: #1f4671 } .b { fill: #1f5a33 } .c { fill: #6b4713 }
      .move { stroke: #ff9d66 } .moved { fill: #ff9d66 } .tip { fill: #ff9d66 } .tick { fill: #b4bfce }
    }"""


class Drawing:
    def __init__(self, width, height, title, description):
        self.parts = []
        self.head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" role="img" aria-labelledby="t d">\n  <title id="t">{escape(title)}</title>\n'
            f'  <desc id="d">{escape(description)}</desc>\n  <style>{STYLE}\n  </style>\n  <defs>\n'
            + "".join(
                f'    <marker id="{name}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="{size}" '
                f'markerHeight="{size}" orient="auto"><path class="{name}" d="M0 0 10 5 0 10z"/></marker>\n'
                for name, size in (("tip", 6), ("tick", 7))
            )
            + f'  </defs>\n  <rect class="ground" width="{width}" height="{height}" rx="8"/>\n'
        )

    def text(self, x, y, words, style=""):
        self.parts.append(f'  <text x="{x}" y="{y}" class="{style}">{escape(words)}</text>\n')

    def box(self, x, y, width, height, style="", words="", below=""):
        self.parts.append(
            f'  <rect x="{x}" y="{y}" width="{width}" height="{height}" class="box {style}"/>\n'
        )
        middle = y + height / 2 + (-3 if below else 5)
        if words:
            self.text(x + width / 2, middle, words, "mid")
        if below:
            self.text(x + width / 2, middle + 17, below, "small mid")

    def path(self, points, style="line", tip=""):
        end = f' marker-end="url(#{tip})"' if tip else ""
        self.parts.append(f'  <path d="{points}" class="{style}"{end}/>\n')

    def svg(self):
        return self.head + "".join(self.parts) + "</svg>\n"


def stack():
    d = Drawing(
        760,
        380,
        "A stack that moves to the same address in another process",
        "Worker 0 runs a child below its parent. Worker 1 copies the parent's stack bytes to the same address in "
        "its own region and goes on with the parent. The child stays.",
    )
    d.text(270, 28, "before the steal", "bold mid")
    d.text(590, 28, "after the steal", "bold mid")
    for x, name in ((170, "worker 0"), (290, "worker 1"), (490, "worker 0"), (610, "worker 1")):
        d.text(x + 40, 54, name, "small mid")
        d.box(x, 64, 80, 236)
    for y, address in ((64, "0x6000 0000 1000"), (144, "0x6000 0000 0c00"), (204, "0x6000 0000 0a00")):
        d.text(150, y + 5, address, "small")
        d.parts[-1] = d.parts[-1].replace('class="small"', 'class="small" text-anchor="end"')
        d.path(f"M156 {y}H{690 if y < 200 else 570}", "line dash")
    d.box(170, 64, 80, 80, "a", "parent", "waits")
    d.box(170, 144, 80, 60, "b", "child", "runs")
    d.text(330, 246, "looks", "small mid")
    d.text(330, 262, "for work", "small mid")
    d.box(490, 144, 80, 60, "b", "child", "runs on")
    d.text(530, 108, "free", "small mid")
    d.box(610, 64, 80, 80, "a", "parent", "goes on")
    d.path("M252 96C340 62 520 62 606 96", "move", "tip")
    d.text(430, 112, "a copy of", "small mid moved")
    d.text(430, 128, "its bytes", "small mid moved")
    d.text(
        36,
        330,
        "The bytes keep their addresses, so pointers into the parent's frames stay right in the other process.",
        "small",
    )
    d.text(
        36,
        350,
        "Stacks grow downwards. All workers have their region at the same address, and see each other's at a second "
        "one,",
        "small",
    )
    d.text(36, 368, "from where the thief copies.", "small")
    return d.svg()


def deque():
    d = Drawing(
        760,
        330,
        "The split deque",
        "Slots from the oldest to the youngest continuation. Those left of split are public: thieves take the oldest "
        "under a lock. Those right of split are private: the owner pushes and pops at bottom without fence or lock.",
    )
    left, width, top = 60, 80, 110
    names = ["stolen", "public", "public", "public", "private", "private", "private", ""]
    for i, name in enumerate(names):
        style = {"public": "a", "private": "b"}.get(name, "")
        d.box(left + i * width, top, width, 56, style, f"slot {i + 1}" if name else "free", name)
    for i, word, who in (
        (1, "top", "moved by thieves"),
        (4, "split", "moved by the owner"),
        (7, "bottom", "moved by the owner"),
    ):
        x = left + i * width
        d.path(f"M{x} {top + 96}V{top + 62}", "line", "tick")
        d.text(x, top + 114, word, "bold mid")
        d.text(x, top + 131, who, "small mid")
    d.path(
        f"M{left + 1.5 * width} {top - 6}C{left + 1.5 * width} 62 {left + width} 62 {left + 0.6 * width} 62",
        "move",
        "tip",
    )
    d.text(left, 46, "thief: takes the oldest, locked", "moved")
    d.path(f"M{left + 7.5 * width} 66V{top - 6}", "line", "tick")
    d.path(f"M{left + 6.5 * width} {top - 6}V66", "line", "tick")
    d.text(left + 8 * width, 46, "owner: spawns and returns, no fence, no lock")
    d.parts[-1] = d.parts[-1].replace('class=""', 'text-anchor="end"')
    d.text(
        left,
        288,
        "The oldest continuations are nearest to the root and so, as a rule, the most work.",
        "small",
    )
    d.text(
        left,
        308,
        "The owner moves split to the right when workers starve: half of the private slots become public.",
        "small",
    )
    return d.svg()


def join():
    d = Drawing(
        760,
        400,
        "A greedy join",
        "Two timelines. If the parent comes to the join first, its stack is put aside and the worker that ends the child "
        "goes on with it at once. If the child ends first, the parent goes on without a stop.",
    )

    def lane(y, title, first, second):
        d.text(24, y, title, "bold")
        for k, name in enumerate(("worker 0", "worker 1")):
            d.text(24, y + 37 + 56 * k, name, "small")
            d.path(f"M100 {y + 52 + 56 * k}H720", "line dash")
        for k, boxes in enumerate((first, second)):
            for x, w, style, words in boxes:
                d.box(x, y + 16 + 56 * k, w, 36, style, words)

    lane(
        34,
        "The parent joins first",
        [(120, 280, "b", "child"), (400, 300, "a", "parent, after the join")],
        [(170, 130, "a", "parent")],
    )
    d.path("M300 124C356 130 376 112 398 92", "move", "tip")
    d.text(312, 160, "the stack is put aside; the child's worker takes it up at once", "small moved")
    lane(
        214,
        "The child ends first",
        [(120, 180, "b", "child"), (380, 320, "c", "steals other work")],
        [(170, 230, "a", "parent"), (400, 300, "a", "parent, after the join")],
    )
    d.path("M300 248C330 248 366 262 396 298", "move", "tip")
    d.text(246, 344, "the result lies in the record; the parent does not stop", "small moved")
    d.text(
        24,
        382,
        "Time runs to the right. Both meet at one word, and whoever comes second goes on with the parent: no worker "
        "waits.",
        "small",
    )
    return d.svg()


def main():
    folder = (
        sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    )
    for name, draw in (("stack", stack), ("deque", deque), ("join", join)):
        with open(os.path.join(folder, name + ".svg"), "w", encoding="utf-8") as f:
            f.write(draw())


if __name__ == "__main__":
    main()
