"""The head of a page: which commit it measured, in which form, and how many commits touched its sources since."""

import os
import re
import subprocess
import time

UNKNOWN = "unknown"


class Repository:
    """Questions to git. Without git, or outside a clone, the answers are UNKNOWN."""

    def __init__(self, root):
        self.root = root

    def ask(self, *arguments):
        """What git prints, or None."""
        try:
            done = subprocess.run(["git", "-C", self.root, *arguments], capture_output=True, text=True, check=False)
        except OSError:
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    def commit(self):
        return self.ask("rev-parse", "--short=12", "HEAD") or UNKNOWN

    def changed(self, sources):
        """Which files of the sources differ from HEAD."""
        lines = (self.ask("status", "--porcelain", "--untracked-files=all", "--", *sources) or "").splitlines()
        return [line.split(maxsplit=1)[1] for line in lines]

    def since(self, commit, sources):
        """How many commits touched the sources after this commit; None where this clone does not have it."""
        if commit == UNKNOWN:
            return None
        count = self.ask("rev-list", "--count", f"{commit}..HEAD", "--", *sources)
        return None if count is None else int(count)


def kept_folder(repository, where, form, sources):
    """Where data of this form is kept below the folder @p where: that of a commit since which the sources have not changed, so that a run that
    was stopped goes on; else that of the commit at hand."""
    for name in sorted(os.listdir(where)) if os.path.isdir(where) else []:
        commit = name.removeprefix(form + "-")
        if commit != name and repository.ask("merge-base", "--is-ancestor", commit, "HEAD") is not None and repository.since(commit, sources) == 0:
            return os.path.join(where, name)
    return os.path.join(where, f"{form}-{repository.commit()}")


def measured(repository, page, form):
    """What a page's head says, taken before it is measured."""
    return {
        "commit": repository.commit(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "form": form,
        "changed": repository.changed(page.sources),
    }


def since_line(count, now):
    if count is None:
        return f"- Since then: unknown, this clone does not have the commit (looked at `{now}`)"
    commits = "no commit has" if count == 0 else "1 commit has" if count == 1 else f"{count} commits have"
    return f"- Since then: {commits} touched these sources (counted at `{now}`)"


def lines(repository, page, taken):
    """The head's lines, of a page just measured."""
    command = "scripts/results" + ("" if taken["form"] == "full" else " --" + taken["form"]) + " --only " + page.name
    first = f"- Measured at commit `{taken['commit']}` on {taken['date']}, {taken['form']} form: `{command}`"
    if taken["changed"]:
        some = ", ".join(f"`{f}`" for f in taken["changed"][:5]) + (" and others" if len(taken["changed"]) > 5 else "")
        first += f"; sources with changes that were not committed: {some}"
    sources = "- Sources: " + ", ".join(f"`{s}`" for s in page.sources)
    now = repository.commit()
    return [first, sources, since_line(repository.since(taken["commit"], page.sources), now)]


def read(text):
    """(commit, form) that a page's head names, or None."""
    found = re.search(r"^- Measured at commit `(\w+)` on [-\d]+, (\w+) form", text, re.M)
    return found.groups() if found else None


def refreshed(repository, page, text):
    """The text with the line of its head that says what happened since brought up to date. Only a new count changes it."""
    count, now = repository.since(read(text)[0], page.sources), repository.commit()
    old = re.search(r"^- Since then: .*$", text, re.M)
    if old and old.group(0).split(" (")[0] == since_line(count, now).split(" (")[0]:
        return text
    return re.sub(r"^- Since then: .*$", since_line(count, now), text, count=1, flags=re.M)
