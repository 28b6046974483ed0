"""scripts/results: options, the loop over the pages, --check."""

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

from reproduce.building import build

from . import head, targets, text
from .pages import BY_NAME, FORMS, PAGES

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TABLE = os.path.join(ROOT, "docs", "results", "table.md")  # scripts/reproduce links to its rows
BUILT = "bench/all src/transport/mpi/all integrations/pthread/all"


class Failed(Exception):
    """A page could not be made; the text says why."""


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def options(argv):
    parser = Parser(prog="scripts/results", description="Make the pages of docs/results: measure, and say what was measured.")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="smaller problems: all pages in about 15 minutes on two quiet cores")
    size.add_argument("--tiny", action="store_true", help="seconds; for tests of this script")
    parser.add_argument("--only", metavar="LIST", help="some pages, such as fib,uts")
    parser.add_argument("--stale", action="store_true",
                        help="only pages that are missing, of another form, or whose sources changed since: after an issue, and after an interruption")
    parser.add_argument("--check", action="store_true", help="measure nothing: say how old the pages are, and write it into their heads")
    parser.add_argument("--list", action="store_true", help="list pages, commands and sources, run nothing")
    parser.add_argument("--out", metavar="FOLDER", default=os.path.join(ROOT, "docs", "results"), help="where the pages are (default: docs/results)")
    parser.add_argument("--build", metavar="FOLDER", help="use this build folder as it is (default: build/release, built first)")
    o = parser.parse_args(argv)
    o.form = "tiny" if o.tiny else "quick" if o.quick else "full"
    assert o.form in FORMS
    if (o.check or o.list) and (o.stale or o.quick or o.tiny):
        parser.error("--check and --list measure nothing: leave out --stale, --quick and --tiny")
    if o.tiny and os.path.abspath(o.out) == os.path.join(ROOT, "docs", "results"):
        parser.error("--tiny makes no pages to keep: say where with --out")
    names = [x.strip() for x in o.only.split(",") if x.strip()] if o.only is not None else list(BY_NAME)
    for x in names:
        if x not in BY_NAME:
            parser.error(f"there is no page {x}; there are {', '.join(BY_NAME)}")
    o.pages = [BY_NAME[x] for x in dict.fromkeys(names)]
    o.out = os.path.abspath(o.out)
    return o


def path_of(o, name):
    return os.path.join(o.out, name)


def load(path):
    try:
        with open(path, encoding="utf-8") as f:
            return f.read()
    except OSError:
        return None


def keep(path, content):
    """All or nothing: a page that is there is whole."""
    with tempfile.NamedTemporaryFile("w", dir=os.path.dirname(path), prefix=".", delete=False, encoding="utf-8") as f:
        f.write(content)
    os.chmod(f.name, 0o644)
    os.replace(f.name, path)


def command_of(page, form, folder):
    """(what runs, what to print)."""
    arguments = page.arguments(form)
    if page.kind == "program":
        return [os.path.join(folder, "bench", page.command), *arguments], shlex.join([page.command, *arguments])
    argv = [sys.executable, "-B", os.path.join(ROOT, page.command), "--build", folder, *arguments]
    return argv, shlex.join([page.command, *arguments])


def run(argv, meter):
    """(status, output, what it said) of a command; nothing of the caller's GODWIT_ settings reaches it."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("GODWIT_")}
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as out, \
            tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        try:
            process = subprocess.Popen(argv, env=env, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=said)
        except OSError as e:
            raise Failed(f"cannot start {os.path.basename(argv[0])}: {e.strerror}: build it, or leave out --build") from e
        try:
            meter.wait(process)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
        out.seek(0)
        said.seek(0)
        return process.returncode, out.read(), said.read()


def measure(o, page, folder, repository, meter):
    """Make one page. Gives back what to print about it."""
    taken = head.measured(repository, page, o.form)
    argv, shown = command_of(page, o.form, folder)
    title = page.title if page.kind != "program" else page.name
    with tempfile.TemporaryDirectory() as scratch:
        data = os.path.join(scratch, "data.json")
        if page.kind == "reproduce":
            result, body, status = reproduce(o, argv, taken, meter)
        else:
            status, out, said = run([*argv, "--json", data], meter)
            if not os.path.exists(data):
                last = ((said + out).strip().splitlines() or ["no output"])[-1]
                raise Failed(f"{shown} wrote no results (status {status}): {last}")
            with open(data, encoding="utf-8") as f:
                result = json.load(f)
            body = out.strip().splitlines() + [""] if page.kind == "script" else None
    result.update(command=shown, measured=taken)
    result.setdefault("correct", status == 0)
    rows = targets.verdicts(page.name, result) if page.kind == "program" else []
    if body is None:
        body = text.program_body(result, targets.target_table(rows) if rows else [])
    elif page.kind == "script":
        machine = result.get("machine") or {}
        body = (text.machine_lines(machine) if "counter_ticks_per_ns" in machine else []) + [f"- Command: `{shown}`", ""] + body
    keep(path_of(o, page.name + ".json"), json.dumps(result, indent=1) + "\n")
    keep(path_of(o, page.name + ".md"), "\n".join([f"# {title}", "", *head.lines(repository, page, taken), *body]).rstrip() + "\n")
    if status != 0 or not result["correct"]:
        raise Failed(f"{shown}: wrong or missing results (status {status}): the page says which")
    if "skipped" in result:
        return "skipped: " + result["skipped"]
    met, judged = (sum(r["verdict"] in x for r in rows) for x in (("met",), ("met", "not met")))
    return (f"{met} of {judged} judged targets met" if judged else "done") + ("; the machine was busy" if text.busy(result) else "")


def reproduce(o, argv, taken, meter):
    """Run scripts/reproduce, which does not measure twice what the sources at hand have given; bring its page and tables here."""
    where = head.kept_folder(head.Repository(ROOT), os.path.join(ROOT, "results", "reproduce"), o.form, BY_NAME["reproduce"].sources)
    if o.form == "tiny":
        where = os.path.join(o.out, ".reproduce")
    status, out, said = run([*argv, "--out", where] + (["--fresh"] if taken["changed"] else []), meter)
    page, parts = load(os.path.join(where, "report.md")), [os.path.join(where, x) for x in ("csv", "pictures")]
    if page is None or not all(os.path.isdir(x) for x in parts):
        last = ((said + out).strip().splitlines() or ["no output"])[-1]
        raise Failed(f"scripts/reproduce wrote no page (status {status}): {last}")
    to = path_of(o, "reproduce")
    shutil.rmtree(to, ignore_errors=True)
    for part in parts:
        shutil.copytree(part, to, dirs_exist_ok=True)
    with open(os.path.join(where, "run.json"), encoding="utf-8") as f:
        run_of = json.load(f)
    if o.form == "tiny":
        shutil.rmtree(where)
    page = page.replace("](pictures/", "](reproduce/").replace(f"]({os.path.relpath(TABLE, where)}#", f"]({os.path.relpath(TABLE, o.out)}#")
    body = ["- Tables in full precision: [reproduce/](reproduce/)", "", *page.splitlines()[2:]]
    return {"steps": run_of["steps"], "foreign_cpus": run_of["busy"], "machine": run_of["machine"]}, body, status


class Meter:
    """One line on the terminal: what runs, and how long everything will take."""

    def __init__(self, pages, form):
        self.left = {p.name: p.seconds[0 if form == "full" else 1] if form != "tiny" else 2 for p in pages}
        self.total, self.scale, self.name = len(pages), 1.0, ""

    def begin(self, page):
        self.name, self.start = page.name, time.monotonic()

    def wait(self, process):
        while process.poll() is None:
            if sys.stderr.isatty():
                spent = time.monotonic() - self.start
                rest = max(self.left[self.name] * self.scale - spent, 1)
                rest += self.scale * sum(s for n, s in self.left.items() if n != self.name)
                print(f"\r\033[K[{self.total - len(self.left) + 1}/{self.total}] {self.name}: {spent:.0f} s; about {rest:.0f} s left", end="",
                      file=sys.stderr, flush=True)
            time.sleep(0.1)

    def end(self):
        spent = time.monotonic() - self.start
        self.scale = 0.5 * self.scale + 0.5 * spent / max(self.left.pop(self.name), 1)
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)
        return spent


def state_of(o, repository, page):
    """(what its head names or None, commits since or None) of a page, None if it is not there."""
    content = load(path_of(o, page.name + ".md"))
    if content is None:
        return None
    named = head.read(content)
    return named, repository.since(named[0], page.sources) if named else None


def is_stale(o, repository, page):
    state = state_of(o, repository, page)
    return state is None or state[0] is None or state[0][1] != o.form or state[1] != 0


def write_summary(o, repository):
    found, since = {}, {}
    for page in PAGES:
        content, data = load(path_of(o, page.name + ".md")), load(path_of(o, page.name + ".json"))
        named = head.read(content) if content else None
        if named is None or data is None:
            continue
        found[page.name] = json.loads(data)
        found[page.name].setdefault("measured", {"commit": named[0], "form": named[1]})
        since[page.name] = repository.since(named[0], page.sources)
    content = targets.summary(PAGES, found, since)
    if content != load(path_of(o, "summary.md")):
        keep(path_of(o, "summary.md"), content)


def check(o, repository):
    """Say how old the pages are and bring their heads up to date. 1: a page has no head, or nothing makes a file that is there."""
    wrong = []
    for page in PAGES:
        content = load(path_of(o, page.name + ".md"))
        state = state_of(o, repository, page)
        if state is None:
            print(f"{page.name:18} not measured yet: scripts/results --only {page.name}")
            continue
        named, since = state
        if named is None:
            wrong.append(f"{page.name}.md does not say which commit it measured: scripts/results --only {page.name}")
            continue
        print(f"{page.name:18} {named[0]} {named[1]:5}  " + ("commits since: unknown here" if since is None else f"{since} commits since"))
        fresh = head.refreshed(repository, page, content)
        if fresh != content:
            keep(path_of(o, page.name + ".md"), fresh)
    made = {p.name + end for p in PAGES for end in (".md", ".json")} | {"README.md", "summary.md", "reproduce", "table.md", "table.json"}
    wrong += [f"{f}: no command makes it: delete it" for f in sorted(os.listdir(o.out)) if f not in made]
    write_summary(o, repository)
    for line in wrong:
        print("scripts/results: " + line, file=sys.stderr)
    return 1 if wrong else 0


def main(argv):
    o = options(argv)
    repository = head.Repository(ROOT)
    if o.list:
        for page in o.pages:
            print(f"{page.name}: {command_of(page, 'full', 'build/release')[1]}\n    sources: {' '.join(page.sources)}")
        minutes = [sum(p.seconds[i] for p in o.pages) / 60 for i in (0, 1)]
        print(f"about {minutes[0]:.0f} minutes on two quiet cores, with --quick {minutes[1]:.0f}, without the build")
        return 0
    if o.check:
        return check(o, repository)
    pages = [p for p in o.pages if not o.stale or is_stale(o, repository, p)]
    if not pages:
        print("scripts/results: nothing to do: no source changed since the pages were made")
        return 0
    folder = build(o.build, "scripts/results", BUILT)
    os.makedirs(o.out, exist_ok=True)
    meter, failed = Meter(pages, o.form), 0
    for page in pages:
        meter.begin(page)
        try:
            said = measure(o, page, folder, repository, meter)
        except Failed as e:
            failed += 1
            said = f"FAILED: {e}"
        print(f"{page.name:18} {meter.end():6.1f} s  {said}", flush=True)
        write_summary(o, repository)
    return 1 if failed else 0
