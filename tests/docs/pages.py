"""The parts of README.md and docs/*.md that a reader copies: fenced blocks, and indented lines of a shell."""

import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def pages():
    """The names of all pages, relative to ROOT."""
    docs = sorted(n for n in os.listdir(os.path.join(ROOT, "docs")) if n.endswith(".md"))
    return ["README.md"] + ["docs/" + n for n in docs]


def read(page):
    with open(os.path.join(ROOT, page), encoding="utf-8") as f:
        return f.read()


def fenced(page, language):
    """(line number, text) of every block ```language."""
    text = read(page)
    for m in re.finditer(r"^```" + language + r"[^\n]*\n(.*?)^```", text, re.M | re.S):
        yield text.count("\n", 0, m.start()) + 2, m.group(1)


COMPARED = "docs/coming-from.md"  # programs of other libraries beside ours: coming_from.py


def programs():
    """(page, line number, text) of every block that claims to be a C++ program: it has a main."""
    for page in pages():
        if page == COMPARED:
            continue
        for line, text in fenced(page, "cpp"):
            if re.search(r"\bint main\s*\(", text):
                yield page, line, text


def libraries(build):
    """What a program has to be linked with besides libgodwit.a of BUILD."""
    with open(os.path.join(build, "godwit.pc"), encoding="utf-8") as f:
        line = next(x for x in f if x.startswith("Libs:"))
    return [w for w in line.split()[1:] if "godwit" not in w and "${" not in w]


def command_lines(page):
    """The lines that are indented by four spaces, outside of fences, without their comments."""
    text = re.sub(r"^```.*?^```", "", read(page), flags=re.M | re.S)
    for line in re.findall(r"^    (\S.*)$", text, re.M):
        yield re.sub(r"\s{2,}#.*", "", line)
