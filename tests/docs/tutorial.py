#!/usr/bin/env python3
"""docs/tutorial.md as a reader does it: the program grows by its changes, and every command is executed.

    tutorial.py PREFIX      PREFIX: where godwit is installed

The program of the page is examples/tutorial/step1.cpp, each ```diff block leads to the next step, and every run
prints the same integral. The lines of a ```text block are what the commands before it printed, whatever the numbers;
of a verdict (`speed-up 1.01 on 2 workers: late joins ...`) the part before the colon: the rest depends on the schedule.
A command's status is 0 unless the page says another (`# status 70`). Left out, with a word: mpirun and scripts/hosts
where they cannot be had.
"""

import difflib
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile

from pages import ROOT, read

PAGE, STEPS, RESULT = "docs/tutorial.md", "examples/tutorial/step{}.cpp", "the integral is 0.488148"


def fail(text):
    sys.exit("tutorial.py: " + text)


def step(number):
    """The program without its head comment, which readers do not have."""
    return read(STEPS.format(number)).split("\n", 1)[1]


def change(number):
    """What a ```diff block has to be that leads from a step to the next."""
    lines = difflib.unified_diff(step(number).splitlines(True), step(number + 1).splitlines(True), n=2)
    return "".join(list(lines)[2:])


def words(output):
    """Output without what differs from run to run: numbers, blanks, the name of the host."""
    return " ".join(re.sub(r"\d[\d.,]*", "N", output.replace(f"({socket.gethostname()})", "(vm)")).split())


def is_left_out(line):
    if "mpirun" in line and not shutil.which("mpirun"):
        return "no mpirun here"
    if line.startswith("scripts/hosts"):
        check = subprocess.run(
            [ROOT + "/scripts/hosts", "--check"], capture_output=True, text=True, check=False
        )
        return check.returncode != 0 and check.stderr.strip()
    return ""


class Reader:
    def __init__(self, folder, prefix):
        self.folder, self.printed = folder, ""
        found = [d for d, _, names in os.walk(prefix) if "godwit.pc" in names]
        if not found:
            fail(f"{prefix} has no godwit.pc: install godwit there")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("GODWIT_")} | {
            "PATH": f"{prefix}/bin:{os.environ['PATH']}",
            "PKG_CONFIG_PATH": found[0],
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1",
        }

    def write(self, text):
        with open(os.path.join(self.folder, "integrate.cpp"), "w", encoding="utf-8") as f:
            f.write(text)

    def look(self, block):
        """Has the block been printed? Forgets what was printed."""
        for line in re.sub(r"(?m)^(.*\bspeed-up .* workers:).*", r"\1", block, flags=re.I).splitlines():
            if self.printed is not None and words(line) not in words(self.printed):
                fail(f"{PAGE} shows a line that was not printed: {line}\nthere is\n{self.printed}")
        self.printed = ""

    def do(self, line):
        line, _, remark = line.partition("  # ")
        why = is_left_out(line)
        print(f"$ {line}" + (f"    left out: {why}" if why else ""), flush=True)
        if why:
            self.printed = None
            return
        wanted = int(m.group(1)) if (m := re.search(r"status (\d+)", remark)) else 0
        command = (
            line.replace("scripts/hosts", ROOT + "/scripts/hosts", 1) if line.startswith("scripts/") else line
        )
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if done.returncode != wanted:
            fail(f"status {done.returncode}, not {wanted}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
        self.printed = (self.printed or "") + done.stdout + done.stderr
        if "./integrate" in line and wanted == 0 and done.stdout.count(RESULT) != 1:
            fail(f"no line `{RESULT}`, or several\n{done.stdout}")


def main():
    text, number, commands = read(PAGE), 0, 0
    with tempfile.TemporaryDirectory(prefix="godwit_tutorial.") as folder:
        reader = Reader(folder, os.path.abspath(sys.argv[1]))
        for m in re.finditer(r"^```(\w*)\n(.*?)^```$|^    (\S[^\n]*)$", text, re.M | re.S):
            language, block, line = m.groups()
            if line:
                reader.do(line)
                commands += 1
            elif language == "text":
                reader.look(block)
            elif language == "cpp" and number == 0:
                number = 1
                if block != step(1):
                    fail(f"the first program of {PAGE} is not {STEPS.format(1)}")
            elif language == "diff":
                if block != change(number):
                    fail(f"{PAGE}: the change to {STEPS.format(number + 1)} is\n{change(number)}")
                number += 1
            if number and not line:
                reader.write(step(number))
    if number < 2 or os.path.exists(os.path.join(ROOT, STEPS.format(number + 1))):
        fail(f"{PAGE} leads to step {number}")
    print(f"{number} steps, {commands} commands")


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main()
