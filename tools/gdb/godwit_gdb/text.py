"""How things are printed: lines, tables, places."""

import os
import re

import gdb

MOST_LISTED = 200


def say(text=""):
    gdb.write(text + "\n")


def table(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths)]
        say("  ".join(cells + [row[-1]]).rstrip())


def without_anonymous(function):
    """A function's name without the namespaces that have none: their brackets are no parameters."""
    return (function or "").replace("(anonymous namespace)::", "")


def place_text(place):
    if place is None:
        return "?"
    function, file, line = place
    function = without_anonymous(function)
    function = re.sub(r"\(.*", "", function) or function
    return f"{function} at {os.path.basename(file)}:{line}" if file else function
