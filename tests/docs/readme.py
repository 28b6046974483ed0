#!/usr/bin/env python3
"""README's command lines, executed as they stand in a copy of the sources, as a new user would.

    readme.py BUILD CMAKE      BUILD: a build of the library; its objects are taken where the flags agree

What differs from a new user's machine: DESTDIR, PKG_CONFIG_PATH and CMAKE_PREFIX_PATH lead to a folder of the
test's own instead of /usr/local; scripts/run searches its small tree; `mpirun -n 64` starts 2; srun and
scripts/test are left out. A line that is not known here fails the test: say below what is to be done with it.
"""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

from pages import ROOT, command_lines, fenced, programs

RESULT = "102334155\n"  # fib(40)


def fail(text):
    sys.exit("readme.py: " + text)


class Machine:
    """A folder that stands for a new user's machine."""

    def __init__(self, folder, build, cmake):
        self.source = os.path.join(folder, "godwit")
        self.user = os.path.join(folder, "user")
        self.root = os.path.join(folder, "root")
        os.makedirs(self.user)
        listed = subprocess.run(
            ["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, check=False
        )
        if listed.returncode == 0:
            for name in filter(None, os.fsdecode(listed.stdout).split("\0")):
                if os.path.isfile(os.path.join(ROOT, name)):
                    os.makedirs(os.path.dirname(os.path.join(self.source, name)), exist_ok=True)
                    shutil.copy2(os.path.join(ROOT, name), os.path.join(self.source, name))
        else:  # not a checkout
            shutil.copytree(ROOT, self.source, ignore=shutil.ignore_patterns("build"))
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("GODWIT_", "CMAKE_", "CTEST_"))}
        for name in ("CXX", "CC", "CXXFLAGS", "CFLAGS", "LDFLAGS", "PKG_CONFIG_PATH", "LD_LIBRARY_PATH"):
            self.env.pop(name, None)
        self.env |= {
            "HOME": folder,
            "PATH": os.path.dirname(cmake) + ":" + self.env["PATH"],
            "CMAKE_PREFIX_PATH": os.path.join(self.root, "usr/local"),
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1",
        }
        # compiled_already.py stands before the compiler in the copy of the sources only.
        here = os.path.dirname(os.path.abspath(__file__))
        launcher = f"{sys.executable};-B;{here}/compiled_already.py"
        self.sharing = {
            "CMAKE_CXX_COMPILER_LAUNCHER": launcher,
            "CMAKE_C_COMPILER_LAUNCHER": launcher,
            "COMPILED_BUILD": build,
            "COMPILED_SOURCE": ROOT,
            "HERE_SOURCE": self.source,
            "HERE_BUILD": os.path.join(self.source, "build", "install"),
        }

    def run(self, line, where, more=None):
        """Execute one line; gives back its standard output."""
        print("$ " + line, flush=True)
        env = self.env | (more or {})
        if where == self.source:
            env |= self.sharing
        else:
            found = glob.glob(self.root + "/usr/local/lib*/**/godwit.pc", recursive=True)
            env["PKG_CONFIG_PATH"] = os.path.dirname(found[0]) if found else ""
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=where,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=1500,
            check=False,
        )
        if done.returncode != 0:
            fail(f"status {done.returncode}\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}")
        return done.stdout

    def built(self, pattern):
        found = glob.glob(f"{self.source}/build/install/{pattern}", recursive=True)
        return sorted(os.path.relpath(p, self.source) for p in found)


def after_scripts_run(m):
    """It has built what it ran and nothing else, and installing works all the same."""
    objects = [n for n in m.built("**/*.o") if "/bench_" in n or "/tests/" in n or "/examples/" in n]
    others = [n for n in objects if "/bench_uts.dir/" not in n and "/bench_common.dir/" not in n]
    if others or m.built("libgodwit.so*") or not m.built("bench/uts"):
        fail(f"scripts/run should build bench/uts and its needs, but built {others} {m.built('libgodwit.*')}")
    target = os.path.join(m.root, "after_run")
    m.run("cmake --install build/install", m.source, {"DESTDIR": target})
    for name in ("lib/libgodwit.a", "lib/libgodwit.so", "include/godwit/godwit.hpp"):
        if not os.path.exists(os.path.join(target, "usr/local", name)):
            fail(f"cmake --install after scripts/run did not install {name}")


def after_install(m):
    with open(f"{m.source}/build/install/build.ninja", encoding="utf-8") as f:
        unwanted = sorted(set(re.findall(r"\b(?:tests|bench|examples)/CMakeFiles/[\w.]+", f.read())))
    if unwanted:
        fail("installation alone should build no tests, benchmarks or examples, but has " + str(unwanted))


def expect(line, output):
    if output != RESULT:
        fail(f"{line}: expected {RESULT!r}, got {output!r}")


def main():
    build, cmake = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="godwit_readme.") as folder:
        m = Machine(folder, build, cmake)
        if "scripts/run [" not in m.run("scripts/run --help", m.source) or m.built("*"):
            fail("scripts/run --help should print its arguments and build nothing")
        (program,) = [text for page, _, text in programs() if page == "README.md"]
        (project,) = [text for _, text in fenced("README.md", "cmake")]
        with open(m.user + "/fib.cpp", "w", encoding="utf-8") as f:
            f.write(program)
        with open(m.user + "/CMakeLists.txt", "w", encoding="utf-8") as f:
            f.write(project)
        for line in command_lines("README.md"):
            if line == "scripts/run":
                if "matches the published values" not in m.run(line + " --quick", m.source):
                    fail("scripts/run does not show a checked result")
                after_scripts_run(m)
            elif line == "scripts/test":
                continue
            elif line.startswith("cmake --preset install"):
                m.run(line, m.source, {"DESTDIR": m.root})
                after_install(m)
            elif line.startswith(("c++ ", "cmake -G Ninja -B build ")):
                output = m.run(line, m.user)
                expect(line, output[-len(RESULT):])
            elif line.startswith("mpirun -n 64 "):
                if shutil.which("mpirun") is None:
                    print("left out, no mpirun here: " + line)
                    continue
                expect(line, m.run(line.replace("-n 64", "-n 2"), m.user))
            else:
                fail("README.md has a line that this test does not know: " + line)
    print("README.md: all lines work")


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main()
