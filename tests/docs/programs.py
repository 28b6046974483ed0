#!/usr/bin/env python3
"""Every block of README.md and docs/*.md that is a whole program compiles without a warning and runs.

    programs.py BUILD CXX      BUILD has libgodwit.a

Each one must end by itself with status 0, with two workers. What README's prints is checked by readme.py.
"""

import os
import subprocess
import sys
import tempfile

from pages import ROOT, libraries, programs


def main():
    build, cxx = sys.argv[1:]
    failed = count = 0
    with tempfile.TemporaryDirectory() as scratch:
        for page, at, text in programs():
            count += 1
            source, program = os.path.join(scratch, "program.cpp"), os.path.join(scratch, "program")
            with open(source, "w", encoding="utf-8") as f:
                f.write(f'#line {at} "{page}"\n{text}')
            command = [cxx, "-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-I", ROOT + "/include"]
            command += [source, "-o", program, build + "/libgodwit.a", *libraries(build)]
            compiled = subprocess.run(command, capture_output=True, text=True, check=False)
            if compiled.returncode != 0:
                print(f"{page}:{at}: does not compile:\n{compiled.stderr}")
                failed += 1
                continue
            ran = subprocess.run(
                [program, "--godwit-workers=2"], capture_output=True, text=True, timeout=200, check=False
            )
            print(f"{page}:{at}: status {ran.returncode}\n{ran.stdout}{ran.stderr}", end="")
            failed += ran.returncode != 0
    print(f"{count} programs, {failed} failed")
    return 1 if failed or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
