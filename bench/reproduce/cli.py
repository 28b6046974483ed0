"""scripts/reproduce: options, build, the loop over the steps, the report."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time

from results import head

from . import addresses, claims, overview, page, sections, sections_ag, sections_balance, sections_dc, sections_gas, sections_mt, table
from .building import build
from .busy import BUSY
from .data import Data, others
from .plan import Machine, PRESETS, ROOT, plan
from .rows import BY_NAME, ROWS
from .store import Meter, Store, command_of

RESULTS = os.path.join(ROOT, "docs", "results")
WRITERS = {
    name.upper(): getattr(module, name)
    for module in (sections, sections_dc, sections_mt, sections_gas, sections_ag, sections_balance)
    for name in module.__all__
}


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def options(argv):
    parser = Parser(
        prog="scripts/reproduce",
        description=(
            "Run the papers' experiments, scaled to this machine, and write a page about them. "
            "Interrupted, it goes on where it was when it is called again."
        ),
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="about a quarter of an hour on two cores")
    size.add_argument("--tiny", action="store_true", help="seconds; for tests of this script")
    parser.add_argument(
        "--scale",
        action="store_true",
        help="the papers' sizes instead, in the simulator: hours (with --quick: some minutes)",
    )
    parser.add_argument(
        "--table",
        action="store_true",
        help="all that the papers describe, row by row: what decides it and what was found; measures nothing without --run",
    )
    parser.add_argument("--run", action="store_true", help="with --table: run the rows that are left, tests and experiments")
    parser.add_argument("--only", metavar="LIST", help="some experiments, such as U13,C9; of --scale: some parts; of --table: some rows")
    parser.add_argument(
        "--list", action="store_true", help="list experiments and their commands, run nothing"
    )
    parser.add_argument("--fresh", action="store_true", help="measure anew what is there already")
    parser.add_argument("--again", action="store_true", help="measure anew what was measured on a busy machine")
    parser.add_argument(
        "--out",
        metavar="FOLDER",
        help="where data and report go (default: results/reproduce/full, quick or tiny; of --table: docs/results)",
    )
    parser.add_argument(
        "--build",
        metavar="FOLDER",
        help="use this build folder as it is (default: build/release, built first)",
    )
    parser.add_argument(
        "--workers",
        type=int,
        metavar="P",
        help="workers of the runs on one machine (default: all usable CPUs)",
    )
    o = parser.parse_args(argv)
    o.preset = "tiny" if o.tiny else "quick" if o.quick else "full"
    assert o.preset in PRESETS
    if o.run and not o.table:
        parser.error("--run belongs to --table")
    if o.table and (o.scale or o.list):
        parser.error("--table has neither --scale nor --list")
    if o.table and o.tiny and not o.out:
        parser.error("--tiny makes no table to keep: say where with --out")
    if o.scale:
        if o.list or o.workers is not None:
            parser.error("--scale has neither --list nor --workers: bench/scale.py --help says what it runs")
        o.out = os.path.abspath(o.out or os.path.join(ROOT, "results", "reproduce", "scale-" + o.preset))
        return o
    if o.workers is not None and not 1 <= o.workers <= 4096:
        parser.error("--workers must be 1 to 4096")
    names = list(BY_NAME if o.table else WRITERS)
    o.only = [x.strip().upper() for x in o.only.split(",") if x.strip()] if o.only is not None else names
    for x in o.only:
        if x not in names:
            parser.error(f"there is no {'row' if o.table else 'experiment'} {x}; there are {', '.join(names)}")
    if not o.only:
        parser.error("--only names no experiment")
    if o.table:
        o.keep = os.path.abspath(o.out) if o.out else None
        o.out = os.path.abspath(o.out or RESULTS)
        return o
    o.out = os.path.abspath(o.out or os.path.join(ROOT, "results", "reproduce", o.preset))
    o.command = "scripts/reproduce" + ("" if o.preset == "full" else " --" + o.preset)
    return o


def version():
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
        )
        return done.stdout.strip() or "unknown"
    except OSError:
        return "unknown"


def chosen(o, experiments):
    """The experiments to report, and their steps in order, those of others that they read included."""
    reported = [e for e in experiments if e.name in o.only]
    read = {x for e in reported for x in [e.name, *e.sources]}
    return reported, [(e, s) for e in experiments if e.name in read for s in e.steps]


def show_list(o, machine, experiments):
    if not machine.built:
        print("Not built yet: more may be left out, and the list says so after the first run.")
    for e in experiments:
        if e.name not in o.only:
            continue
        read = f" (reads {', '.join(e.sources)})" if e.sources else ""
        print(f"{e.name} {e.title}{read}: {o.command} --only {e.name}")
        for s in e.steps:
            reason = machine.why_not(s)
            print(
                "    "
                + command_of(s, machine.build)[1]
                + (f"\n        left out here: {reason}" if reason else "")
            )


def section(experiment, records):
    """What the page says of an experiment: of its own steps, and of those of others that it reads."""
    names = [s.name for s in experiment.steps]
    read = [r for n, r in records.items() if n in names or any(n.startswith(x.lower() + "_") for x in experiment.sources)]
    data = Data(read)
    return {
        "name": experiment.name,
        "title": experiment.title,
        "records": [records[n] for n in names if n in records],
        "content": WRITERS[experiment.name](data) if data else None,
        "claims": claims.of(experiment.name, data) if data else [],
        "busy": {r["step"]: others(r) for r in data.steps()},
    }


def report(o, store, machine, reported, records):
    """Write the page from what is there. Gives back the sections."""
    result = [section(e, records) for e in reported]
    done = [r for r in records.values() if r.get("status") == "done"]
    run = {
        "preset": o.preset,
        "workers": machine.workers,
        "command": o.command,
        "date": time.strftime("%Y-%m-%d"),
        "versions": sorted({r["version"] for r in done}) or [store.version],
        "machine": next((r["result"]["machine"] for r in done if "machine" in r["result"]), None),
        "cpus": sorted({r["result"]["machine"]["cpu"] for r in done if "machine" in r["result"]}),
        "busy": Data(done).busy(),
    }
    page.write(o.out, run, result, kept_lines(o.out))
    with open(os.path.join(o.out, "run.json"), "w", encoding="utf-8") as f:
        json.dump({**run, "steps": {n: r.get("status") for n, r in records.items()}}, f, indent=1)
    return result


def kept_lines(out):
    """What tests decide, as docs/results has it; not for a page outside of this folder, which cannot link to it."""
    kept = table.Table(RESULTS)
    return overview.kept_lines(kept, os.path.relpath(os.path.join(RESULTS, "table.md"), out)) if kept.rows and out.startswith(ROOT + os.sep) else []


def measure(fresh, again, store, machine, steps):
    """Run what is not there yet; fresh: all; again: what a busy machine measured, too. Gives back all records by step name, and whether it
    was interrupted."""
    records, todo = {}, []
    for e, s in steps:
        reason = machine.why_not(s)
        if fresh:
            store.forget(s)
        had = store.load(s)
        if had and had.get("status") == "done" and not (again and others(had) > BUSY):
            records[s.name] = had
        elif reason:
            records[s.name] = {
                "step": s.name,
                "command": command_of(s, machine.build)[1],
                "status": "skipped",
                "reason": reason,
            }
        else:
            todo.append((e, s))
    if len(todo) < len(steps):
        print(
            f"scripts/reproduce: {len(todo)} of {len(steps)} steps to do; the others are there or cannot run"
            " here",
            file=sys.stderr,
        )
    meter, interrupted = Meter([s for _, s in todo]), False
    try:
        for e, s in todo:
            meter.begin(s, f"{e.name} {e.title}")
            record = store.run(s, meter)
            meter.end(record["seconds"])
            records[s.name] = record
            if record["status"] == "failed":
                print(f"scripts/reproduce: {s.name} failed: {record['reason']}", file=sys.stderr)
    except KeyboardInterrupt:
        interrupted = True
    return {s.name: records[s.name] for _, s in steps if s.name in records}, interrupted


def scale_command(folder, preset, keep, only):
    command = [sys.executable, "-B", os.path.join(ROOT, "bench", "scale.py"), "--build", folder, "--keep", keep]
    command += ["--" + preset] if preset != "full" else []
    return command + (["--only", only] if only else [])


def simulate(o):
    """--scale: bench/scale.py does it; what it has run it keeps in the folder."""
    folder = build(o.build, "scripts/reproduce", "bench_scale")
    keep = os.path.join(o.out, "raw")
    if o.fresh:
        shutil.rmtree(keep, ignore_errors=True)
    os.makedirs(keep, exist_ok=True)
    command = scale_command(folder, o.preset, keep, o.only)
    command += ["--page", os.path.join(o.out, "report.html"), "--json", os.path.join(o.out, "run.json")]
    with open(os.path.join(o.out, "report.md"), "w", encoding="utf-8") as f:
        status = subprocess.run(command, stdout=f, check=False).returncode
    if status == 0:
        print(f"{os.path.relpath(o.out)}/report.html, report.md, run.json, raw/")
    return status


def run_table(o, kept, rows):
    """--table --run. Gives back whether a row failed."""
    folder = table.built(o.build)
    machine = Machine(folder, o.workers)
    experiments = plan(machine, o.preset)
    done = {}  # steps of this call: never measured twice

    def one(name):
        e = next(e for e in experiments if e.name == name)
        steps = [(x, s) for x in experiments if x.name in (name, *e.sources) for s in x.steps]
        records, stopped = measure(o.fresh or runner.changed, o.again, store, machine, [(x, s) for x, s in steps if s.name not in done])
        done.update(records)
        if stopped:
            raise KeyboardInterrupt
        return [done[s.name] for _, s in steps]

    def part(name):
        keep = os.path.join(o.keep or os.path.join(ROOT, "results", "reproduce", "scale-" + o.preset), "raw")
        if name not in done:
            os.makedirs(keep, exist_ok=True)
            found = os.path.join(keep, name + ".checks")
            if os.path.exists(found):
                os.remove(found)
            command = [*scale_command(folder, o.preset, keep, name), "--json", found]
            ended = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
            checks, wrong = [], ended.stderr.strip().splitlines()[-1:] if ended.returncode else []
            if os.path.exists(found):
                with open(found, encoding="utf-8") as f:
                    checks = json.load(f).get("checks", [])
            done[name] = (checks, wrong)
        return done[name]

    runner = table.Runner(kept, o.preset, folder, one, part)
    # scripts/results keeps it there, too
    where = o.keep or head.kept_folder(runner.repository, os.path.join(ROOT, "results", "reproduce"), o.preset, table.MEASURED + ["include", "src"])
    store = Store(where, folder, runner.commit + ("-dirty" if runner.changed else ""))
    return runner.run_all(rows, o.fresh)


def show_table(o):
    """--table: what is kept, or with --run what is left."""
    os.makedirs(o.out, exist_ok=True)
    kept, rows = table.Table(o.out), [r for r in ROWS if r.name in o.only]
    bad = run_table(o, kept, rows) if o.run else False
    print("\n".join(kept.lines(rows)))
    print(f"{len(rows)} rows: {kept.count(rows)}")
    return 1 if bad else 0


def main(argv):
    if argv[:1] == ["--addresses"]:  # a step's command, to be run alone
        argv = [x for i, x in enumerate(argv[1:]) if not (i == 0 and x == "--")]
        if not argv:
            sys.exit("scripts/reproduce: --addresses -- PROGRAM ARGUMENTS...")
        return addresses.main(argv)
    o = options(argv)
    if o.scale:
        return simulate(o)
    if o.table:
        return show_table(o)
    if o.list and not o.build:
        o.build = os.path.join(ROOT, "build", "release")
        folder = o.build
    else:
        folder = build(o.build, "scripts/reproduce", "bench/all src/transport/mpi/all")
    machine = Machine(folder, o.workers)
    experiments = plan(machine, o.preset)
    if o.list:
        show_list(o, machine, experiments)
        return 0
    try:
        store = Store(o.out, folder, version())
    except OSError as e:
        sys.exit(
            f"scripts/reproduce: cannot write to {o.out}: {e.strerror}: choose another folder with --out"
        )
    reported, steps = chosen(o, experiments)
    records, interrupted = measure(o.fresh, o.again, store, machine, steps)
    report(o, store, machine, reported, records)
    where = os.path.relpath(o.out) if o.out.startswith(os.getcwd() + os.sep) else o.out
    if interrupted:
        print(
            "\nscripts/reproduce: stopped; called again it goes on from here. What there is so far: "
            f"{where}/report.html",
            file=sys.stderr,
        )
        return 130
    count = {k: sum(1 for r in records.values() if r["status"] == k) for k in ("done", "skipped", "failed")}
    print(
        f"{where}/report.html, report.md, csv/, raw/: {count['done']} steps done, {count['skipped']} skipped,"
        f" {count['failed']} failed"
    )
    return 1 if count["failed"] else 0
