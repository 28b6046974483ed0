"""godwit backtrace, where, select, attach. Document: docs/debugging.md. Test: tests/gdb."""

import re

import gdb

import godwit_gdb.frames as frames
import godwit_gdb.looking as looking
import godwit_gdb.state as state
from godwit_gdb.selection import selection, settings
from godwit_gdb.text import place_text, say
from godwit_gdb.threads import Thread
from godwit_gdb.view import View


def heading(view, t):
    notes = view.notes(t)
    size = "" if t.size() is None else f", {t.size()} B of stack"
    return f"Thread {t.id}: {t.state} on worker {t.worker}{size}" + (f"; {notes}" if notes else "")


# ---- godwit backtrace


def left(view, frame_sp, t):
    """Does a frame lie beyond the stack of a thread?"""
    return frame_sp >= t.top or frame_sp < t.floor


def print_frames(view, chain, full):
    """The selected gdb thread's frames on the stack of these threads, the innermost first."""
    text = gdb.execute(
        "backtrace -frame-arguments scalars -no-filters" + (" -full" if full else ""), to_string=True
    )
    parts = dict((int(re.match(r"#(\d+)", p)[1]), p) for p in re.split(r"(?m)^(?=#\d+ )", text)[1:])
    of_thread = [[]]
    chain = list(chain)
    for frame in frames.frames():
        sp = frames.stack_pointer(frame)
        if view.run.in_region(sp):
            while len(of_thread) <= len(chain) and left(view, sp, chain[len(of_thread) - 1]):
                of_thread.append([])
            if len(of_thread) > len(chain):
                break
        if frame.pc() == 0:
            break
        of_thread[-1].append(frame)
    for i, (t, own) in enumerate(zip(chain, of_thread)):
        if i:
            print_spawn(chain[i - 1], t)
        for frame in own if full else frames.visible(own, lambda f: f):
            gdb.write(re.sub(r"(?m)^Backtrace stopped:.*\n", "", parts.get(frame.level(), "")))


def print_spawn(child, parent):
    say(f"-- thread {child.id} was spawned by thread {parent.id} ({parent.state} here):")


def print_stacks(view, t, full, look):
    """The thread and those below it, of which the innermost may run."""
    running = t.state == "running"
    if running:
        view.switch_to(t)
    if not view.run.in_place:
        if not running:
            look.show(t)
        print_frames(view, view.chain(t), full)
        return
    for one in view.chain(t):
        if one is not t:
            print_spawn(child, one)
        if one.state != "running":
            look.show(one)
        print_frames(view, [one], full)
        child = one


def backtrace_of(view, t, full):
    say(heading(view, t))
    if t.state == "new":
        say("-- it has no stack yet")
        return
    with view.look() as look:
        print_stacks(view, t, full, look)
    last = list(view.chain(t))[-1]
    if view.parent_text(last):
        say(f"-- thread {last.id}: {view.parent_text(last)}")


def running_here(view):
    here = view.running_on(view.me)
    if here is None:
        what = "gdb thread" if view.run.in_place else "process"
        raise state.Problem(
            f"godwit: the selected {what} runs no thread: godwit backtrace ID (see godwit threads)"
        )
    return here


def backtrace(arguments):
    full = "-full" in arguments
    words = [a for a in arguments if a != "-full"]
    view = View()
    if words == ["all"]:
        for t in view.threads:
            try:
                backtrace_of(view, t, full)
            except gdb.GdbError as problem:
                say(str(problem))
            say()
        return
    for t in [view.thread(word) for word in words] or [running_here(view)]:
        backtrace_of(view, t, full)


# ---- godwit where


def spawn_place(view, t, look):
    """Where it was spawned, or None."""
    parent = t.parent
    if parent is None:
        at = view.reader.spawned_at(t)
        if not at or t.low is None:
            return None
        # the functions inlined there are frames of their own, and need no stack
        parent = Thread("", "queued", t.worker)
        parent.low, parent.top, parent.shift = t.low, t.top, t.shift
        parent.registers = {"pc": at - 4, "sp": t.low} if view.run.aarch64 else {"rip": at - 1, "rsp": t.low}
    look.show(parent)
    return frames.users_place()


def where_line(view, t):
    with view.look() as look:
        if t.state == "running":
            view.switch_to(t)
        else:
            look.show(t)
        here = frames.users_place()
        spawned = spawn_place(view, t, look)
    notes = view.notes(t)
    return (
        f"thread {t.id}, {t.state} on worker {t.worker}: {place_text(here)}"
        + (f"; spawned by {place_text(spawned)}" if spawned else "")
        + (f"; {notes}" if notes else "")
    )


def where(_):
    if looking.shown is not None and looking.shown.is_selected():
        say(looking.line)
        return
    view = View()
    if view.me is None:
        what = "thread is no worker" if view.run.in_place else "process supervises and runs no thread"
        say(f"the selected {what}: godwit threads lists them")
        return
    t = view.running_on(view.me)
    say(where_line(view, t) if t else f"worker {view.me}: in the scheduler, no thread")


# ---- godwit select, godwit attach


def select_users_frame():
    frame = frames.users_frame()
    if frame is not None:
        frame.select()
    gdb.execute("frame")


def select(arguments):
    if not arguments:
        if not looking.leave():
            raise state.Problem("godwit: no thread is selected: godwit select ID")
        say("back in the process")
        return
    view = View()
    t = view.thread(arguments[0])
    if t.state == "new":
        raise state.Problem(f"godwit: thread {t.id} has not begun: it has no frames")
    if t.state == "running":
        view.switch_to(t)
        say(heading(view, t))
        select_users_frame()
        return
    line = where_line(view, t)
    look = view.look()
    look.__enter__()
    try:
        look.show(t)
    except BaseException:
        look.__exit__(None, None, None)
        raise
    looking.stay(look, line)
    copy = "to look at" if view.run.in_place else "a copy to look at"
    say(f"{heading(view, t)}\n({copy}: bt, frame, up, info locals, print; `godwit select` goes back)")
    select_users_frame()


def attach(_):
    view = View(with_threads=False)
    if view.core:
        raise state.Problem("godwit: a core file has no other workers to attach to")
    if view.run.in_place:
        say("the workers are threads of this process: gdb has them all (info threads)")
        return
    missing = [w for w in view.workers if w.pid and w.number not in view.held]
    with settings(), selection() as selected:
        for w in missing:
            before = {i.num for i in gdb.inferiors()}
            gdb.execute("add-inferior", to_string=True)
            number = next(i.num for i in gdb.inferiors() if i.num not in before)
            gdb.execute(f"inferior {number}", to_string=True)
            try:
                gdb.execute(f"attach {w.pid}", to_string=True)
                say(f"worker {w.number}: process {w.pid} stopped, inferior {number}")
            except gdb.error as problem:
                gdb.execute(f"inferior {selected.inferior}", to_string=True)
                gdb.execute(f"remove-inferiors {number}", to_string=True)
                say(f"worker {w.number}: cannot attach to process {w.pid}: {problem}")
    if missing:
        say("all of them go on with: set schedule-multiple on, continue; or: detach inferiors N ..., or quit")
