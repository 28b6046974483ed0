"""Whose is a frame: the user's, Godwit's, or the C and C++ libraries'? And the filter that hides what is not.

Document: docs/debugging.md. Test: tests/gdb.
"""

import os
import re

import gdb

from .in_place import is_carrier
from .text import without_anonymous

MOST_FRAMES = 64  # that are looked at for the user's
# Between a library and the callable that the user gave it.
GLUE = re.compile(
    r"std::(__\w+::)*(_*invoke|_*apply|function|_Function_handler|_Function_base|_*[Bb]ind|reference_wrapper"
    r"|thread::_|__visit|visit\b|call_once)"
)
HEADERS = re.compile(r"(^|/)godwit/(detail/|algorithm/)?[a-z_]+\.hpp$")
LIBRARIES = re.compile(r"(lib(c|m|pthread|stdc\+\+|c\+\+|gcc_s|godwit[a-z-]*)|ld-linux.*|linux-vdso)[.-]")


def stack_pointer(frame):
    for name in ("rsp", "sp"):
        try:
            return int(frame.read_register(name)) & (1 << 64) - 1
        except (ValueError, gdb.error):
            continue
    return 0


def frames(newest=None):
    """The frames of the selected thread, innermost first; ends quietly where unwinding ends."""
    frame = newest or gdb.newest_frame()
    if is_carrier(frame):
        frame = frame.older()
    while frame is not None:
        yield frame
        try:
            frame = frame.older()
        except gdb.error:
            return


def plain_name(name):
    """A function's qualified name without template arguments, parameters and result type."""
    out, depth = "", 0
    for c in without_anonymous(name):
        if c == "<":
            depth += 1
        elif c == ">" and depth:
            depth -= 1
        elif c == "(" and not depth and not out.endswith("operator"):
            break
        elif not depth:
            out += c
    return out.strip().split(" ")[-1]


def is_runtime(name):
    """Is this function the library's and not the user's?"""
    return plain_name(name).startswith(("godwit::", "godwit_"))


def is_glue(frame):
    """Does it stand between two functions of the user's that called each other through Godwit?"""
    name = frame.name()
    if name is None:
        return False
    sal = frame.find_sal()
    in_headers = sal.symtab is not None and HEADERS.search(sal.symtab.filename) is not None
    return is_runtime(name) or in_headers or GLUE.match(plain_name(name)) is not None


def is_system(frame):
    """Of the C or C++ library, inlined or not?"""
    if plain_name(frame.name()).startswith("std::"):
        return True
    library = gdb.solib_name(frame.pc())
    return library is not None and LIBRARIES.match(os.path.basename(library)) is not None


def visible(items, frame_of):
    """Without the glue. If there is nothing else, all."""
    hidden, any_shown = [], False
    for item in items:
        if not is_glue(frame_of(item)):
            any_shown = True
            yield item
        elif not any_shown:
            hidden.append(item)
    if not any_shown:
        yield from hidden


def place_of(frame):
    """(function, file, line) or (function, None, 0)."""
    name = frame.name() or "??"
    sal = frame.find_sal()
    if sal.symtab is None or sal.line == 0:
        return name, None, 0
    return name, sal.symtab.filename, sal.line


def is_header(file):
    """Of the library or the system: not the user's."""
    return HEADERS.search(file) is not None or "/include/c++/" in file or file.startswith("/usr/include/")


def is_users_place(place):
    """Of a place that a thread wrote down when it began to wait."""
    function, file, _ = place
    name = plain_name(function)
    return not (is_runtime(name) or name.startswith("std::") or is_header(file))


def users_frame(newest=None):
    """The innermost frame of the selected thread that is the user's, with a line if any has one; or None."""
    without_line = None
    for _, frame in zip(range(MOST_FRAMES), frames(newest)):
        if frame.name() is None or is_glue(frame) or is_system(frame):
            continue
        if place_of(frame)[1] is not None:
            return frame
        without_line = without_line or frame
    return without_line


def users_place(newest=None):
    """Of that frame; of any, if there is none."""
    frame = users_frame(newest)
    return place_of(frame or next(frames(newest)))


class Filter:
    """gdb's backtrace shows the user's frames; all of them: backtrace -no-filters."""

    name, priority, enabled = "godwit", 100, True

    def filter(self, decorators):
        try:
            gdb.parse_and_eval("(unsigned long)&godwit_debug_")
        except gdb.error:
            return decorators  # not a program of Godwit's
        of_thread = (d for d in decorators if not is_carrier(d.inferior_frame()))
        return visible(of_thread, lambda d: d.inferior_frame())


def install():
    gdb.frame_filters[Filter.name] = Filter()
