"""Tests of bench/itoyori.py without Itoyori: what it says then, how it reads what Itoyori's programs print, that the lines it counts are
there, and that its counter counts what one of our programs sends by MPI.

itoyori_test.py SOURCE_FOLDER BUILD_FOLDER
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD = sys.argv[1], sys.argv[2]
sys.path.insert(0, os.path.join(SOURCE, "bench"))
import itoyori  # noqa: E402

SORTED = "[0] 1,000,000 ns - Result verified\n[1] 3,000,000 ns - Result verified\n[2] 2,000,000 ns - Result verified\n"
TREE = ("## Tree built. (7000000 ns)\n" + "".join(f"[{i}] {i + 1}000000 ns 0.0144 Gnodes/s ( nodes: 16000 depth: 6 leaves: 12839 )\n" for i in range(3)) +
        "## Tree destroyed. (1000000 ns)\n")
BODIES = "".join(f"{phase:21}: 0.0{i + 1}00000 s\n" for i in range(3) for phase in itoyori.PHASES) + "Rel. L2 Error (acc)  : 1.4e-03\n"


class Reading(unittest.TestCase):
    def test_times_of_checked_results_count(self):
        self.assertEqual(itoyori.times_of_theirs("cilksort", SORTED), {"sort": 0.002})
        self.assertIsNone(itoyori.times_of_theirs("cilksort", SORTED.replace("Result verified\n[1]", "Wrong result\n[1]")))
        self.assertIsNone(itoyori.times_of_theirs("nqueens", SORTED.replace("verified", "done")))
        self.assertIsNone(itoyori.times_of_theirs("cilksort", SORTED[:40]))

    def test_a_tree_has_three_times(self):
        found = itoyori.times_of_theirs("uts++", TREE)
        self.assertEqual(found, {"build": 0.007, "traverse": 0.002, "destroy": 0.001, "nodes": 16000})
        self.assertIsNone(itoyori.times_of_theirs("uts++", TREE.replace("destroyed", "kept")))

    def test_a_step_is_the_sum_of_its_phases(self):
        self.assertAlmostEqual(itoyori.times_of_theirs("bodies", BODIES)["step"], 6 * 0.02)
        self.assertIsNone(itoyori.times_of_theirs("bodies", BODIES.replace("1.4e-03", "1.4e-02")))

    def test_lines_of_ours_are_found(self):
        for name, problem in itoyori.PROBLEMS.items():
            if "ours" in problem:
                path, first, last = problem["ours"]
                self.assertGreater(itoyori.lines_of(os.path.join(SOURCE, "bench", path), first, last), 5, name)


class Running(unittest.TestCase):
    def test_without_sources_it_says_so(self):
        with tempfile.TemporaryDirectory() as folder:  # a build that was configured without peers
            out = os.path.join(folder, "r.json")
            done = subprocess.run([sys.executable, "-B", os.path.join(SOURCE, "bench", "itoyori.py"), "--build", folder, "--json", out],
                                  capture_output=True, text=True, check=False, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("GODWIT_PEERS_DIR", done.stdout)
            with open(out, encoding="utf-8") as f:
                self.assertIn("no sources of Itoyori", json.load(f)["skipped"])

    @unittest.skipUnless(shutil.which(f"mpicc.{itoyori.MPI}"), "no MPICH here")
    def test_what_two_hosts_send_is_counted(self):
        with tempfile.TemporaryDirectory() as folder:
            counter = os.path.join(folder, "moved_bytes.so")
            itoyori.build([f"mpicc.{itoyori.MPI}", "-Wall", "-Werror", "-shared", "-fPIC",
                           os.path.join(SOURCE, "bench", "itoyori", "moved_bytes.c"), "-o", counter])
            size = 50000  # ints, half of them on the other host
            done = subprocess.run([f"mpirun.{itoyori.MPI}", "-genv", "LD_PRELOAD", counter, "-n", "2",
                                   os.path.join(BUILD, "bench", "global_cilksort"), "--size", str(size), "--reps", "1", "--workers", "2"],
                                  capture_output=True, text=True, check=False, timeout=100, stdin=subprocess.DEVNULL, env=dict(os.environ, GODWIT_HOSTS="ranks"))
            self.assertEqual(done.returncode, 0, done.stderr)
            moved = re.search(r"moved: (\d+) bytes in (\d+) operations", done.stderr)
            self.assertTrue(moved, done.stderr)
            self.assertGreater(int(moved[1]), 2 * size)
            self.assertGreater(int(moved[2]), 10)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
