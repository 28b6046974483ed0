#!/usr/bin/env python3
"""Stands before the compiler where a test builds the library again (readme.py, install.fetch_content): takes an
object from another build that has compiled the same source with the same flags (warnings aside). Else it runs
the compiler.

    COMPILED_SOURCE=FOLDER COMPILED_BUILD=FOLDER HERE_SOURCE=FOLDER HERE_BUILD=FOLDER compiled_already.py COMPILER ARGUMENT...
"""

import json
import os
import shlex
import shutil
import sys


def meaning(words, source, build):
    """What decides about the object: the compiler, and the arguments without warnings, outputs and places."""
    compiler = os.path.realpath(shutil.which(words[0]) or words[0])
    kept = []
    skip = False
    for w in words[1:]:
        if skip:
            skip = False
        elif w in ("-o", "-MF", "-MT"):
            skip = True
        elif not w.startswith("-W") and w not in ("-MD", "-c"):
            if not w.startswith("-D"):  # a path in a definition is in the object
                w = w.replace(build, "BUILD").replace(source, "SOURCE")
            kept.append(w)
    return [compiler] + kept


def main():
    words = sys.argv[1:]
    build, source = os.environ["COMPILED_BUILD"], os.environ["COMPILED_SOURCE"]
    here = os.environ["HERE_SOURCE"]
    if "-c" in words and "-o" in words and "-MF" in words:
        wanted = meaning(words, here, os.environ["HERE_BUILD"])
        output = words[words.index("-o") + 1]
        with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
            for entry in json.load(f):
                if entry["file"].replace(build, os.environ["HERE_BUILD"]).replace(source, here) != words[-1]:
                    continue  # (what a build precompiles lies in the build)
                command = shlex.split(entry["command"])
                if os.path.realpath(shutil.which(command[0]) or command[0]) != wanted[0]:
                    del command[0]  # a launcher, such as ccache
                there = os.path.join(build, command[command.index("-o") + 1])
                if meaning(command, source, build) == wanted and os.path.exists(there):
                    shutil.copyfile(there, output)
                    with open(words[words.index("-MF") + 1], "w", encoding="utf-8") as d:
                        d.write(f"{output}: {words[-1]}\n")
                    return
    os.execvp(words[0], words)


if __name__ == "__main__":
    main()
