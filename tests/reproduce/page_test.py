"""Tests of the page of scripts/reproduce: from what a tiny run left (tiny.json) to table, charts and sentences. Needs no build.

page_test.py SOURCE_FOLDER
"""

import html
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE = sys.argv[1]
sys.path.insert(0, os.path.join(SOURCE, "bench"))
import npb  # noqa: E402
from reproduce import busy, charts, claims, cli, data, overview, page, papers, plan, rows  # noqa: E402

RAW = json.load(open(os.path.join(SOURCE, "tests", "reproduce", "tiny.json"), encoding="utf-8"))
RUN = {"preset": "tiny", "workers": 2, "command": "scripts/reproduce --tiny", "date": "2026-01-01", "versions": ["0"], "busy": 0.0}
TIMES = re.compile(r"(^|_)(s|us|ns|seconds|ticks|cycles|tc_ms|p10|p90|rate)$|^(over_|efficiency|mteps|speed_up|busy$|ready$)|^(serial|threads|godwit \d|\d hosts)( cpu)?$")


def rounds(x, chance, of=None):
    """The same with three rounds where a tiny run has one."""
    if isinstance(x, dict):
        return {k: rounds(v, chance, k) for k, v in x.items()}
    if of == "seconds" and isinstance(x, list) and len(x) == 1:
        return [x[0], *(x[0] * chance.uniform(0.8, 1.2) for _ in range(2))]
    if of in npb.NAMES:
        return [x[0], *({k: v * chance.uniform(0.8, 1.2) for k, v in x[0].items()} for _ in range(2))]
    return [rounds(v, chance) for v in x] if isinstance(x, list) else x


def other_times(x, chance, of=""):
    """The same with every time changed at random."""
    if isinstance(x, dict):
        return {k: other_times(v, chance, k) for k, v in x.items() if k != "about"} | ({"about": x["about"]} if "about" in x else {})
    if isinstance(x, list):
        return [other_times(v, chance, of) for v in x]
    return x * 10 ** chance.uniform(-2, 2) if isinstance(x, float) and TIMES.search(of) else x


def records(foreign=0.0, stolen=0.0):
    return {n: {**rounds(r, random.Random(n)), "foreign_cpus": foreign, "stolen_cpus": stolen} for n, r in RAW.items()}


def experiments():
    return plan.plan(plan.Machine("no-such-build", 2), "tiny")


def sections(of):
    return [cli.section(e, of) for e in experiments()]


def left_by(of, kept=()):
    """What a run leaves in its folder: {name of a file: text}."""
    with tempfile.TemporaryDirectory() as out:
        page.write(out, RUN, sections(of), list(kept))
        found = {}
        for folder, _, names in os.walk(out):
            for n in names:
                with open(os.path.join(folder, n), encoding="utf-8") as f:
                    found[os.path.relpath(os.path.join(folder, n), out)] = f.read()
        return found


def contrast(a, b):
    def light(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        parts = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    high, low = sorted((light(a), light(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


class FirstTable(unittest.TestCase):
    def test_every_row_has_a_verdict_and_a_link_that_exists(self):
        files = left_by(records())
        text = files["report.html"]
        table = text[text.index('<table class="overview">') :].split("</table>")[0]
        found = re.findall(r'<tr><td><a href="#([^"]+)">([^<]+)</a></td><td[^>]*>([^<]+)</td><td[^>]*>([^<]+)</td><td class="verdict">([^<]+)<', table)
        self.assertEqual([html.unescape(f[1]) for f in found], [e.title for e in experiments()])
        for link, _, paper, ours, verdict in found:
            self.assertEqual(text.count(f'id="{link}"'), 1, link)
            self.assertIn(verdict, overview.VERDICTS)
            self.assertTrue(ours.strip())
            self.assertTrue(any(k in paper for k in papers.SOURCES), paper)
        self.assertLess(text.index('class="overview"'), text.index("<svg"))  # the page opens with it

    def test_the_same_in_markdown(self):
        text = left_by(records())["report.md"]
        headings = {overview.slug(h) for h in re.findall(r"^## (.+)$", text, re.M)}
        links = re.findall(r"^\| \[[^\]]+\]\(#([^)]+)\) \|.*\| ([^|]+) \|$", text, re.M)
        self.assertEqual(len(links), len(experiments()))
        for link, verdict in links:
            self.assertIn(link, headings)
            self.assertIn(verdict, overview.VERDICTS)

    def test_a_verdict(self):
        def of(*claims_of):
            return overview.verdict([data.Claim("w", met, "7", short, was_busy) for met, short, was_busy in claims_of])

        yes, no, unknown, not_quiet = (True, "a", False), (False, "a", False), (None, "a", False), (None, "a", True)
        self.assertEqual(of(yes, unknown), overview.AGREES)
        self.assertEqual(of(yes, no, not_quiet), overview.DIFFERS)
        self.assertEqual(of(yes, not_quiet), busy.NOT_JUDGED)
        self.assertEqual(of(unknown), overview.UNSEEN)
        self.assertEqual(of(yes, (False, "", False)), overview.AGREES)  # beyond the papers
        self.assertEqual(of((True, "", False)), overview.UNSEEN)  # nothing of the papers'
        said = overview.ours([data.Claim("w", False, "9", "x"), data.Claim("w", True, "7", "y"), data.Claim("w", False, "5")])
        self.assertEqual(said, "x: not so: 9; y: 7; of what is asked here beyond the papers, 1 of 1 was not so")

    def test_an_order_that_a_round_did_not_show_is_not_so(self):
        def of(*stalling):
            record = json.loads(json.dumps(RAW["c9_pfor"])) | {"foreign_cpus": 0.0, "stolen_cpus": 0.0}
            for r in next(m for m in record["result"]["measurements"] if "rows" in m)["rows"]:
                r["of_rounds"]["outstanding_us"] = list(stalling) if r["policy"] == "stalling" else [5.0, 5.0, 5.0]
            return [c.met for c in claims.of("C9", data.Data([record])) if "under stalling" in c.what]

        self.assertEqual([of(6.0, 7.0, 8.0), of(6.0, None, 8.0), of(6.0, 4.0, 8.0), of(None, None, None)], [[True], [False], [False], [None]])

    def test_what_tests_decide(self):
        kept = cli.kept_lines(os.path.join(SOURCE, "results", "reproduce", "tiny"))
        self.assertEqual(len(kept) + sum(bool(r.experiments) for r in rows.ROWS), 52)
        target = os.path.join(SOURCE, "docs", "results", "table.md")
        with open(target, encoding="utf-8") as f:
            anchors = set(re.findall(r'<a id="([^"]+)">', f.read()))
        for line in kept:
            path, anchor = line.link.split("#")
            self.assertEqual(os.path.normpath(os.path.join(SOURCE, "results", "reproduce", "tiny", path)), os.path.normpath(target))
            self.assertIn(anchor, anchors)
        self.assertEqual(cli.kept_lines("/elsewhere"), [])


class Charts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.sections = {s["name"]: s for s in sections(records())}
        cls.all = [(n, c) for n, s in cls.sections.items() if s["content"] for c in s["content"].charts]

    def test_every_axis_has_a_unit(self):
        self.assertGreater(len(self.all), 25)
        for name, c in self.all:
            for label in [c.x] + ([c.y] if hasattr(c, "y") else []):
                self.assertTrue(charts.unit_of(label), (name, label))
        with self.assertRaises(ValueError):
            charts.unit_of("time")

    def test_three_significant_digits(self):
        chance = random.Random(1)
        for _ in range(3000):
            said = charts.text_of(chance.choice((1, -1)) * 10 ** chance.uniform(-7, 11))
            digits = re.sub(r"e[-+]\d+| [MG]|[^\d]", "", said).strip("0")
            self.assertLessEqual(len(digits), 3, said)
        for text, value in (("1 M", 999999.0), ("14.4 M", 14.44e6), ("1,110", 1107.0), ("0.0432", 0.043245), ("0", 0.0), ("147,000", 147392)):
            self.assertEqual(charts.text_of(value), text)

    def test_workers_are_whole(self):
        self.assertEqual(charts.ticks(1, 4, False, whole=True), [1, 2, 4])
        self.assertEqual(charts.ticks(1, 48, True, whole=True), [1, 2, 4, 8, 16, 32])
        for name, c in self.all:
            if charts.unit_of(c.x) == "workers":
                self.assertNotRegex(charts.svg(c), r'text-anchor="middle">1\.\d', name)

    def test_what_the_papers_print_is_drawn_hollow(self):
        for name in ("U11", "U13", "U14", "U15", "U16", "C8", "C9", "C11", "C12", "C13", "M5", "G9", "G14"):
            drawn = "".join(charts.svg(c) for c in self.sections[name]["content"].charts)
            self.assertIn('fill="var(--bg)"', drawn, name)
        for name, c in self.all:
            for d in getattr(c, "dots", []):
                self.assertTrue(not d.source or d.source.split()[0] in papers.SOURCES, (name, d))
        drawn = charts.svg(self.sections["C8"]["content"].charts[0])  # an efficiency of 97.7 %
        self.assertIn("greedy, the paper: 2.91, 2.31", drawn)

    def test_bars_over_rounds(self):
        for name in ("U12", "U14", "C8", "C11", "C12", "C13", "M5", "M7", "G15"):
            some = [c for c in self.sections[name]["content"].charts if "Bars: " in c.note]
            self.assertTrue(some, name)
            points = [p for c in some for p in (getattr(c, "dots", None) or [p for s in c.series.values() for p in s])]
            self.assertTrue(any(p[2] is not None and p[2] < p[3] for p in points), name)

    def test_what_is_compared_in_time_has_one_axis(self):
        (c,) = self.sections["C10"]["content"].charts
        self.assertEqual(list(c.panels), ["greedy", "stalling", "child_full", "child_rtc"])
        self.assertEqual(charts.svg(c).count(">time, s<"), 1)

        def ends(to):  # of the lines of two panels, the first ten times as long
            panels = {"a": {"w": [(0, 1), (10, 1)], "j": [(0, 0), (10, 1)]}, "b": {"w": [(0, 1), (to, 1)], "j": [(0, 0), (to, 1)]}}
            drawn = charts.svg(data.Panels("t", "time, s", "workers or joins", panels))
            return [float(x) for x in re.findall(r'<polyline[^>]* points="[\d.]+,[\d.]+ ([\d.]+),', drawn)]

        self.assertAlmostEqual(ends(1)[0], charts.WIDTH - charts.RIGHT, delta=1)
        self.assertLess(ends(1)[1], 0.3 * ends(1)[0])

    def test_address_space_is_shown_as_a_difference(self):
        (c,) = self.sections["U16"]["content"].charts
        first, last = {p: x[0][1] for p, x in c.series.items()}, {p: x[-1][1] for p, x in c.series.items()}
        self.assertEqual(set(first.values()), {0})
        self.assertGreater(last["iso"], 1.5 * last["greedy"])

    def test_nothing_to_draw(self):
        for c in (data.Chart("t", "workers", "time, s", {"a": []}), data.Dots("t", "time, s", [data.Dot("a", 1, source="UA")]),
                  data.Panels("t", "time, s", "workers", {})):
            self.assertEqual((charts.svg(c), charts.picture(c)), ("", ""))

    def test_contrast(self):
        for i in (0, 1):
            of = {name: pair[i] for name, pair in charts.COLOURS.items()}
            for name in ("fg", "soft", "link", *(f"c{n}" for n in range(8))):
                self.assertGreaterEqual(contrast(of[name], of["bg"]), 4.5, (name, i))
            for name in ("fg", "soft", "link"):
                self.assertGreaterEqual(contrast(of[name], of["head"]), 4.5, (name, i))

    def test_colour_is_never_alone(self):
        self.assertEqual(len(set(charts.MARKS)), 8)
        self.assertEqual(len(set(charts.DASHES)), 8)

    def test_pictures_stand_alone(self):
        files = left_by(records())
        pictures = {n: t for n, t in files.items() if n.startswith("pictures/")}
        self.assertEqual({"pictures/" + x for x in re.findall(r"\]\(pictures/([^)]+)\)", files["report.md"])}, set(pictures))
        for text in pictures.values():
            self.assertIn("prefers-color-scheme:dark", text)
            self.assertEqual(re.findall(r"(?:href|src|url)\W", text), [])


class BusyMachine(unittest.TestCase):
    """Nothing that depends on times is judged beside other programs: one mechanism for all sections."""

    def test_no_claim_or_sentence_depends_on_times(self):
        chance = random.Random(7)
        for foreign, stolen in ((1.0, 0.0), (0.0, 0.5)):  # other programs; other virtual machines
            was = sections(records(foreign, stolen))
            now = sections({n: other_times(r, chance) for n, r in records(foreign, stolen).items()})
            for a, b in zip(was, now):
                self.assertEqual([c.met for c in a["claims"]], [c.met for c in b["claims"]], a["name"])
                if a["content"]:
                    self.assertEqual(a["content"].sentences, b["content"].sentences, a["name"])

    def test_on_a_quiet_one_they_do(self):
        was, changed = sections(records()), set()
        for seed in range(5):
            now = sections({n: other_times(r, random.Random(seed)) for n, r in records().items()})
            changed |= {a["name"] for a, b in zip(was, now) if [c.met for c in a["claims"]] != [c.met for c in b["claims"]]}
        self.assertLessEqual({"U11", "U13", "U14", "C8", "C12", "C13", "M6", "M7", "G12", "G15"}, changed)

    def test_every_section_says_so_once(self):
        for foreign in (0.0, 1.0):
            text = left_by(records(foreign))["report.html"]
            for s in text.split('<h3 id="')[1:]:
                if "<figure>" in s or "<li>" in s:
                    self.assertEqual(s.count('class="busy"'), int(foreign), s[:40])
            self.assertEqual("--again --only U11" in text, foreign > 0)
        times = [x for x in overview.lines(sections(records(1.0))) if x.verdict == busy.NOT_JUDGED]
        self.assertGreater(len(times), 8)
        self.assertFalse([x for x in overview.lines(sections(records())) if x.verdict == busy.NOT_JUDGED])

    def test_steps_of_several_hosts_count(self):
        far = {**RAW["u15_btc_2_am_1"], "foreign_cpus": 0.4, "stolen_cpus": 0.2}
        self.assertEqual(far["hosts"], 2)
        self.assertAlmostEqual(data.Data([far]).busy(), 0.6)

    def test_own_processes_are_no_others(self):
        saved = busy.machine_seconds
        try:
            others = busy.Others()
            start = others._from
            burn = "import time\nwhile time.process_time() < 0.4: pass\ntime.sleep(60)"
            # A daemon: its parent ends without waiting for it, below a process that lives on.
            keeper = subprocess.Popen(["/bin/sh", "-c", f"{sys.executable} -c '{burn}' & {sys.executable} -c '{burn}' & sleep 60; :"],
                                      start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            ended = time.monotonic() + 60
            while sum(others._seen.values()) < 0.7 and time.monotonic() < ended:
                others.look(keeper.pid)
                time.sleep(0.02)
            self.assertGreaterEqual(sum(others._seen.values()), 0.7)
            os.killpg(keeper.pid, signal.SIGKILL)  # its sleep as well
            keeper.wait()
            own = max(sum(others._seen.values()), busy.waited_seconds() - start[3])
            busy.machine_seconds = lambda: (start[1] + own + 3.0, start[2] + 1.0)
            foreign, stolen = others.cpus()
            self.assertAlmostEqual(foreign / stolen, 3.0, delta=0.3)
        finally:
            busy.machine_seconds = saved

    def test_again_measures_what_a_busy_machine_measured(self):
        steps = [(e, s) for e in experiments() for s in e.steps if e.name == "U11"]
        ran = []

        class Kept:
            build = "build"

            def load(self, step):
                return {"step": step.name, "status": "done", "foreign_cpus": 1.0 if step.name == "u11_spawn" else 0.0}

            def run(self, step, _):
                ran.append(step.name)
                return {"step": step.name, "status": "done", "seconds": 1.0}

        machine = plan.Machine("no-such-build", 2)
        for flags, wanted in (([], []), (["--again"], ["u11_spawn"])):
            cli.measure(False, cli.options(flags).again, Kept(), machine, steps)
            self.assertEqual(ran, wanted)


class Finished(unittest.TestCase):
    """The page that lies in docs/results."""

    def test_it_opens_with_the_table_and_all_it_names_is_there(self):
        folder = os.path.join(SOURCE, "docs", "results")
        with open(os.path.join(folder, "reproduce.md"), encoding="utf-8") as f:
            text = f.read()
        names = {overview.slug(h) for h in re.findall(r"^## (.+)$", text, re.M)}
        lines = re.findall(r"^\| \[[^\]]+\]\(([^)]+)\) \|.*\| ([^|]+) \|$", text, re.M)
        self.assertEqual(len(lines), 52)
        self.assertLess(text.index("| [Creating a task]"), text.index("\n## "))
        for link, verdict in lines:
            self.assertIn(verdict, overview.VERDICTS)
            self.assertTrue(link[1:] in names if link.startswith("#") else os.path.exists(os.path.join(folder, link.split("#")[0])), link)
        pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text)
        self.assertGreater(len(pictures), 20)
        self.assertLess(sum(os.path.getsize(os.path.join(folder, p)) for p in pictures), 2e6)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
