"""The prose of the documents: lines that fit, sentences that can be read at once. docs/style.md has the rules."""

import re

WORDS, SEMICOLONS = 29, 1
ABBREVIATION = re.compile(r"\b(e\.g|i\.e|etc|vs|cf|Fig|Figs|Sec|no|approx|al)\.$")


def paragraphs(text):
    """(line, text) of each paragraph, item of a list and cell of a table. Code, headings and comments are left out."""
    found, begin, inside = [], 0, []
    fenced = False

    def end():
        if inside:
            found.append((begin, " ".join(inside)))
            inside.clear()

    for number, line in enumerate(text.split("\n"), 1):
        bare = line.strip()
        if re.match(r"(```|~~~)", bare):
            end()
            fenced = not fenced
        elif fenced:
            continue
        elif not bare or bare.startswith(("#", "<")) or (line.startswith("    ") and not inside):
            end()
        elif bare.startswith("|"):
            end()
            found.extend((number, cell.strip()) for cell in re.split(r"(?<!\\)\|", bare))
        else:
            item = re.match(r"([-*+]|\d+[.)])\s+", bare)
            if item:
                end()
                bare = bare[item.end():]
            if not inside:
                begin = number
            inside.append(bare)
    end()
    return found


def sentences(paragraph):
    """Its sentences. Code in a line and the target of a link count as one word or none."""
    plain = re.sub(r"`[^`]*`", "code", paragraph)
    plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", plain)
    said, begin = [], 0
    for m in re.finditer(r"[.!?][)\"'*_]*(?=\s|$)", plain):
        if ABBREVIATION.search(plain[begin:m.start() + 1]):
            continue
        said.append(plain[begin:m.end()].strip())
        begin = m.end()
    if plain[begin:].strip():
        said.append(plain[begin:].strip())
    return said


def check(file, text, columns, say):
    """Says each violation in one document by say(file, line, text)."""
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        fenced ^= bool(re.match(r"\s*(```|~~~)", line))
        table = line.lstrip().startswith("|")
        unbroken = len(line.split()) <= 2  # a link or a name that nothing can divide
        if len(line) > columns and not (fenced or table or unbroken or line.startswith("    ")):
            say(file, number, f"{len(line)} columns: {columns} at most")
    for number, paragraph in paragraphs(text):
        for sentence in sentences(paragraph):
            words = [w for w in sentence.split() if re.search(r"\w", w)]
            if len(words) > WORDS:
                say(file, number, f"a sentence of {len(words)} words: {WORDS} at most: {' '.join(words[:6])} ...")
            if sentence.count(";") > SEMICOLONS:
                say(file, number, f"{sentence.count(';')} semicolons in a sentence: {' '.join(words[:6])} ...")
