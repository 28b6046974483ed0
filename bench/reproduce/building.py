"""Builds what scripts/reproduce and scripts/results measure."""

import os
import subprocess
import sys

from .plan import ROOT


def build(given, who, targets, tests=False):
    """Build these targets (ninja's names) in build/release, or take the build folder that is given as it is. Exits with the end of
    the log if that fails; who is the script that asks; tests: with the tests."""
    if given:
        if not os.path.exists(os.path.join(given, "bench", "pfor")):
            sys.exit(f"{who}: no benchmarks in {given}: build the target bench/all there, or leave out --build")
        return os.path.abspath(given)
    folder = os.path.join(ROOT, "build", "release")
    os.makedirs(folder, exist_ok=True)
    log = os.path.join(ROOT, "build", os.path.basename(who) + ".log")
    without = "grep -qs '^GODWIT_BUILD_TESTS:BOOL=ON' build/release/CMakeCache.txt || o+=(-DGODWIT_BUILD_TESTS=OFF); "
    script = (
        f". scripts/common.sh; scripts/setup {'test' if tests else 'run'}; o=(-DGODWIT_BUILD_BENCH=ON -DGODWIT_WERROR=OFF); "
        + ("o+=(-DGODWIT_BUILD_TESTS=ON); " if tests else without)
        + 'cmake --preset release "${o[@]}" $(compiler_settings release) && cmake --build --preset release --target '
        + targets
    )
    print(f"{who}: building ...", file=sys.stderr, flush=True)
    with open(log, "w", encoding="utf-8") as f:
        done = subprocess.run(
            ["bash", "-c", script, os.path.join(ROOT, *who.split("/"))],
            cwd=ROOT,
            stdout=f,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    if done.returncode != 0:
        with open(log, encoding="utf-8", errors="replace") as f:
            sys.stderr.write("".join(f.readlines()[-30:]))
        sys.exit(f"{who}: the build failed; all of its output is in {os.path.relpath(log, ROOT)}")
    return folder
