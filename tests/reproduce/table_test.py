"""Tests of scripts/reproduce --table: all 52 rows are there, what they name exists, verdicts, and that each row is kept.

table_test.py SOURCE_FOLDER BUILD_FOLDER
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

SOURCE, BUILD = sys.argv[1], sys.argv[2]
SCRIPT = os.path.join(SOURCE, "scripts", "reproduce")
sys.path.insert(0, os.path.join(SOURCE, "bench"))
from reproduce import claims, plan, rows, table  # noqa: E402


def text_of(out, name):
    with open(os.path.join(out, name), encoding="utf-8") as f:
        return f.read()


class Rows(unittest.TestCase):
    """scripts/reproduce --table."""

    def test_all_are_there(self):
        wanted = [f"{letter}{i}" for letter, n in (("U", 16), ("M", 8), ("C", 13), ("G", 15)) for i in range(1, n + 1)]
        self.assertEqual([r.name for r in rows.ROWS], wanted)
        self.assertEqual(len(wanted), 52)
        for r in rows.ROWS:
            self.assertTrue(r.tests or r.experiments or r.scale, r.name)

    def test_their_commands_exist(self):
        known = {e.name for e in plan.plan(plan.Machine(BUILD, 2), "full")}
        parts = subprocess.run([sys.executable, "-B", os.path.join(SOURCE, "bench", "scale.py"), "--only", "none", "--build", BUILD],
                               capture_output=True, text=True, check=False).stderr.strip().split("none of ")[1].split(", ")
        patterns = [p for r in rows.ROWS for p in r.tests]
        for r in rows.ROWS:
            self.assertLessEqual(set(r.experiments), known, r.name)
            self.assertLessEqual(set(r.scale), set(parts), r.name)
        if not os.path.exists(os.path.join(BUILD, "CTestTestfile.cmake")):
            self.skipTest("a build without tests")
        listed = subprocess.run(["ctest", "--test-dir", BUILD, "-N"], capture_output=True, text=True, check=False).stdout
        names = re.findall(r"^ +Test +#\d+: (.+)$", listed, re.M)
        self.assertGreater(len(names), 50)
        whole = sum(n.endswith("_NOT_BUILT") for n in names) == 0
        for p in patterns if whole else []:  # of a target that is not built ctest knows no cases
            self.assertTrue(any(re.search(p, n) for n in names), f"{p} matches no test")

    def test_every_experiment_of_a_row_has_claims(self):
        for r in rows.ROWS:
            for name in r.experiments:
                self.assertTrue(hasattr(claims, name.lower()) or hasattr(claims.claims_gas, name.lower()), name)

    def run_table(self, out, *flags):
        command = [sys.executable, "-B", SCRIPT, "--table", *flags, "--build", BUILD, "--out", out]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=250)

    def test_rows_are_kept_one_by_one_and_not_run_again(self):
        with tempfile.TemporaryDirectory() as out:
            first = self.run_table(out, "--run", "--tiny", "--workers", "2", "--only", "U16")
            self.assertEqual(first.returncode, 0, first.stderr)
            kept = json.loads(text_of(out, "table.json"))["rows"]
            self.assertEqual(list(kept), ["U16"])
            self.assertEqual(kept["U16"]["status"], "pass", kept)
            self.assertTrue(all(c["met"] for c in kept["U16"]["claims"]))
            page = text_of(out, "table.md")
            self.assertIn("52 rows: 1 pass, 51 not run", page)
            self.assertEqual(page.count("\n| U16 |"), 1 + len(kept["U16"]["claims"]))
            shown = self.run_table(out, "--only", "U16,U1,G8")
            self.assertEqual(shown.returncode, 0, shown.stderr)
            for words in ("U16  bench pass", "U1   core  not run", "G8   core  not run", "tiny form", "3 rows: 1 pass, 2 not run"):
                self.assertIn(words, shown.stdout)
            if not kept["U16"]["commit"].endswith(("-dirty", "unknown")):
                again = self.run_table(out, "--run", "--tiny", "--workers", "2", "--only", "U16")
                self.assertIn("0 of 1 rows to run", again.stderr)

    def test_a_verdict_names_what_was_not_so(self):
        row = rows.BY_NAME["U12"]
        yes, no, unknown = ({"what": w, "met": m, "seen": "7"} for w, m in (("a", True), ("b", False), ("c", None)))
        passed = {"passed": 3, "skipped": 1, "failed": []}
        self.assertEqual(table.verdict(row, passed, [yes], []), ("pass", []))
        self.assertEqual(table.verdict(row, passed, [yes, no, unknown], []), ("not met", ["b: 7"]))
        self.assertEqual(table.verdict(row, passed, [yes, unknown], []), ("not judged", ["c: 7"]))
        self.assertEqual(table.verdict(row, passed, [], [])[0], "not judged")
        self.assertEqual(table.verdict(row, passed, [yes], ["step: why"]), ("failed", ["step: why"]))
        self.assertEqual(table.verdict(row, {"passed": 1, "skipped": 0, "failed": ["t"]}, [yes], [])[0], "failed")
        self.assertEqual(table.verdict(row, {"passed": 0, "skipped": 2, "failed": []}, [yes], [])[0], "not judged")

    def test_a_reason_of_several_claims_stands_once(self):
        with tempfile.TemporaryDirectory() as out:
            kept = table.Table(out)
            seen = {"a": "7; slow here", "b": "8", "c, in s; as asked": "9; slow here; and small", "d": "2; slow here"}
            claims_of_it = [{"what": w, "seen": s, "met": False} for w, s in seen.items()]
            kept.rows = {"U12": {"status": "not met", "why": [f"{w}: {s}" for w, s in seen.items()], "claims": claims_of_it}}
            self.assertIn("| a: 7; d: 2. Because: slow here<br>b: 8<br>c, in s; as asked: 9. Because: slow here; and small |", kept.page())
            self.assertEqual([w.strip() for w in kept.lines([rows.BY_NAME["U12"]])][-6:],
                             ["a: 7", "d: 2", "because: slow here", "b: 8", "c, in s; as asked: 9", "because: slow here; and small"])

    def test_a_run_that_is_stopped_keeps_its_rows(self):
        with tempfile.TemporaryDirectory() as out:
            kept = table.Table(out)
            ran = []

            def measure(name):
                ran.append(name)
                if len(ran) == 2:
                    raise KeyboardInterrupt
                return [{"step": "u16_x", "status": "failed", "reason": "why", "result": {}}]

            runner = table.Runner(kept, "tiny", BUILD, measure, None)
            with self.assertRaises(KeyboardInterrupt):
                runner.run_all([rows.BY_NAME["U16"], rows.BY_NAME["U11"]], False)
            again = table.Table(out)
            self.assertEqual(list(again.rows), ["U16"])
            self.assertEqual(again.rows["U16"]["status"], "failed")
            self.assertEqual(again.rows["U16"]["why"], ["u16_x: why"])

    def test_rows_of_tests_alone_have_one_form(self):
        with tempfile.TemporaryDirectory() as out, mock.patch.object(table, "run_tests", return_value={"passed": 3, "skipped": 0, "failed": []}):
            runner = table.Runner(table.Table(out), "tiny", BUILD, lambda name: [], None)
            forms = {name: runner.run(rows.BY_NAME[name])["form"] for name in ("U1", "G4")}
            self.assertEqual(forms, {"U1": "full", "G4": "tiny"})

    def test_a_table_that_is_cut_off_is_named(self):
        with tempfile.TemporaryDirectory() as out:
            with open(os.path.join(out, "table.json"), "w", encoding="utf-8") as f:
                f.write('{"rows": {')
            done = self.run_table(out)
            self.assertEqual(done.returncode, 1)
            self.assertIn("table.json is no table", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
