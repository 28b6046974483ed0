"""Tests of scripts/reproduce: a tiny run, its tables against raw data, resuming, stopping, input. The page: page_test.py.

reproduce_test.py SOURCE_FOLDER BUILD_FOLDER
"""

import contextlib
import csv
import io
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD = sys.argv[1], sys.argv[2]
SCRIPT = os.path.join(SOURCE, "scripts", "reproduce")
sys.path.insert(0, os.path.join(SOURCE, "bench"))
from reproduce import cli, data, plan, sections, store, trace  # noqa: E402


def reproduce(out, *flags, tiny=True):
    command = [sys.executable, "-B", SCRIPT, *flags]
    if out is not None:
        command += ["--build", BUILD, "--out", out, "--workers", "2"]
    return subprocess.run(
        command + (["--tiny"] if tiny else []), capture_output=True, text=True, check=False, timeout=250
    )


def load(out, step):
    with open(os.path.join(out, "raw", step + ".json"), encoding="utf-8") as f:
        return json.load(f)


def text_of(out, name):
    with open(os.path.join(out, name), encoding="utf-8") as f:
        return f.read()


class TinyRun(unittest.TestCase):
    """One run of some experiments; the tests look at what it left."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.out = cls.folder.name
        cls.done = reproduce(cls.out, "--only", "U11,U16,C9,C10,c12,C13,M6,M7,G4,G12,G13,G14,G15")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_everything_ran(self):
        self.assertEqual(self.done.returncode, 0, self.done.stderr)
        self.assertIn("0 skipped, 0 failed", self.done.stdout)

    def test_tables_hold_the_raw_data(self):
        rows = [m for m in load(self.out, "c9_recpfor")["result"]["measurements"] if "rows" in m][0]["rows"]
        with open(os.path.join(self.out, "csv", "C9-2.csv"), encoding="utf-8") as f:
            table = list(csv.DictReader(f))
        ours = [r for r in table if r["source"] == "this run"]
        self.assertEqual([r["policy"] for r in ours], [r["policy"] for r in rows])
        self.assertGreaterEqual(len(rows), 3)
        pages = [text_of(self.out, "report.html"), text_of(self.out, "report.md")]
        for raw, shown in zip(rows, ours):
            self.assertEqual(float(shown["s"]), raw["seconds"])
            self.assertEqual(int(shown["steals"]), raw["steals"])
            for page in pages:
                self.assertIn(data.number(raw["seconds"]), page)
        theirs = [r for r in table if r["source"] != "this run"]
        self.assertIn("8.3", [r["s"] for r in theirs])  # the paper's greedy RecPFor

    def test_times_of_lcs(self):
        rows = [
            m for m in load(self.out, "c12_9")["result"]["measurements"] if m["title"].endswith(": bounds")
        ]
        with open(os.path.join(self.out, "csv", "C12-1.csv"), encoding="utf-8") as f:
            shown = [(r["policy"], float(r["s"])) for r in csv.DictReader(f)]
        self.assertEqual(shown, [(r["policy"], r["seconds"]) for r in rows[0]["rows"]])

    def test_one_result_of_every_kind(self):
        lcs = [
            m for m in load(self.out, "c12_9")["result"]["measurements"] if m["title"].endswith(": bounds")
        ]
        self.assertGreater(lcs[0]["rows"][0]["upper_s"], lcs[0]["rows"][0]["lower_s"])
        workers = [p for p in load(self.out, "u16_greedy_2")["result"]["processes"] if p["role"] == "worker"]
        self.assertGreater(max(p["virtual_bytes"] for p in workers), 2**30)
        series = load(self.out, "c10_greedy")["result"]["series"]
        self.assertEqual(series["workers"], 2)
        self.assertGreater(max(series["busy"]), 0)

    def test_costs_of_threads(self):
        rows = [m for m in load(self.out, "m6_costs")["result"]["measurements"] if "rows" in m][0]["rows"]
        with open(os.path.join(self.out, "csv", "M6-1.csv"), encoding="utf-8") as f:
            shown = {r["what"]: float(r["godwit"]) for r in csv.DictReader(f)}
        self.assertEqual(shown, {r["what"]: r["median_ns"] for r in rows if r["library"] == "godwit"})
        self.assertIn("create + join, one at a time", shown)

    def test_moves(self):
        with open(os.path.join(self.out, "csv", "G4-1.csv"), encoding="utf-8") as f:
            storms = list(csv.DictReader(f))
        self.assertEqual({(r["storms"], r["right"]) for r in storms}, {("2", "2")})
        rows = [m for m in load(self.out, "g13_one")["result"]["measurements"] if "rows" in m][0]["rows"]
        with open(os.path.join(self.out, "csv", "G13-1.csv"), encoding="utf-8") as f:
            shown = [r for r in csv.DictReader(f) if r["hosts"] == "1"]
        self.assertEqual([float(r["others' ghosts"]) for r in shown], [r["others_ghosts_a_step"] for r in rows])
        self.assertEqual({r["cells wrong"] for r in shown}, {"0"})
        self.assertIn("storms were right", text_of(self.out, "report.md"))

    def test_the_page_is_self_contained(self):
        page = text_of(self.out, "report.html")
        for name in ("creating-a-task", "use-of-address-space", "busy-workers-and-ready-joins-over-time", "nas-parallel-benchmarks"):
            self.assertIn(f'<h3 id="{name}">', page)
        self.assertIn("<svg", page)
        for outside in ("http:", "https:", "<script", "<link", "src="):
            self.assertNotIn(outside, page)
        self.assertNotIn(os.path.dirname(SOURCE) + os.sep, page)
        self.assertIn("bench/pfor --kind recpfor", page)

    def test_a_rerun_does_only_what_is_missing(self):
        raw = os.path.join(self.out, "raw")
        before = {f: os.stat(os.path.join(raw, f)).st_mtime_ns for f in os.listdir(raw)}
        os.remove(os.path.join(raw, "c9_pfor.json"))
        with open(os.path.join(raw, "u11_spawn.json"), "w", encoding="utf-8") as f:
            f.write('{"step": "u11_spawn", "comm')  # cut off
        again = reproduce(self.out, "--only", "U11,U16,C9,C10,C12,C13,M6,M7,G4,G12,G13,G14,G15")
        self.assertEqual(again.returncode, 0, again.stderr)
        changed = {f for f in before if os.stat(os.path.join(raw, f)).st_mtime_ns != before[f]}
        self.assertEqual(changed, {"c9_pfor.json", "u11_spawn.json"})
        self.assertEqual(load(self.out, "u11_spawn")["status"], "done")


class Interrupted(unittest.TestCase):
    def test_a_stopped_run_goes_on(self):
        with tempfile.TemporaryDirectory() as out:
            command = [
                sys.executable,
                "-B",
                SCRIPT,
                "--tiny",
                "--build",
                BUILD,
                "--out",
                out,
                "--workers",
                "2",
            ]
            command += ["--only", "U11,U12,U14,U16,C8"]
            with subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
            ) as process:
                for line in process.stderr:
                    if line.startswith("[2/"):
                        break
                process.send_signal(signal.SIGINT)
                rest = process.stderr.read()
                process.stdout.read()
                self.assertEqual(process.wait(60), 130, rest)
            self.assertIn("goes on from here", rest)
            self.assertTrue(os.path.exists(os.path.join(out, "report.html")))
            there = set(os.listdir(os.path.join(out, "raw")))
            self.assertIn("u11_spawn.json", there)
            self.assertNotIn("c8_recpfor.json", there)
            first = os.stat(os.path.join(out, "raw", "u11_spawn.json")).st_mtime_ns
            again = reproduce(out, "--only", "U11,U12,U14,U16,C8")
            self.assertEqual(again.returncode, 0, again.stderr)
            self.assertEqual(os.stat(os.path.join(out, "raw", "u11_spawn.json")).st_mtime_ns, first)
            self.assertEqual(load(out, "c8_recpfor")["status"], "done")
            result = load(out, "c8_pfor")["result"]
            seconds = [r["seconds"] for m in result["measurements"] if "rows" in m for r in m["rows"]]
            with open(os.path.join(out, "csv", "C8-1.csv"), encoding="utf-8") as f:
                self.assertEqual([float(r["s"]) for r in csv.DictReader(f)], seconds)


class Scale(unittest.TestCase):
    def test_what_has_run_is_kept_and_the_page_has_charts(self):
        with tempfile.TemporaryDirectory() as out:
            command = [sys.executable, "-B", SCRIPT, "--scale", "--tiny", "--only", "steals,trees", "--build", BUILD, "--out", out]
            first, second = (subprocess.run(command, capture_output=True, text=True, check=False, timeout=250) for _ in range(2))
            self.assertEqual((first.returncode, second.returncode), (0, 0), first.stderr + second.stderr)
            self.assertEqual(first.stderr.count("scale.py: uts"), 6, first.stderr)
            self.assertEqual(second.stderr.count("scale.py: uts"), 0, second.stderr)
            self.assertEqual(len(os.listdir(os.path.join(out, "raw"))), 6)
            self.assertIn("| T1 | 96 |", text_of(out, "report.md"))
            self.assertIn("<svg", text_of(out, "report.html"))
            self.assertGreater(json.loads(text_of(out, "run.json"))["uts.T1.96.ours"]["efficiency"], 0.5)

    def test_a_run_that_fails_costs_its_row_only(self):
        with tempfile.TemporaryDirectory() as out:
            program, figures = os.path.join(out, "bench", "scale"), os.path.join(out, "run.json")
            os.mkdir(os.path.dirname(program))
            with open(program, "w", encoding="utf-8") as f:
                real = os.path.abspath(os.path.join(BUILD, "bench", "scale"))
                f.write(f'#!/bin/sh\n[ "$GODWIT_WORKERS" = 96 ] && {{ echo too many >&2; exit 3; }}\nexec {real} "$@"\n')
            os.chmod(program, 0o755)
            command = [sys.executable, "-B", os.path.join(SOURCE, "bench", "scale.py"), "--build", out, "--tiny", "--only", "trees", "--json", figures]
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=250)
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stderr.count("ended with status 3: too many"), 2, done.stderr)
            self.assertEqual(done.stdout.count("| T1 | 96 |"), 2)
            self.assertIn("| failed: see standard error |", done.stdout)
            self.assertEqual(len(json.loads(text_of(out, "run.json"))), 2)  # those on 48 workers

    def test_of_a_part_that_is_none_one_line(self):
        with tempfile.TemporaryDirectory() as out:
            done = reproduce(None, "--scale", "--tiny", "--only", "steels", "--build", BUILD, "--out", out, tiny=False)
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stderr.strip(), "scale.py: --only steels: none of steals, sizes, loops, busy, lcs, wavefront, trees, programs, messages")


class Input(unittest.TestCase):
    def test_wrong_arguments_are_one_line(self):
        for flags in (
            ["--only", "X9"],
            ["--quick", "--tiny"],
            ["--workers", "0"],
            ["--workers", "x"],
            ["--scale", "--list"],
            ["--table", "--scale"],
            ["--run"],
            ["--table", "--tiny", "--run"],
            ["--table", "--only", "X9"],
            ["--slow"],
        ):
            done = reproduce(None, *flags, tiny=False)
            self.assertEqual(done.returncode, 2, flags)
            self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)

    def test_a_build_without_benchmarks(self):
        with tempfile.TemporaryDirectory() as folder:
            done = reproduce(None, "--build", folder, "--out", folder)
            self.assertEqual(done.returncode, 1)
            self.assertIn("no benchmarks in", done.stderr)

    def test_the_list_names_commands_that_exist(self):
        done = reproduce(None, "--list", "--build", BUILD)
        self.assertEqual(done.returncode, 0, done.stderr)
        numbers = ("U11", "U12", "U13", "U14", "U15", "U16", "C8", "C9", "C10", "C11", "C12", "C13", "M5", "M6", "M7", "G4", "G9", "G10", "G11", "G12", "G13", "G14", "G15")
        for name in numbers:
            self.assertIn(f"--only {name}\n", done.stdout)

    def test_a_step_of_a_script(self):
        machine = plan.Machine(BUILD, 2)
        count = next(s for e in plan.plan(machine, "tiny") for s in e.steps if s.name == "m5_count")
        shown = store.command_of(count, BUILD)[1]
        self.assertTrue(shown.startswith("GODWIT_CHECK_FRAMES=0 bench/count_instructions.py --build "), shown)
        count.about["tools"] = ["no-such-tool"]
        self.assertIn("no-such-tool", machine.why_not(count))
        count.about["machine"] = "pdp11"
        self.assertIn("pdp11", machine.why_not(count))

    def test_what_cannot_run_is_skipped_with_a_reason(self):
        machine = plan.Machine(BUILD, 2)
        machine.mpis = []
        steps = [s for e in plan.plan(machine, "quick") for s in e.steps]
        far = [s for s in steps if s.hosts]
        self.assertGreater(len(far), 4)
        for s in far:
            self.assertIn("no mpirun", machine.why_not(s))
        self.assertEqual(len({s.name for s in steps}), len(steps))
        with tempfile.TemporaryDirectory() as empty:
            os.makedirs(os.path.join(empty, "bench"))
            open(os.path.join(empty, "bench", "pfor"), "w", encoding="ascii").close()
            os.chmod(os.path.join(empty, "bench", "pfor"), 0o755)
            machine = plan.Machine(empty, 2)
            machine.mpis = ["openmpi"]
            self.assertIn("no component for openmpi", machine.why_not(far[0]))

    def test_nothing_is_blamed_before_the_build(self):
        with tempfile.TemporaryDirectory() as empty:
            machine = plan.Machine(empty, 2)
            machine.mpis = ["openmpi"]
            steps = [s for e in plan.plan(machine, "quick") for s in e.steps]
            self.assertFalse(machine.built)
            o = cli.options(["--quick", "--only", "U13"])
            with contextlib.redirect_stdout(io.StringIO()) as shown:
                cli.show_list(o, machine, plan.plan(machine, "quick"))
            self.assertIn("Not built yet", shown.getvalue())
            self.assertNotIn("development package", shown.getvalue())
            for s in steps:
                self.assertNotIn("component", machine.why_not(s), s.name)

    def test_counts_are_taken_as_the_papers_take_them(self):
        machine = plan.Machine(BUILD, 2)
        machine.mpis = ["openmpi"]
        steps = {s.name: s for e in plan.plan(machine, "full") for s in e.steps}
        off = {n for n, s in steps.items() if s.environment.get("GODWIT_CHECK_FRAMES") == "0"}
        self.assertLessEqual({"m5_count", "m5_count_sparc", "u13_openmpi_words", "u15_btc_2_am_1"}, off)
        self.assertFalse({n for n in off if n.startswith(("c8", "c11", "u14", "u13_near", "m7"))})
        self.assertIn("GODWIT_CHECK_FRAMES=0", store.command_of(steps["m5_count"], BUILD)[1])


class Claims(unittest.TestCase):
    """Sentences say no more than all rounds showed."""

    def one(self, *seconds):
        return {"seconds": list(seconds)}

    def test_versus(self):
        a, b = self.one(1.0, 1.1, 0.9), self.one(2.0, 2.0, 2.0)
        self.assertIn("a was faster than b in every round", data.versus("a", a, "b", b, 0))
        self.assertIn("b was slower than a in every round", data.versus("b", b, "a", a, 0))
        self.assertIn("no order", data.versus("a", self.one(1, 3, 2), "b", b, 0))
        self.assertEqual(data.versus("a", a, "b", b, 1.0), "")
        self.assertIn("over 1 round); too few rounds", data.versus("a", a, "b", self.one(2), 0))

    def test_order(self):
        theirs = {"x": 1, "y": 2}

        def said(x, y, busy=0.0):
            return data.order("t", {"x": x, "y": y}, theirs, busy)

        self.assertIn("x 5, y 7. The paper's order (x < y) appeared in every round", said([5, 6, 4], [7, 8, 6]))
        # Medians that differ by one event, rounds that disagree; and one round that shows no difference.
        self.assertIn("x 5, y 6. The paper's order (x < y) appeared in 2 of 3 rounds: no order", said([5, 7, 4], [6, 6, 6]))
        self.assertIn("in 2 of 3 rounds: no order", said([5, 5, 5], [6, 6, 5]))
        self.assertIn("in every round", said([5, 5, 5], [6, 6, 6]))  # one event, in every round
        self.assertIn("in 0 of 3 rounds: no order", said([6, 6, 6], [5, 5, 5]))
        self.assertIn("in 0 of 3 rounds: no order", said([0, 0, 0], [0, 0, 0]))
        self.assertIn("in 2 of 3 rounds: no order", said([5, None, 5], [6, 6, 6]))
        self.assertIn("too few rounds", said([5, 5], [6, 6]))
        self.assertNotIn("appear", said([5, 5, 5], [6, 6, 6], busy=1.0))
        self.assertEqual(said([5, 5, 5], []), "")

    def test_order_of_three(self):
        rounds = {"a": [1, 1, 1], "b": [2, 2, 2], "c": [3, 1, 3]}
        self.assertIn("appeared in 2 of 3", data.order("t", rounds, {"a": 1, "b": 2, "c": 3}))


class CreatingATask(unittest.TestCase):
    def test_only_what_every_round_showed(self):
        def variant(policy, *seconds):
            return {"name": policy, "policy": policy, "workers": 1, "seconds": list(seconds)}

        serial = {"name": "serial", "workers": 0, "seconds": [1.0, 1.0, 1.0]}
        measured = {
            "title": "BTC(6, 1): 127 tasks",
            "parameters": {"tasks": 127},
            "variants": [serial, variant("greedy", 2, 2, 2), variant("iso", 9, 9, 9), variant("crude", 9, 1, 9)],
        }
        tree = {"machine": {"counter_ticks_per_ns": 1.0}, "measurements": [measured]}
        spawn = {"measurements": [{"title": "spawn", "rows": [{"form": "no result", "over_ticks": 4.5, "over_ns": 1.7}]}]}
        records = [{"step": n, "status": "done", "result": r} for n, r in (("u11_policies", tree), ("u11_spawn", spawn))]
        said = " ".join(sections.u11(data.Data(records)).sentences)
        self.assertIn("in every round", said)
        self.assertIn("iso-address takes a stack", said)
        self.assertNotIn("crude scheme", said)  # faster in one round
        self.assertIn("from 4.5 ticks", said)


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def chunk(what, worker, count, payload):
    header = struct.pack("<8sIIQQ", b"godwit02", what, worker, count, len(payload))
    return field(1, field(trace.RAW_FIELD, header + payload))


class Traces(unittest.TestCase):
    def written(self, raw):
        f = tempfile.NamedTemporaryFile(delete=False)
        self.addCleanup(os.remove, f.name)
        with f:
            f.write(raw)
        return f.name

    def test_series(self):
        def event(time, what, a=0, b=0, duration=0, detail=0):
            return struct.pack("<QQQIIIHH", time, a, b, duration, 0, 0, what, detail)

        # Worker 0 works from 0 to 1000. Worker 1 idles until 500; its thread 7 waits from 600 for record 9,
        # which is complete at 700; it goes on at 900 and so was ready for 200 of 1000.
        w0 = event(0, trace.START, 1) + event(700, trace.END, 9) + event(1000, trace.END, 1)
        w1 = (
            event(500, trace.IDLE, duration=500)
            + event(600, trace.SUSPEND, 7, 9)
            + event(900, trace.RESUME, 7)
        )
        raw = field(1, varint(1 << 3) + varint(300))  # a packet for Perfetto
        raw += chunk(1, 0, 0, json.dumps({"workers": 2, "dropped": [0, 3]}).encode())
        raw += chunk(2, 0, 3, w0) + chunk(2, 1, 3, w1)
        s = trace.time_series(self.written(raw), 10)
        self.assertEqual(s["busy"], [1.0] * 5 + [2.0] * 5)
        self.assertEqual(s["ready"], [0.0] * 7 + [1.0, 1.0, 0.0])
        self.assertEqual((s["workers"], s["dropped"], s["events"]), (2, 3, 6))

    def test_what_is_no_trace(self):
        for raw in (b"", b"\x0a\xff", b"hello, world", field(1, b"")):
            with self.assertRaises(ValueError):
                trace.time_series(self.written(raw))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
