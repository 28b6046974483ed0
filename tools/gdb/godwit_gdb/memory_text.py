"""What `godwit memory` prints. What is there to know: memory.py. Document: docs/debugging.md. Test: tests/gdb."""

import gdb

import godwit_gdb.looking as looking
import godwit_gdb.memory as memory
import godwit_gdb.state as state
from godwit_gdb.text import MOST_LISTED, say, table


def size_text(n):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 10 * 1024 or unit == "GiB":
            return f"{n} {unit}"
        n //= 1024


def worker_of(number):
    return "?" if number is None else str(number)


def list_movable(view):
    rows = [("Address", "Bytes", "Distribution", "Parts", "Of", "Here", "Moved", "In use")]
    for a in view.allocations():
        if not a.part_bytes:
            continue
        parts = [memory.Part(a, i) for i in range(min(a.parts(), memory.MOST_SEARCHED))]
        count = lambda chosen: str(sum(map(chosen, parts))) + ("+" if len(parts) < a.parts() else "")
        rows.append(
            (
                f"global:0x{a.begin:x}",
                size_text(a.bytes),
                a.kind_text(),
                str(a.parts()),
                size_text(a.part_bytes),
                count(memory.Part.here),
                count(lambda p: p.version != 0),
                count(lambda p: p.uses != 0),
            )
        )
    if len(rows) == 1:
        say("no movable allocations")
    else:
        table(rows)


def show_parts(a):
    counted = a.memory.names["hosts"] > 1
    accesses = lambda text: (text,) if counted else ()
    rows = [("Part", "Address", "Home", "Owner", "Version", "Place on this host") + accesses("Accesses")]
    for i in range(min(a.parts(), MOST_LISTED)):
        p = memory.Part(a, i)
        rows.append(
            (
                str(i),
                f"global:0x{p.address:x}",
                worker_of(p.home),
                worker_of(p.owner),
                str(p.version),
                p.place_text(),
            )
            + accesses(p.heat_text())
        )
    table(rows)
    if a.parts() > MOST_LISTED:
        say(f"... and {a.parts() - MOST_LISTED} more: godwit memory ADDRESS for one of them")


def show_address(view, address):
    text = f"global:0x{address:x}"
    if view.is_local(address):
        say(f"{text}: local memory of worker {view.local_home(address)}, which does not move")
        return
    a = view.at(address)
    if a is None:
        say(
            f"{text} lies in no live allocation"
            + ("" if view.has_all else " that this host has used: ask on the host of worker 0")
        )
        return
    what = f"{size_text(a.bytes)}, {a.kind_text()}"
    if not a.part_bytes:
        say(
            f"{text} lies in global:0x{a.begin:x} ({what}), which does not move: "
            f"worker {worker_of(a.home(address))} has it"
        )
        return
    if address == a.begin:
        say(f"{text}: {what}, {a.parts()} parts of {size_text(a.part_bytes)}")
        show_parts(a)
        return
    p = memory.Part(a, (address - a.begin) // a.part_bytes)
    say(f"{text} lies in part {p.number} of {a.parts()} of global:0x{a.begin:x} ({what})")
    say(f"home: worker {worker_of(p.home)}")
    say(f"owner, as this host believes: worker {worker_of(p.owner)}, version {p.version}")
    say(f"place on this host: {p.place_text()}")
    if p.here() and view.names["hosts"] > 1:
        say(f"accesses since it came here: {p.heat_text()}")


def show_memory(arguments):
    looking.leave()
    view = memory.Memory(state.Run())
    try:
        if arguments:
            show_address(view, memory.address_of(" ".join(arguments), view))
        else:
            list_movable(view)
    except gdb.MemoryError:
        raise state.Problem("godwit: global memory cannot be read here") from None
    if view.names["hosts"] > 1:
        say(
            f"note: as the host of worker {view.run.first} knows it"
            + ("" if view.has_all else "; allocations that it has not used are not listed")
        )
