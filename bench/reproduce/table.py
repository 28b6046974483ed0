"""scripts/reproduce --table: every row of rows.py with its command, and passed or what was not met and why.

What a row gave is kept in table.json at once, so that a run that was stopped goes on with the rows that are left; table.md says the same for
people. A row is run again when its sources have changed, when it failed, or when only a smaller form of it has run. cli.py has the options,
claims.py what is asked of experiments. Document: docs/reproduce.md. Test: tests/reproduce.
"""

import collections
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time

from results.head import Repository

from . import claims
from .building import build
from .data import Data
from .plan import PRESETS, ROOT
from .rows import ROWS

TESTED = ["CMakeLists.txt", "cmake", "include", "src", "tests", "integrations", "models", "examples"]
MEASURED = ["bench", "scripts"]
STATES = ("pass", "not met", "not judged", "failed", "not run")


def ctest(row, folder):
    return ["ctest", "--test-dir", folder, "-R", row.regex, "--no-tests=error", "--timeout", "600"]


def sources(row):
    """What decides the row: folders whose changes make its last run old."""
    measured = row.experiments or row.scale or "bench" in row.regex
    return TESTED + (MEASURED if measured else [])


def commands(row, form):
    """What decides the row, to be pasted into a shell in the project's folder."""
    size = "" if form == "full" else " --" + form
    found = [shlex.join(ctest(row, "build/release")[:5])] if row.tests else []
    if row.experiments:
        found.append(f"scripts/reproduce{size} --only {','.join(row.experiments)}")
    if row.scale:
        found.append(f"scripts/reproduce --scale{size} --only {','.join(row.scale)}")
    return found


class Table:
    """Which rows have run, and what they gave."""

    def __init__(self, folder):
        self.folder = folder
        self.path = os.path.join(folder, "table.json")
        self.rows = self.read()

    def read(self):
        try:
            with open(self.path, encoding="utf-8") as f:
                return json.load(f)["rows"]
        except OSError:
            return {}
        except (ValueError, KeyError) as e:
            sys.exit(f"scripts/reproduce: {self.path} is no table ({e}): remove it, then run the rows again")

    def result(self, row):
        """What there is to say of a row: its last run, or that there was none."""
        if row.name in self.rows:
            return self.rows[row.name]
        return {"status": "not run", "why": []}

    def keep(self, row, result):
        """Written at once, all or nothing, with the page; another run may have added rows meanwhile."""
        self.rows = {**self.read(), row.name: result}
        order = {r.name: self.rows[r.name] for r in ROWS if r.name in self.rows}
        write(self.path, json.dumps({"rows": order}, indent=1) + "\n")
        write(os.path.join(self.folder, "table.md"), self.page())

    def count(self, rows=ROWS):
        n = collections.Counter(self.result(r)["status"] for r in rows)
        return ", ".join(f"{n[s]} {s}" for s in STATES if n[s])

    def lines(self, rows):
        """As text: a line for a row, its commands, and what was not met."""
        for row in rows:
            r = self.result(row)
            note = f" ({r.get('note') or row.note()})" if r.get("note") or row.note() else ""
            yield f"{row.name:4} {row.kind:5} {r['status']:10} {row.what}{note}"
            yield from ("        " + c for c in commands(row, r.get("form", "full")))
            for reason, claims in by_reason(r):
                yield from ("        " + c for c in claims)
                if reason:
                    yield "            because: " + reason
            if "commit" in r:
                yield f"        {told(r)}: {r['form']} form, {r['date']}, commit {r['commit']}"

    def page(self):
        lines = [
            "# Everything the papers describe, row by row",
            "",
            f"{len(ROWS)} rows: {self.count()}. Written by `scripts/reproduce --table --run`, which goes on with the rows that are left"
            " ([../reproduce.md](../reproduce.md)); `scripts/reproduce --table` prints it, with every row's command.",
            "",
            "Pass: every test passed, and all that is asked of the experiment was so. Not met: what was not, and the figure. Not judged: nothing was"
            " missed, but some of what is asked could not be judged, mostly times while other programs used the CPUs. Model: the simulator decides it"
            " too.",
            "",
            "| row | | what | verdict | measured | why, or what was seen |",
            "|---|---|---|---|---|---|",
        ]
        for row in ROWS:
            r = self.result(row)
            note = r.get("note") or row.note()
            seen = "<br>".join("; ".join(claims) + (f". Because: {reason}" if reason else "") for reason, claims in by_reason(r)) or told(r)
            verdict = r["status"] if r["status"] == "pass" else f"**{r['status']}**"
            measured = f"{r['form']}, {r['date']}, `{r['commit']}`" if "commit" in r else ""
            cells = [f'<a id="{row.name.lower()}"></a>{row.name}', row.kind, row.what, verdict + (f" ({note})" if note else ""), measured, seen]
            lines.append("| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |")
        lines += ["", "## Commands", "", "| row | command |", "|---|---|"]
        for row in ROWS:
            these = commands(row, self.result(row).get("form", "full"))
            lines.append(f"| {row.name} | " + "<br>".join(f"`{c}`".replace("|", "\\|") for c in these) + " |")
        lines += ["", "## What was asked of experiments", "", "| row | asked | so? | seen |", "|---|---|---|---|"]
        for row in ROWS:
            for c in self.result(row).get("claims", []):
                so = {True: "yes", False: "**no**", None: "not judged"}[c["met"]]
                lines.append(f"| {row.name} | {c['what']} | {so} | {c['seen']} |".replace("\n", " "))
        return "\n".join(lines) + "\n"


def by_reason(result):
    """[(reason, claims)] of what was not met: a reason that several claims give ("claim: figure; reason") once; "" where they give none."""
    asked = {f"{c['what']}: {c['seen']}": c["what"] for c in result.get("claims", [])}
    found = {}
    for line in result["why"]:
        what = asked.get(line, "")
        figure, _, reason = line[len(what) :].partition("; ")
        found.setdefault(reason, []).append(what + figure)
    return list(found.items())


def told(result):
    """In a few words, what a row's run consisted of."""
    t, words = result.get("tests"), []
    if t:
        words.append(f"{t['passed']} tests passed" + (f", {t['skipped']} skipped" if t["skipped"] else ""))
    if result.get("claims"):
        n = collections.Counter(c["met"] for c in result["claims"])
        words.append(f"{n[True]} of {len(result['claims'])} claims met" + (f", {n[None]} not judged" if n[None] else ""))
    return ", ".join(words)


def write(path, text):
    """All or nothing: a file that is there is whole."""
    with tempfile.NamedTemporaryFile("w", dir=os.path.dirname(path), prefix=".", suffix=".tmp", delete=False, encoding="utf-8") as f:
        f.write(text)
    os.chmod(f.name, 0o644)
    os.replace(f.name, path)


def run_tests(row, folder):
    """What ctest said: how many passed and were skipped, and the names of those that failed."""
    done = subprocess.run(ctest(row, folder), stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False)
    states = re.findall(r"^ *\d+/\d+ Test +#\d+: (.+?) \.+[ *]*(Passed|Skipped|Not Run \(Disabled\)|[A-Z]\S*)", done.stdout, re.M)
    if not states:
        last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        return {"passed": 0, "skipped": 0, "failed": [f"ctest ran nothing: {last}"]}
    skipped = sum(s in ("Skipped", "Not Run (Disabled)") for _, s in states)
    failed = [n for n, s in states if s not in ("Passed", "Skipped", "Not Run (Disabled)")]
    return {"passed": len(states) - skipped - len(failed), "skipped": skipped, "failed": failed}


def verdict(row, tests, found, failures):
    """(status, why) of all that a row's run gave: tests, claims, steps or parts that failed."""
    why = [f"{len(tests['failed'])} tests failed: {', '.join(tests['failed'][:5])}"] if tests and tests["failed"] else []
    why += failures
    if why:
        return "failed", why
    no = [f"{c['what']}: {c['seen']}" for c in found if c["met"] is False]
    if no:
        return "not met", no
    unknown = [f"{c['what']}: {c['seen']}" for c in found if c["met"] is None]
    if tests and not tests["passed"]:
        unknown.append(f"all of its {tests['skipped']} tests were skipped here")
    if (row.experiments or row.scale) and not found:
        unknown.append("nothing that is asked of it could be measured here")
    return ("not judged", unknown) if unknown else ("pass", [])


class Runner:
    """Runs rows: the tests by ctest, experiments and parts of the simulation as given (functions that say what came out)."""

    def __init__(self, table, form, folder, measure, simulate):
        self.table, self.form, self.folder = table, form, folder
        self.measure, self.simulate = measure, simulate
        self.repository = Repository(ROOT)
        self.commit, self.changed = self.repository.commit(), self.repository.changed(TESTED + MEASURED)

    def current(self, row):
        """Is what is kept of the row as good as a new run?"""
        r = self.table.result(row)
        return (
            r["status"] in ("pass", "not met", "not judged")
            and not self.changed
            and PRESETS.index(r["form"]) >= PRESETS.index(self.form)
            and not r["commit"].endswith("-dirty")
            and self.repository.since(r["commit"], sources(row)) == 0
            and r["decided_by"] == [row.regex, *row.experiments, *row.scale]
        )

    def run(self, row):
        start, found, failures, left_out = time.monotonic(), [], [], []
        tests = run_tests(row, self.folder) if row.tests else None
        for name in row.experiments:
            records = self.measure(name)
            failures += [f"{r['step']}: {r['reason']}" for r in records if r.get("status") == "failed"]
            data = Data(records)
            found += [vars(c) for c in claims.of(name, data)] if data else []
            left_out += [f"{r['step']}: {r['reason']}" for r in records if r.get("status") == "skipped"]
        for part in row.scale:
            checks, wrong = self.simulate(part)
            failures += wrong
            found += checks
        status, why = verdict(row, tests, found, failures)
        result = {
            "status": status,
            "why": why,
            "note": row.note(),
            "commit": self.commit + ("-dirty" if self.changed else ""),
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "form": self.form if row.experiments or row.scale else PRESETS[-1],  # tests have one form
            "seconds": round(time.monotonic() - start, 1),
            "decided_by": [row.regex, *row.experiments, *row.scale],
            "claims": found,
            "left_out": left_out,
        }
        if tests:
            result["tests"] = tests
        self.table.keep(row, result)
        return result

    def run_all(self, rows, fresh):
        """Those that are left, or all, in order. Gives back whether one failed."""
        rows = [r for r in rows if r.tests or r.experiments or r.scale]
        todo = [r for r in rows if fresh or not self.current(r)]
        print(f"scripts/reproduce: {len(todo)} of {len(rows)} rows to run", file=sys.stderr)
        bad = False
        for i, row in enumerate(todo):
            print(f"[row {i + 1}/{len(todo)}] {row.name} {row.what}", file=sys.stderr, flush=True)
            result = self.run(row)
            bad |= result["status"] == "failed"
            print(f"    {row.name}: {result['status']}", *result["why"][:3], sep="\n        ", file=sys.stderr, flush=True)
        return bad


def built(given):
    """The build that rows are run with: tests too."""
    return build(given, "scripts/reproduce", "all", tests=True)
