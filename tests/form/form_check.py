#!/usr/bin/env python3
"""The form of the sources: form_check.py [ROOT]. docs/style.md has the rules; ctest: form, form.finds_violations.

Looks at every file that git knows (without git: at all but build/). Says one line a violation and `N violations` at the
end; status 0 if there is none. tests/form/bad is a tree with one violation of each kind.
"""

import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys

import prose

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
COLUMNS = 110
LINES, FUNCTION_LINES = 500, 60
FORMATTER = "14."  # another clang-format breaks lines elsewhere
CODE = (".cpp", ".hpp", ".h", ".c", ".S")
OURS = ("src/", "include/", "integrations/")  # where threads share words
# Members called load, store and exchange that are not std::atomic's: they have an order of their own or none.
NOT_ATOMIC = {
    "include/godwit/global_access.hpp", "include/godwit/global_atomic.hpp", "include/godwit/global_map.hpp",
    "include/godwit/global_ptr.hpp", "src/transport/far/fabric.hpp", "src/transport/shm/segment.hpp",
}

violations = 0


def say(file, line, text):
    global violations
    violations += 1
    print(f"{file}:{line}: {text}")


def files():
    """Names of all files, relative to ROOT."""
    if (ROOT / ".git").exists():
        known = subprocess.run(["git", "-C", str(ROOT), "ls-files"], capture_output=True, text=True, check=True).stdout
        return [f for f in known.splitlines() if (ROOT / f).is_file() and not f.startswith("tests/form/bad/")]
    found = []
    for folder, inside, names in os.walk(ROOT):
        inside[:] = [i for i in inside if i not in ("build", ".git") and (pathlib.Path(folder) / i) != ROOT / "tests/form/bad"]
        found += [str((pathlib.Path(folder) / n).relative_to(ROOT)) for n in names]
    return sorted(found)


ALL = files()
TEXT = {f: (ROOT / f).read_text(encoding="utf-8", errors="replace") for f in ALL
        if f.endswith(CODE + (".md", ".py", ".cmake", ".pml", ".txt", ".sh")) and "/vendor/" not in f}
SOURCES = [f for f in TEXT if f.endswith(CODE)]


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def without_comments(text):
    """The same text with blanks for comments and for what is in quotes."""
    kept = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
    return kept.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), text)


BARE = {f: without_comments(TEXT[f]) for f in SOURCES if not f.endswith(".S")}


def sizes():
    """No source of more than 500 lines, no function of more than 60, unless the head of the file says why: `// Long: ...`."""
    for f in BARE:
        if not f.startswith("src/") or "// Long: " in TEXT[f]:
            continue
        lines = BARE[f].splitlines()
        if len(lines) > LINES:
            say(f, LINES, f"{len(lines)} lines: {LINES} at most, or say why (// Long: ...)")
        begins = None
        for number, line in enumerate(lines, 1):
            # clang-format closes a function where it opened: in column 0, or 2 inside a class
            if re.match(r"(  )?[\w:~].*\{\s*$", line) and not re.match(r"\s*(namespace|struct|class|enum|union|extern)\b|.*= \{", line):
                if re.search(r"\)[^()]*\{\s*$|^\S.*\{\s*$", line):
                    begins = (number, len(line) - len(line.lstrip()))
            elif begins and re.match(r"(  )?\}", line) and len(line) - len(line.lstrip()) == begins[1]:
                if number - begins[0] - 1 > FUNCTION_LINES:
                    say(f, begins[0], f"a function of {number - begins[0] - 1} lines: {FUNCTION_LINES} at most, or say why (// Long: ...)")
                begins = None


def formatter():
    """clang-format with the settings of .clang-format. Nothing is said where that version is not installed."""
    for name in ("clang-format-14", "clang-format"):
        program = shutil.which(name)
        if program and FORMATTER in subprocess.run([program, "--version"], capture_output=True, text=True).stdout:
            break
    else:
        print("form_check: clang-format 14 is not installed: the format is not checked")
        return
    names = [f for f in BARE]
    share = max(1, (len(names) + 7) // 8)
    parts = [names[i:i + share] for i in range(0, len(names), share)]
    running = [subprocess.Popen([program, "--dry-run", *part], cwd=ROOT, stderr=subprocess.PIPE, text=True) for part in parts]
    for process in running:
        for m in re.finditer(r"^(\S+?):(\d+):\d+: (?:warning|error): (code should be clang-formatted)", process.communicate()[1], re.M):
            say(m.group(1), m.group(2), m.group(3) + ": clang-format -i")


def columns():
    for f in SOURCES:
        for n, line in enumerate(TEXT[f].splitlines(), 1):
            if len(line) > COLUMNS:
                say(f, n, f"{len(line)} columns: {COLUMNS} at most")
            if line != line.rstrip():
                say(f, n, "blanks at the end of the line")


OPERATION = re.compile(
    r"(?:\.|->)(load|store|exchange|fetch_(?:add|sub|or|and|xor)|compare_exchange_(?:weak|strong))\(")


def orders():
    """Every atomic operation spells its order."""
    for f, text in BARE.items():
        if not f.startswith(OURS) or f in NOT_ATOMIC:
            continue
        for m in OPERATION.finditer(text):
            depth, end = 1, m.end()
            while depth and end < len(text):
                depth += {"(": 1, ")": -1}.get(text[end], 0)
                end += 1
            own = text[m.end():end - 1]
            while re.search(r"\([^()]*\)", own):  # what calls among the arguments have is not this one's
                own = re.sub(r"\([^()]*\)", "", own)
            if not re.search(r"memory_order|\border\b|, o$", own):
                say(f, line_of(text, m.start()), f"{m.group(1)} without a memory order")


WORD = re.compile(r"^[ \t]+(?:alignas\(\w+\) )?(?:mutable |static )*std::atomic<[^;=(]*>\s+\w+[^;(]*;.*$", re.M)


def words():
    """Every shared word says who writes it: W in the comment beside it or above it."""
    for f in BARE:
        if not f.startswith(OURS) or not f.endswith(".hpp"):
            continue
        lines = TEXT[f].split("\n")
        for m in WORD.finditer(BARE[f]):
            n = line_of(BARE[f], m.start())
            near = [lines[n - 1]]
            above = n - 2
            while above >= 0 and lines[above].strip().startswith("//"):
                near.append(lines[above])
                above -= 1
            if not re.search(r"//.*\bW\b", "\n".join(near)):
                say(f, n, "a shared word that does not say who writes it (W) and who reads it (R)")


LABEL = re.compile(r"(?<![\w.\-/#`=])([A-Z]{2}\d{1,2})(?![\w\-(])")


def labels():
    """A label of an ordering stands on one page of docs/protocols, and in the code at both ends. One that begins no
    line there, as that of an argument, is at least named there."""
    pages, code, mentioned = collections.defaultdict(list), collections.defaultdict(list), set()
    for f, text in TEXT.items():
        if f.startswith("docs/protocols/"):
            for m in re.finditer(r"^(?:\| |- )(?:\*\*)?([A-Z]{2}\d{1,2})(?:\*\*)? ", text, re.M):
                pages[m.group(1)].append((f, line_of(text, m.start())))
            mentioned.update(LABEL.findall(text))
        elif f.startswith(OURS) and f.endswith((".cpp", ".hpp", ".S")):
            for n, line in enumerate(text.split("\n"), 1):
                comment = line.find("//")
                if comment >= 0:
                    for m in LABEL.finditer(line, comment):
                        code[m.group(1)].append((f, n))
    for label, places in sorted(pages.items()):
        for f, n in places:
            if f != places[0][0]:
                say(f, n, f"label {label} stands in {places[0][0]} too")
        if len(code[label]) < 2:
            where = ", ".join(f"{f}:{n}" for f, n in code[label]) or "nowhere"
            say(*places[0], f"label {label} must stand at both ends in the code; it stands {where}")
    for label, places in sorted(code.items()):
        if label not in mentioned:
            say(*places[0], f"label {label} is on no page of docs/protocols")


NAMED = re.compile(r"(?<![\w/.<*{%$-])((?:[\w.-]+/)*[\w.-]*\w\.(?:hpp|cpp|md|pml|S|cmake))(?![\w*])")
# Files of somebody else, of a user, or made by a build.
OTHERS = re.compile(r"^(?:.*/)?(?:x\.pml|file\.cpp|main\.cpp|your\.cpp|integrate\.cpp|godwit-config\.cmake|(?:_|NAME)_?test\.cpp|.*ARCH.*|.*NAME.*|.*LAYER.*)$")


def names():
    """Every file named in a comment or a document exists."""
    ends = collections.defaultdict(set)
    for f in ALL:
        parts = f.split("/")
        for i in range(len(parts)):
            ends["/".join(parts[i:])].add(f)
    for f, text in TEXT.items():
        if f.startswith("docs/results/"):  # what stood there when it was measured
            continue
        for n, line in enumerate(text.split("\n"), 1):
            if f.endswith(CODE):
                begin = max(line.find("//"), line.find("/*"), 0 if line.lstrip().startswith("*") else -1)
            elif f.endswith(".md"):
                begin = 0
            else:
                begin = line.find("#")
            if begin < 0:
                continue
            for m in NAMED.finditer(line, begin):
                name = m.group(1)
                if "://" in line[max(0, m.start() - 60):m.start()].split(" ")[-1] or OTHERS.match(name):
                    continue
                here = os.path.normpath(os.path.join(os.path.dirname(f), name))
                if name not in ends and here not in ends and not (ROOT / here).exists():
                    say(f, n, f"there is no file {name}")


SCOPE = re.compile(r"^\s*(?:template\s*<.*>\s*)?(?:(?:inline|typedef|export)\s+)*(?:namespace|class|struct|union|extern)\b", re.S)


def outside_bodies(text):
    """The same text with blanks for the bodies of functions and for initialisers."""
    out, at, begin, depth = list(text), 0, 0, 0  # depth: of braces that are blanked
    while at < len(text):
        c = text[at]
        if c == "{":
            if depth > 0 or not SCOPE.match(re.sub(r"^\s*#.*$", "", text[begin:at], flags=re.M)):
                depth += 1
            else:
                begin = at + 1
        elif c == "}":
            if depth > 0:
                depth -= 1
            if depth == 0:
                begin = at + 1
        elif c == ";" and depth == 0:
            begin = at + 1
        elif c == ":" and depth == 0 and re.search(r"\b(?:public|private|protected)\s*$", text[max(0, at - 12):at]):
            begin = at + 1
        if depth > 0 and c not in "{\n":
            out[at] = " "
        at += 1
    return "".join(out)


def quotes():
    """A piece of code that a document quotes (<!-- from FILE -->) stands so in that file."""
    for f, text in TEXT.items():
        if not f.endswith(".md"):
            continue
        for m in re.finditer(r"<!-- from (\S+) -->\n```\w*\n(.*?)```", text, re.S):
            if m.group(2) not in TEXT.get(m.group(1), ""):
                say(f, line_of(text, m.start()), f"{m.group(1)} has no such lines")


def ways():
    """A way through the files (`src/part/file.cpp`: `name`, `name`) leads through names that those files have."""
    for f, text in TEXT.items():
        if not f.endswith(".md"):
            continue
        for m in re.finditer(r"`((?:src|include)/\S+)`: (`\w+`(?:, `\w+`)*)", text):
            here = BARE.get(m.group(1), TEXT.get(m.group(1), ""))
            for name in re.findall(r"\w+", m.group(2)):
                if not re.search(rf"\b{name}\b", here):
                    say(f, line_of(text, m.start()), f"{m.group(1)} has no {name}")


FUNCTION = re.compile(
    r"^[ \t]*(?:\[\[[^\]]*\]\] *)*([\w:<>,*& \[\]]*?[\w>*&\]] *[*& ])([a-z]\w*)"  # what it gives back, its name
    r"\((?:[^;{}()]|\([^()]*\))*\)[^;{}()=]*([;{])", re.M)
DEFINITION = re.compile(r"\b([a-z]\w*)\s*\((?:[^;{}()]|\((?:[^()]|\([^()]*\))*\))*\)[^;{}()]*(?:\([^;{}]*\)[^;{}]*)?"
                        r"(?:\{|= (?:default|delete|0);)")


def functions():
    """What a header declares is defined, and something names it besides its declaration and definition."""
    code = {f: t for f, t in BARE.items() if f.startswith(OURS + ("tools/",))}
    used = collections.Counter(word for t in code.values() for word in re.findall(r"\b[a-z]\w*\b", t))
    defined = set()
    for f, t in TEXT.items():  # assembly; tests, benchmarks and examples; scripts that set breakpoints
        if f.endswith((".S", ".py")) or f.startswith(("tests/", "bench/", "examples/")):
            used.update(set(re.findall(r"\b[a-z]\w*\b", t)))
        if f.endswith(".S"):
            defined.update(re.findall(r"^\s*(\w+):", t, re.M))
    skeletons = {f: outside_bodies(t) for f, t in code.items()}
    for t in skeletons.values():
        defined.update(DEFINITION.findall(t))
    for f, text in skeletons.items():
        if not f.endswith(".hpp"):
            continue
        ours = not f.startswith("include/") or "/detail/" in f  # users call the rest
        for m in FUNCTION.finditer(text):
            gives, name, end = m.groups()
            if re.match(r"(?:using|typedef|friend|extern|return)\b|.*\b(?:operator|decltype|new|requires)$", gives.strip()):
                continue
            line = line_of(text, m.start(2))
            if end == ";" and name not in defined:
                say(f, line, f"{name} is declared and not defined")
            elif ours and used[name] < (3 if end == ";" else 2):
                say(f, line, f"{name} is defined and nobody calls it")


def documents():
    """Lines and sentences of documents that people write: prose.py. Results and options are written by programs."""
    for f, text in TEXT.items():
        if f.endswith(".md") and not f.startswith("docs/results/") and f != "docs/options.md":
            prose.check(f, text, COLUMNS, say)


for check in (formatter, columns, sizes, orders, words, labels, names, quotes, ways, functions, documents):
    check()
print(f"{violations} violations")
sys.exit(1 if violations else 0)
