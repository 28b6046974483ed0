#!/usr/bin/env python3
"""godwit-scale as a user calls it: a table, a page, JSON, and what it says about bad input.

    tests/scale/scale_test.py GODWIT_SCALE PROGRAM_THAT_CHARGES PROGRAM_THAT_DOES_NOT
"""

import html.parser
import json
import os
import subprocess
import sys
import tempfile

TOOL, CHARGES, CHARGES_NOT = sys.argv[1:4]


def run(*arguments, status=0):
    done = subprocess.run([sys.executable, TOOL, *arguments], capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == status, (arguments, done.returncode, done.stdout, done.stderr)
    return done


def refused(text, *arguments, status=1):
    said = run(*arguments, status=status).stderr
    assert text in said, (text, said)
    assert "Traceback" not in said, said


class Checker(html.parser.HTMLParser):
    """Every element that is opened is closed."""

    EMPTY = {"meta"}

    def __init__(self):
        super().__init__()
        self.open = []
        self.seen = []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()


def main():
    with tempfile.TemporaryDirectory() as folder:
        page, numbers = os.path.join(folder, "page.html"), os.path.join(folder, "numbers.json")
        common = ["--machine", "ito,latency_ns=2000", "--per-host", "8", "--workers", "1,8,32", "--seeds", "2"]
        out = run(*common, "--page", page, "--json", numbers, CHARGES, "12").stdout
        assert "speed-up" in out and "32 workers are" in out, out
        with open(numbers, encoding="utf-8") as f:
            found = json.load(f)
        one, eight, last = found["rows"]
        assert abs(one["speed_up"] - 1) < 0.01 and abs(one["efficiency"] - 1) < 0.01, one
        assert 6 < eight["speed_up"] <= 8 and eight["messages_per_host_ms"] == 0, eight
        assert last["hosts"] == 4 and 8 < last["speed_up"] <= 32 and last["messages_per_host_ms"] > 0, last
        for row in found["rows"]:
            shares = row["efficiency"] + sum(row[k] for k in ("scheduler", "no_work", "join", "other_hosts"))
            assert 0.98 < shares < 1.02, row
            assert row["time_low_ns"] <= row["time_ns"] <= row["time_high_ns"], row
        again = os.path.join(folder, "again.json")
        run(*common, "--json", again, CHARGES, "12")
        with open(again, encoding="utf-8") as f:
            for a, b in zip(json.load(f)["rows"], found["rows"]):
                assert a["time_ns"] == b["time_ns"], "the same seeds give the same times"
        checker = Checker()
        with open(page, encoding="utf-8") as f:
            checker.feed(f.read())
        assert checker.seen.count("svg") == 2 and not checker.open, checker.open

        out = run("--quick", *common, CHARGES, "12").stdout
        assert "span" in out and "likely" in out, out
        out = run("--clock", "measured", "--workers", "1,4", CHARGES_NOT, "20").stdout
        assert "4 workers are" in out, out

        refused("charged nothing (godwit::sim::charge)", "--workers", "2", CHARGES_NOT, "10")
        refused("wrote no statistics", "--workers", "2", "/bin/true")
        refused("No such file", "--workers", "2", "/no/such/program")
        refused("there is no key 'lat'", "--machine", "ito,lat=5", "--workers", "2", CHARGES, "8")
        refused("no list of numbers", "--workers", "2,x", CHARGES, status=2)
        refused("1 and more", "--workers", "0", CHARGES, status=2)
        refused("No such file", "--workers", "2", "--page", "/no/such/folder/page", CHARGES, "8")


main()
