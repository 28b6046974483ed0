#!/usr/bin/env python3
"""Chapel's own tests of tasks and sync variables, on this layer, in the tree that CHPL_HOME names.

    own_tests.py LIBRARY [--folders FOLDER...] [--jobs N] [--reference fifo]

Installs the layer there, makes the runtime, compiles and runs every program below $CHPL_HOME/test/FOLDER that has a .good file,
and compares. Tests that want more of Chapel's own script (several lines of options, scripts before, several locales, other
environments, futures) are left out and counted. What differs is tried again with the tasks of --reference: what differs there as
well is not this layer's. Without a tree that has a compiler and tests: says so and ends with status 77.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDERS = ["parallel/begin", "parallel/cobegin", "parallel/coforall", "parallel/sync", "parallel/syncStmt", "parallel/single",
           "parallel/taskPar", "parallel/serial", "parallel/taskCount", "types/sync"]
# Files beside X.chpl that ask for what is not done here.
WANT_MORE = ["precomp", "preexec", "catfiles", "stdin", "compenv", "execenv", "future", "notest", "suppressif", "lastcompopts",
             "lastexecopts", "no-local.good"]
SECONDS = 600  # to compile, and to run


def skip(why):
    print(f"skipped: {why}, so Chapel's own tests were not run")
    sys.exit(77)


def make_runtime(home, env):
    done = subprocess.run(["make", "-C", home / "runtime"], env=env, capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stdout[-2000:], done.stderr[-2000:], sep="\n")
        sys.exit(1)


def options(source, kind):
    """The options of one run; None: there are several runs, each with a .good file of its own."""
    beside = source.with_suffix(f".{kind}")
    path = beside if beside.exists() else source.parent / kind.upper()
    lines = [line.strip() for line in path.read_text().splitlines() if line.strip()] if path.exists() else []
    lines = [line for line in lines if not line.startswith("#")]
    if path.exists() and (os.access(path, os.X_OK) or len(lines) > 1 or any("#" in line for line in lines)):
        return None
    return lines[0].split() if lines else []


def is_left_out(source, settings):
    folder = source.parent
    if any(source.with_suffix(f".{kind}").exists() for kind in WANT_MORE) or any(
            (folder / name).exists() for name in ("NOTEST", "PRECOMP", "PREEXEC", "CATFILES", "sub_test")):
        return True
    for path in (source.with_suffix(".skipif"), folder / "SKIPIF", folder.parent / f"{folder.name}.skipif"):
        if not path.exists():
            continue
        if os.access(path, os.X_OK):
            return True
        for line in path.read_text().splitlines():
            match = re.match(r"\s*(\w+)\s*(==|!=|<=)\s*(\S+)\s*$", line)
            if not match:
                if line.strip() and not line.strip().startswith("#"):
                    return True
                continue
            value, how, other = settings.get(match[1], os.environ.get(match[1], "")), match[2], match[3]
            if {"==": value == other, "!=": value != other, "<=": other in value}[how]:
                return True
    for path in (source.with_suffix(".numlocales"), folder / "NUMLOCALES"):
        if path.exists() and path.read_text().split()[:1] != ["1"]:
            return True
    return options(source, "compopts") is None or options(source, "execopts") is None


def run(command, env, folder):
    try:
        done = subprocess.run(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=SECONDS)
        return done.returncode, done.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired as e:
        return 124, (e.stdout or b"").decode(errors="replace") + f"\n(not done in {SECONDS} s)\n"


def differs(source, compiler, env):
    """None: as its .good file says. Else what came instead."""
    with tempfile.TemporaryDirectory() as work:
        program = Path(work) / source.stem
        status, said = run([compiler, *options(source, "compopts"), "-o", program, source.name], env, source.parent)
        if status == 0:
            said += run([program, *options(source, "execopts")], env, source.parent)[1]
        # Scripts that change the output before it is compared: most of them sort it.
        for script in (source.parent / "PREDIFF", source.with_suffix(".prediff")):
            if script.exists():
                output = Path(work) / "output"
                output.write_text(said)
                run([script, source.stem, output, compiler, " ".join(options(source, "compopts")), " ".join(options(source, "execopts"))],
                    env, source.parent)
                said = output.read_text(errors="replace")
    good = source.with_suffix(".good").read_text()
    return None if said.strip() == good.strip() else said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--folders", nargs="+", default=FOLDERS)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--reference", default="fifo")
    args = parser.parse_args()
    if not os.environ.get("CHPL_HOME"):
        skip("CHPL_HOME is not set")
    home = Path(os.environ["CHPL_HOME"])
    if not (home / "test" / "parallel").is_dir():
        skip(f"{home} has no folder test (releases leave it out)")
    compiler = next((home / "bin").glob("*/chpl"), None)
    if compiler is None:
        skip(f"{home} has no compiler (make -C {home} compiler)")

    env = dict(os.environ, CHPL_TASKS="godwit", CHPL_COMM="none")
    subprocess.run([HERE / "../../integrations/chapel/install.sh", home, args.library], check=True, stdout=subprocess.DEVNULL)
    make_runtime(home, env)
    said = subprocess.run([home / "util/printchplenv", "--all", "--simple"], env=env, capture_output=True, text=True).stdout
    settings = dict(line.split("=", 1) for line in said.splitlines() if "=" in line)

    sources = [s for folder in args.folders for s in sorted((home / "test" / folder).rglob("*.chpl")) if s.with_suffix(".good").exists()]
    tests = [s for s in sources if not is_left_out(s, settings)]
    failed, also = [], 0
    with ThreadPoolExecutor(args.jobs) as pool:
        results = pool.map(lambda s: differs(s, compiler, env), tests)
        for source, result in zip(tests, results):
            name = source.relative_to(home / "test")
            print(f"{name}: as expected" if result is None else f"{name}: different:\n{result[-1500:]}", flush=True)
            if result is not None:
                failed.append((source, name))
    if failed:
        there = dict(env, CHPL_TASKS=args.reference)
        make_runtime(home, there)
        for source, name in failed:
            if differs(source, compiler, there) is not None:
                also += 1
                print(f"{name}: different with {args.reference}, too")
            else:
                print(f"{name}: as expected with {args.reference}")
    mine = len(failed) - also
    print(f"{len(tests) - len(failed)} passed, {mine} failed, {also} differ with {args.reference} as well, {len(sources) - len(tests)} left out")
    sys.exit(mine != 0 or not tests)


main()
