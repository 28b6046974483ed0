"""Frames of threads that wait, where workers are threads of one process: their stacks lie where they always do.

An unwinder tells gdb that the selected thread's innermost frame was called by the one where the lightweight
thread waits. So frame 1 and those above it are the lightweight thread's, with all memory behind them, and
nothing of the process changes. Document: docs/debugging.md. Test: tests/gdb.
"""

import gdb
from gdb.unwinder import Unwinder, register_unwinder

from . import looking
from .selection import selection, settings
from .state import Problem


class Frame:
    """What create_unwind_info wants to know of the frame that is claimed."""

    def __init__(self, sp, pc):
        self.sp, self.pc = sp, pc


class Bridge(Unwinder):
    """From the gdb thread `carrier` to a lightweight thread."""

    def __init__(self):
        super().__init__("godwit")
        self.carrier = self.thread = None
        self.asked = False  # by gdb, since lead_to

    def lead_to(self, thread):
        here = gdb.selected_thread()
        if thread is not None and here is None:
            raise Problem("godwit: no thread of the process is selected: thread N")
        self.carrier = here.ptid if thread is not None else None
        self.thread, self.asked = thread, False
        gdb.invalidate_cached_frames()

    def __call__(self, frame):
        here = gdb.selected_thread()
        if self.thread is None or frame.level() != 0 or here is None or here.ptid != self.carrier:
            return None
        registers = dict(self.thread.registers)
        pc = "pc" if "pc" in registers else "rip"
        registers[pc] += 4 if pc == "pc" else 1  # gdb takes it for a return address, and looks before it
        info = frame.create_unwind_info(Frame(gdb.Value(self.thread.low - 64), gdb.Value(registers[pc])))
        for name, value in registers.items():
            info.add_saved_register(name, gdb.Value(value))
        self.asked = True
        return info


bridge = Bridge()


def is_carrier(frame):
    """Is it the innermost frame of the gdb thread by way of which another one is shown?"""
    here = gdb.selected_thread()
    return bridge.thread is not None and frame.level() == 0 and here is not None and here.ptid == bridge.carrier


class InPlace:
    """Shows one thread after the other. with InPlace(run) as r: r.show(thread)"""

    def __init__(self, _run):
        pass

    def __enter__(self):
        self.settings, self.selection = settings(), selection()
        self.settings.__enter__()
        self.selection.__enter__()
        self.kept = False
        return self

    def show(self, thread):
        """gdb's newest frame is the thread's, from the next one on."""
        bridge.lead_to(thread)
        innermost = gdb.newest_frame().older()
        if innermost is None or not bridge.asked:
            raise Problem("godwit: gdb does not show the thread's frames: is its unwinder disabled (info unwinder)?")
        innermost.select()

    def keep(self):
        self.kept = True
        self.settings.__exit__()

    def is_selected(self):
        here = gdb.selected_thread()
        return bridge.thread is not None and here is not None and here.ptid == bridge.carrier

    def __exit__(self, *_):
        elsewhere = self.kept and not self.is_selected()
        back_to = selection().__enter__() if elsewhere else self.selection
        bridge.lead_to(None)
        try:
            back_to.back()
        finally:
            self.settings.__exit__()


def gone_on(_event):
    if bridge.thread is not None:
        bridge.lead_to(None)
        looking.forget()


def install():
    register_unwinder(None, bridge, replace=True)
    gdb.events.cont.connect(gone_on)
