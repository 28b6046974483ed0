#!/usr/bin/env python3
"""The Open POSIX Test Suite by godwit-pthread: open_posix.py DIR [--launcher PROGRAM] [--only REGEX] [--runs N] [--jobs N]

DIR is testcases/open_posix_testsuite of a checkout of the Linux Test Project; Godwit does not ship it. Each test of threads, semaphores,
message queues, asynchronous I/O, timers, signals and fork is compiled, then run plain and by godwit-pthread, both as the user nobody if
the caller is root. A test that passes plain and fails by godwit-pthread in each of the runs fails stably. These must be the ones that
open_posix.txt lists beside this file, each with its reason. Status: 0 they are, 1 they are not, 2 wrong use.
"""

import argparse
import concurrent.futures
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
INTERFACES = re.compile(r"(pthread_|sem_|mq_|aio_|lio_|timer_|sig|raise|kill|fork|sched_yield|nanosleep|clock_nanosleep)")
WORDS = {0: "passed", 1: "failed", 2: "unresolved", 4: "unsupported", 5: "untested", 124: "hung"}


def tests_of(suite):
    """Names and sources of all tests: conformance/interfaces/FUNCTION/N-M.c, and the programs of functional/."""
    for folder in sorted((suite / "conformance/interfaces").iterdir()):
        if folder.is_dir() and INTERFACES.match(folder.name):
            for source in sorted(folder.rglob("*.c")):
                if re.fullmatch(r"\d+-\d+\.c", source.name):
                    yield source
    for source in sorted((suite / "functional").rglob("*.c")):
        yield source


def compile_test(suite, source, program):
    command = ["cc", "-w", "-std=gnu99", "-D_GNU_SOURCE", "-D_POSIX_C_SOURCE=200809L", "-D_XOPEN_SOURCE=700", f"-I{suite}/include",
               f"-I{source.parent}", "-o", str(program), str(source), f"{suite}/lib/common.c", "-lpthread", "-lrt", "-lm"]
    return subprocess.run(command, cwd=source.parent, capture_output=True).returncode == 0


def run_test(command, seconds):
    """Its status, as the shell gives it; 124 if it has not ended in time. In a folder of its own, with nothing left of it afterwards."""
    folder = tempfile.mkdtemp(prefix="open_posix")
    as_nobody = {}
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        as_nobody = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    with open(folder + "/output", "w+b") as output:
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
                                   **as_nobody)
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = 124
        try:
            os.killpg(process.pid, signal.SIGKILL)  # what it has left behind, too
        except ProcessLookupError:
            pass
        process.wait()
        output.seek(0)
        text = output.read(4000).decode(errors="replace")
    shutil.rmtree(folder, ignore_errors=True)
    return (status if status >= 0 else 128 - status), text


def listed():
    """What open_posix.txt says: a name and a reason a line."""
    lines = [line.split(None, 1) for line in (HERE / "open_posix.txt").read_text().splitlines() if line and line[0] != "#"]
    return {name: reason for name, reason in lines}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", type=pathlib.Path)
    parser.add_argument("--launcher", default=shutil.which("godwit-pthread"))
    parser.add_argument("--only", default="", help="tests whose names match this expression")
    parser.add_argument("--runs", type=int, default=3, help="that a test must fail in all of")
    parser.add_argument("--jobs", type=int, default=4 * (os.cpu_count() or 1), help="tests at a time; most of them sleep")
    parser.add_argument("--seconds", type=float, default=60, help="after which a test counts as hung")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for the compiled tests and the plain results, used again")
    parser.add_argument("--verbose", action="store_true", help="with what the failing tests print")
    args = parser.parse_args()
    suite = args.suite.resolve()
    if not (suite / "conformance/interfaces").is_dir():
        parser.error(f"{suite} is not a checkout's testcases/open_posix_testsuite")
    if args.launcher is None:
        parser.error("godwit-pthread is not on PATH: give --launcher")
    launcher = str(pathlib.Path(args.launcher).resolve())
    work = args.keep.resolve() if args.keep else pathlib.Path(tempfile.mkdtemp(prefix="open_posix_programs"))
    work.mkdir(parents=True, exist_ok=True)
    work.chmod(0o755)
    known = work / "plain.txt"
    plain = dict(line.split() for line in known.read_text().splitlines()) if known.exists() else {}

    def one(source):
        name = str(source.relative_to(suite))[:-2].removeprefix("conformance/interfaces/")
        program = work / name.replace("/", ".")
        if name not in plain:
            plain[name] = run_plain(source, program)
        if plain[name] != "0":
            return name, None, ""
        command = [launcher, str(program)]
        results = []
        for _ in range(args.runs):
            results.append(run_test(command, args.seconds))
            if results[-1][0] == 0 and len(results) == 1:
                break
        return name, [r[0] for r in results], results[-1][1]

    def run_plain(source, program):
        if not compile_test(suite, source, program):
            return "uncompiled"
        if any(run_test([str(program)], args.seconds)[0] == 0 for _ in range(2)):
            return "0"
        return "fails"

    sources = [s for s in tests_of(suite) if re.search(args.only, str(s.relative_to(suite)))]
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        results = list(pool.map(one, sources))
    if args.keep:
        known.write_text("".join(f"{name} {status}\n" for name, status in sorted(plain.items())))
    else:
        shutil.rmtree(work)

    reasons = listed()
    compared = [r for r in results if r[1] is not None]
    stable, unstable = {}, {}
    for name, statuses, text in compared:
        if all(s != 0 for s in statuses):
            stable[name] = (statuses, text)
        elif any(s != 0 for s in statuses):
            unstable[name] = (statuses, text)
    for kind, some in (("fails in some runs", unstable), ("fails", stable)):
        for name, (statuses, text) in some.items():
            words = ", ".join(WORDS.get(s, str(s)) for s in statuses)
            print(f"{name}: {kind} ({words}){': ' + reasons[name] if name in reasons else ''}")
            if args.verbose:
                print("    " + text.strip().replace("\n", "\n    "))
    new = sorted(set(stable) - set(reasons))
    mended = sorted(set(reasons) & {name for name, statuses, _ in compared if statuses == [0]})
    print(f"{len(results)} tests, {len(compared)} pass plain; by godwit-pthread {len(compared) - len(stable) - len(unstable)} of these pass, "
          f"{len(stable)} fail stably, {len(unstable)} in some runs")
    for name in new:
        print(f"not in the list: {name}")
    for name in mended:
        print(f"in the list, but it passes: {name}")
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main())
