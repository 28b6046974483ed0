"""Tests of scripts/results: tiny pages and their heads, the count of commits, what is stale, what nothing makes.

results_test.py SOURCE_FOLDER BUILD_FOLDER
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
from results import cli, head, pages, targets  # noqa: E402


def results(*flags, source=SOURCE):
    command = [sys.executable, "-B", os.path.join(source, "scripts", "results"), *flags]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=250)


def text_of(*path):
    with open(os.path.join(*path), encoding="utf-8") as f:
        return f.read()


class TinyRun(unittest.TestCase):
    """One run of a page of every kind; the tests look at what it left."""

    names = "spawn_join,uts_every,observe,reproduce"

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.out = cls.folder.name
        cls.done = results("--tiny", "--build", BUILD, "--out", cls.out, "--only", cls.names)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_everything_ran(self):
        self.assertEqual(self.done.returncode, 0, self.done.stdout + self.done.stderr)
        self.assertEqual(len(self.done.stdout.splitlines()), 4, self.done.stdout)

    def test_heads(self):
        commit = head.Repository(SOURCE).commit()
        for name in self.names.split(","):
            page = text_of(self.out, name + ".md").splitlines()
            self.assertTrue(page[0].startswith("# "), page[0])
            self.assertTrue(page[2].startswith(f"- Measured at commit `{commit}` on "), page[2])
            self.assertIn(f", tiny form: `scripts/results --tiny --only {name}`", page[2])
            self.assertEqual(page[3], "- Sources: " + ", ".join(f"`{s}`" for s in pages.BY_NAME[name].sources))
            said = "unknown" if commit == head.UNKNOWN else "no commit has touched these sources"
            self.assertTrue(page[4].startswith("- Since then: " + said), page[4])
            self.assertEqual(json.loads(text_of(self.out, name + ".json"))["measured"]["commit"], commit)

    def test_pages_show_what_was_measured(self):
        measured = json.loads(text_of(self.out, "uts_every.json"))
        page = text_of(self.out, "uts_every.md")
        self.assertIn("a thread per node", page)
        variants = measured["measurements"][0]["variants"]
        names = {v["name"] for v in variants}
        self.assertLessEqual({"serial", "godwit", "tbb", "openmp"}, names)  # peers take part, or are said to be missing
        for v in variants:
            if "seconds" in v:
                self.assertIn(f"| {v['name']} | {v['workers'] or ''} | {v['median_s']:.4f} |", page)
        self.assertIn("fib(14), 1 worker", text_of(self.out, "observe.md"))
        self.assertIn("## Use of address space", text_of(self.out, "reproduce.md"))
        self.assertIn("(reproduce/use-of-address-space-1.svg)", text_of(self.out, "reproduce.md"))
        self.assertLessEqual({"U16-1.csv", "use-of-address-space-1.svg"}, set(os.listdir(os.path.join(self.out, "reproduce"))))

    def test_summary(self):
        page = text_of(self.out, "summary.md")
        commit = head.Repository(SOURCE).commit()
        for name in self.names.split(","):
            self.assertIn(f"| [{name}]({name}.md) | tiny | {commit} | ", page)
        self.assertIn("| fib | | | | not measured yet | |", page)
        self.assertIn("spawn + join over a plain call, no result", page)
        self.assertLessEqual({f for f in os.listdir(self.out) if f.startswith(".")}, set())

    def test_a_page_that_fails_stops_no_other(self):
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as out:
            os.makedirs(os.path.join(folder, "bench"))
            for name in ("pfor", "idle"):
                path = os.path.join(folder, "bench", name)
                with open(path, "w", encoding="ascii") as f:
                    f.write("#!/bin/sh\necho broken >&2\nexit 3\n")
                os.chmod(path, 0o755)
            os.symlink(os.path.join(BUILD, "bench", "spawn_join"), os.path.join(folder, "bench", "spawn_join"))
            done = results("--tiny", "--build", folder, "--out", out, "--only", "idle,fib,spawn_join")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertRegex(done.stdout, r"idle +[\d.]+ s +FAILED: .*status 3\): broken")
            self.assertRegex(done.stdout, r"fib +[\d.]+ s +FAILED: cannot start fib")
            self.assertEqual(sorted(os.listdir(out)), ["spawn_join.json", "spawn_join.md", "summary.md"])


class Since(unittest.TestCase):
    """The count of commits, in a repository made for it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        self.git("init", "-q")
        self.page = pages.Page("one", "program", "one", (1, 1), ["src", "bench/one"], "one")
        self.commit("src/a", "first")
        self.repository = head.Repository(self.root)

    def git(self, *arguments):
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", self.root, *identity, *arguments], check=True, capture_output=True)

    def write(self, path, content):
        os.makedirs(os.path.dirname(os.path.join(self.root, path)), exist_ok=True)
        with open(os.path.join(self.root, path), "w", encoding="ascii") as f:
            f.write(content)

    def commit(self, path, content):
        self.write(path, content)
        self.git("add", "-A")
        self.git("commit", "-qm", content)

    def text(self):
        return "\n".join(["# one", "", *head.lines(self.repository, self.page, head.measured(self.repository, self.page, "full")), "", "body"])

    def test_only_commits_to_the_sources_count(self):
        text = self.text()
        self.assertEqual(head.read(text), (self.repository.commit(), "full"))
        self.assertIn("- Since then: no commit has touched", text)
        self.commit("docs/a", "elsewhere")
        self.assertEqual(head.refreshed(self.repository, self.page, text), text)  # nothing new: not a byte
        self.commit("src/a", "second")
        text = head.refreshed(self.repository, self.page, text)
        self.assertIn(f"- Since then: 1 commit has touched these sources (counted at `{self.repository.commit()}`)\n\nbody", text)
        self.commit("bench/one/b", "third")
        self.assertIn("- Since then: 2 commits have", head.refreshed(self.repository, self.page, text))

    def test_changes_that_are_not_committed_are_named(self):
        self.assertNotIn("not committed", self.text())
        self.write("docs/b", "no source")
        self.assertNotIn("not committed", self.text())
        self.write("src/a", "changed")
        self.write("src/new", "new")
        self.assertIn("not committed: `src/a`, `src/new`", self.text())

    def test_what_was_stopped_goes_on_until_the_sources_change(self):
        where = os.path.join(self.root, "results")
        first = os.path.join(where, "full-" + self.repository.commit())
        self.assertEqual(head.kept_folder(self.repository, where, "full", ["src"]), first)
        os.makedirs(first)
        os.makedirs(os.path.join(where, "full-0123456789ab"))  # of another clone
        self.commit("docs/a", "elsewhere")
        self.assertEqual(head.kept_folder(self.repository, where, "full", ["src"]), first)
        now = self.repository.commit()
        self.assertEqual(head.kept_folder(self.repository, where, "quick", ["src"]), os.path.join(where, "quick-" + now))
        self.commit("src/a", "second")
        now = self.repository.commit()
        self.assertEqual(head.kept_folder(self.repository, where, "full", ["src"]), os.path.join(where, "full-" + now))

    def test_a_commit_that_is_not_here(self):
        text = self.text().replace(self.repository.commit(), "0123456789ab")
        self.assertIn("- Since then: unknown", head.refreshed(self.repository, self.page, text))

    def test_no_clone(self):
        with tempfile.TemporaryDirectory() as folder:
            none = head.Repository(folder)
            self.assertEqual((none.commit(), none.changed(["src"]), none.since(head.UNKNOWN, ["src"])), (head.UNKNOWN, [], None))

    def test_what_is_stale(self):
        out = os.path.join(self.root, "out")
        os.makedirs(out)
        o = cli.options(["--out", out])
        self.assertTrue(cli.is_stale(o, self.repository, self.page))  # not there
        with open(os.path.join(out, "one.md"), "w", encoding="utf-8") as f:
            f.write(self.text())
        self.assertFalse(cli.is_stale(o, self.repository, self.page))
        self.assertTrue(cli.is_stale(cli.options(["--out", out, "--quick"]), self.repository, self.page))
        self.commit("src/a", "second")
        self.assertTrue(cli.is_stale(o, self.repository, self.page))


class Pages(unittest.TestCase):
    """The pages that are in the repository, on a copy."""

    def test_sources_exist(self):
        for page in pages.PAGES:
            for source in page.sources:
                self.assertTrue(os.path.exists(os.path.join(SOURCE, source)), f"{page.name}: {source}")

    def test_the_readme_has_a_row_for_each(self):
        readme = text_of(SOURCE, "docs", "results", "README.md")
        for page in pages.PAGES:
            self.assertRegex(readme, rf"(?m)^\|[^|]*`{page.name}`", page.name)

    def test_smaller_problems_are_not_judged(self):
        figure = {"value": 99.0, "definition": ""}
        for form, said in (("full", "met"), ("quick", "not judged: quick form")):
            result = {"figures": {"sum.p2.of_plain": figure}, "measured": {"form": form}}
            self.assertEqual([r["verdict"] for r in targets.verdicts("global_stream", result)], [said])
        result = {"figures": {"us_664": {"value": 0.2, "definition": ""}}, "measured": {"form": "quick"}}
        self.assertEqual([r["verdict"] for r in targets.verdicts("steal", result)], ["met"])

    def test_every_target_is_of_a_page(self):
        self.assertLessEqual({t[0] for t in targets.TARGETS}, set(pages.BY_NAME))

    def test_every_page_here_is_made_by_the_command_and_says_its_commit(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = os.path.join(folder, "results")
            shutil.copytree(os.path.join(SOURCE, "docs", "results"), copy)
            done = results("--check", "--out", copy)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(os.path.join(copy, "by_hand.md"), "w", encoding="ascii") as f:
                f.write("# By hand\n")
            with open(os.path.join(copy, "fib.md"), "w", encoding="ascii") as f:
                f.write("# fib\n")
            done = results("--check", "--out", copy)
            self.assertEqual(done.returncode, 1)
            self.assertIn("by_hand.md: no command makes it", done.stderr)
            self.assertIn("fib.md does not say which commit", done.stderr)


class Input(unittest.TestCase):
    def test_wrong_arguments_are_one_line(self):
        for flags in (["--only", "fibb"], ["--quick", "--tiny"], ["--check", "--stale"], ["--tiny"], ["--slow"]):
            done = results(*flags)
            self.assertEqual(done.returncode, 2, flags)
            self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)

    def test_the_list(self):
        done = results("--list", "--only", "uts_every,mpi")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("uts_every: uts --threads every --tree T1\n", done.stdout)
        self.assertTrue(re.search(r"mpi: bench/pingpong.py\n +sources: .*tests/mpi/pingpong.cpp", done.stdout), done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
