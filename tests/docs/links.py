#!/usr/bin/env python3
"""Every link of a document leads somewhere: to a file or folder that is there, and to a heading that it has.

    links.py [ROOT]      ROOT: a tree of documents (default: the sources); tests/docs/bad is one with mistakes

Links to other sites are not followed. The C page names every function of the C header, and the index of examples
every example. Prints a line for each mistake, with file and line, and `N mistakes`.
"""

import os
import re
import subprocess
import sys

from pages import ROOT

LINK = re.compile(r"\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)|<a href=\"([^\"]+)\"|<img src=\"([^\"]+)\"")


def documents(root):
    """Paths of all .md files that git knows, or that lie in ROOT where it is no checkout."""
    listed = subprocess.run(
        ["git", "-C", root, "ls-files", "-co", "--exclude-standard", "*.md"],
        capture_output=True,
        text=True,
        check=False,
    )
    names = listed.stdout.split("\n") if listed.returncode == 0 else []
    if not any(names):
        names = [os.path.relpath(os.path.join(d, n), root) for d, _, all in os.walk(root) for n in all]
    return sorted(
        n
        for n in names
        if n.endswith(".md") and not n.startswith(("build/", "tests/docs/bad/", "docs/site/"))
    )


def without_code(text):
    """The same text with blanks for blocks and spans of code."""
    blank = lambda m: re.sub(r"[^\n]", " ", m.group(0))  # noqa: E731
    text = re.sub(r"^```.*?^```", blank, text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"(`+)(?:(?!\1).)+\1", blank, text)


def anchors(text):
    """What headings are called in links: GitHub's rule, which the site follows."""
    found, all = {}, set()
    for title in re.findall(
        r"^#{1,6} +(.*?) *#*$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.M
    ):
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower()
        name = re.sub(r"[^\w\- ]", "", title).replace(" ", "-")
        again = found[name] = found.get(name, -1) + 1
        all.add(name if again == 0 else f"{name}-{again}")
    return all | set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text))


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def links(root):
    """(document, line, what is wrong) of every link that leads nowhere."""
    for page in documents(root):
        text = without_code(read(os.path.join(root, page)))
        for m in LINK.finditer(text):
            target = next(filter(None, m.groups()))
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            there = (
                os.path.normpath(os.path.join(root, os.path.dirname(page), name))
                if name
                else os.path.join(root, page)
            )
            line = text.count("\n", 0, m.start()) + 1
            if not os.path.exists(there):
                yield page, line, f"there is no {name}"
            elif anchor and there.endswith(".md") and anchor not in anchors(read(there)):
                yield page, line, f"{name or 'this page'} has no heading #{anchor}"


def left_out(root):
    """(document, 1, what is missing) where a page has to name everything of its kind."""
    page = os.path.join(root, "docs/c-api.md")
    if os.path.exists(page):
        text, header = read(page), read(os.path.join(root, "include/godwit.h"))
        for name in sorted(
            set(re.findall(r"\bgw_\w+(?=\()", header)) | set(re.findall(r"\bGW_E?_?\w+(?= = )", header))
        ):
            if not re.search(rf"\b{name}\b", text):
                yield "docs/c-api.md", 1, f"{name} is missing"
    page = os.path.join(root, "docs/examples.md")
    if os.path.exists(page):
        text = read(page)
        for name in sorted(os.listdir(os.path.join(root, "examples"))):
            if name.endswith((".c", ".cpp")) and f"(../examples/{name})" not in text:
                yield "docs/examples.md", 1, f"examples/{name} is missing"


def main():
    root = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    mistakes = [*links(root), *left_out(root)]
    for page, line, text in mistakes:
        print(f"{page}:{line}: {text}")
    print(f"{len(documents(root))} documents, {len(mistakes)} mistakes")
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.exit(main())
