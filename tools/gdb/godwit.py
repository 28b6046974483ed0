"""gdb commands for programs that use Godwit: `source .../godwit.py`, then `help godwit`.

  godwit where              in one line: the thread that runs here, its worker, its line, where it was spawned
  godwit workers            the workers of this host, what each does
  godwit threads [-all]     all lightweight threads: running, queued, suspended, ready, new
  godwit backtrace ID       of any of them, whether it runs or not
  godwit select [ID]        look around in a thread that does not run (info locals, print); no ID: come back
  godwit memory [ADDRESS]   movable allocations; whose an address of global memory is, and its place here
  godwit block ADDRESS      which block of the heap that workers share it is: in use or free, whose
  godwit attach             stop the other workers of this host too

gdb's own backtrace shows the user's frames only (backtrace -no-filters: all). Attached to any worker or to the
supervising process, in a program started by gdb, or on a core file of a worker. Nothing of the process is
changed. Document: docs/debugging.md. Test: tests/gdb.
"""

import importlib
import os
import sys

import gdb

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
for name in [m for m in sys.modules if m.startswith("godwit_gdb.")]:
    del sys.modules[name]  # sourced again: perhaps another version
blocks, frames, in_place, lists, memory_text, stacks, text = (
    importlib.import_module(f"godwit_gdb.{name}")
    for name in ("blocks", "frames", "in_place", "lists", "memory_text", "stacks", "text")
)
sys.path.pop(0)


class Godwit(gdb.Command):
    __doc__ = "Lightweight threads and workers of a Godwit run.\n\n" + __doc__.split("\n\n", 1)[1]

    def __init__(self):
        super().__init__("godwit", gdb.COMMAND_STACK, gdb.COMPLETE_NONE, True)


def command(name, function, text):
    def invoke(self, argument, _tty):
        self.dont_repeat()
        function(gdb.string_to_argv(argument))

    kind = type("godwit_" + name, (gdb.Command,), {"__doc__": text, "invoke": invoke})
    kind(f"godwit {name}", gdb.COMMAND_STACK)


Godwit()
frames.install()
in_place.install()
command(
    "where",
    stacks.where,
    "In one line: the thread that the selected worker runs, its place, and where it was spawned.",
)
command(
    "threads",
    lists.list_threads,
    f"""List all lightweight threads of the run that are on this host.
godwit threads [-all]: more than the first {text.MOST_LISTED}.
States: running; queued: goes on here when its child ends, or elsewhere if stolen (public: may be stolen now);
suspended: waits for another thread's result, a lock, a clock...; ready: waits for a worker;\nnew: created, and has not begun.""",
)
command(
    "backtrace",
    stacks.backtrace,
    """Backtrace of any lightweight thread.
godwit backtrace [-full] [ID ... | all]: without an ID, the one that the selected worker runs.
-full: with the library's frames, and local variables.""",
)
command("bt", stacks.backtrace, "Short for godwit backtrace.")
command(
    "workers",
    lambda _: lists.list_workers(),
    "List the workers of this host: process, what they do, what waits there.",
)
command(
    "select",
    stacks.select,
    """Look around in a thread that does not run.
godwit select ID: gdb then shows a copy of it, for frame, info locals and print. godwit select: come back.""",
)
command(
    "memory",
    memory_text.show_memory,
    """Global memory, as this host knows it.
godwit memory: the movable allocations, with how many of their parts are here, have moved, are in use.
godwit memory ADDRESS: whose it is: home, owner, version, and the place on this host: its state and uses. Of the
beginning of an allocation all parts. ADDRESS: global:0x..., a number, a global_ptr, a pointer into the window.""",
)
command(
    "block",
    blocks.show_block,
    """What lies at an address of the heap that workers share.
godwit block ADDRESS: its block and size, whether it is in use or free, in which worker's part; in a run with
--godwit-check-heap also how many bytes were asked for, and the line that allocated it.""",
)
command(
    "attach",
    stacks.attach,
    """Attach to the other workers of this host, each as an inferior of its own.
Then everything stands still, and running threads of all workers can be shown.""",
)
