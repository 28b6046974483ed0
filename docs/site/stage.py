#!/usr/bin/env python3
"""Copies what the site shows to a folder: stage.py FOLDER. Called by scripts/site.

All documents keep their places, so their links stay as they are. A link to a source file leads to a page with its
text, which is made here; a link to a folder leads to its README.md.
"""

import os
import re
import shutil
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests/docs"))

from links import documents  # noqa: E402

LANGUAGE = {
    ".cpp": "cpp",
    ".hpp": "cpp",
    ".h": "c",
    ".c": "c",
    ".py": "python",
    ".sh": "bash",
    ".cmake": "cmake",
    ".S": "asm",
}
SHOWN = {".md", ".svg", ".png", ".html"}  # as they are
LINK = re.compile(r"(\]\()([^)\s#:]+)((?:#[^)\s]*)?\))")


def write(folder, name, text):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def text_page(name):
    """A source file as a page."""
    with open(os.path.join(ROOT, name), encoding="utf-8") as f:
        text = f.read()
    return f"# {name}\n\n````` {LANGUAGE.get(os.path.splitext(name)[1], 'text')}\n{text}`````\n"


def spaced(text):
    """Lists and tables with a blank line before them, which mkdocs wants and GitHub does not."""
    begin = r"(?:[-*] |\d+\. |\|)"
    return re.sub(rf"^(?!{begin}|\s|#|<)(.*\S.*)\n(?={begin})", r"\1\n\n", text, flags=re.M)


def main():
    folder = sys.argv[1]
    with open(os.path.join(ROOT, "docs/site/site.css"), encoding="utf-8") as f:
        write(folder, "docs/site/site.css", f.read())
    for page in documents(ROOT):

        def place(m, page=page):
            name = os.path.normpath(os.path.join(os.path.dirname(page), m.group(2)))
            target, there = m.group(2), os.path.join(ROOT, name)
            if os.path.isdir(there):
                if os.path.exists(os.path.join(there, "README.md")):
                    return m.group(1) + target.rstrip("/") + "/README.md" + m.group(3)
                write(
                    folder,
                    name + "/index.md",
                    f"# {name}\n\n" + "".join(f"- `{n}`\n" for n in sorted(os.listdir(there))),
                )
                return m.group(1) + target.rstrip("/") + "/index.md)"
            if not os.path.exists(there) or os.path.splitext(name)[1] == ".md":
                return m.group(0)
            if os.path.splitext(name)[1] in SHOWN:
                os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
                shutil.copy(there, os.path.join(folder, name))
                return m.group(0)
            write(folder, name + ".md", text_page(name))
            return m.group(1) + target + ".md)"

        with open(os.path.join(ROOT, page), encoding="utf-8") as f:
            parts = re.split(r"(^```.*?^```)", f.read(), flags=re.M | re.S)
        write(folder, page, "".join(p if p.startswith("```") else spaced(LINK.sub(place, p)) for p in parts))


if __name__ == "__main__":
    main()
