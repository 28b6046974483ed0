"""What a command changes in gdb, and puts back: settings, and what the user has selected."""

import gdb


class settings:
    """Settings for the length of a `with`: nothing is asked, and what gdb does is not told."""

    WANTED = {
        "confirm": "off",
        "print inferior-events": "off",
        "print thread-events": "off",
        "pagination": "off",
        "suppress-cli-notifications": "on",
    }

    def __enter__(self):
        self.before = {}
        for name, value in self.WANTED.items():
            try:
                now = gdb.parameter(name)
            except RuntimeError:
                continue  # suppress-cli-notifications came with gdb 13
            self.before[name] = "on" if now else "off"
            gdb.execute(f"set {name} {value}", to_string=True)
        return self

    def __exit__(self, *_):
        while self.before:  # once only: what the user sets after that stays
            name, value = self.before.popitem()
            gdb.execute(f"set {name} {value}", to_string=True)


class selection:
    """Come back to the inferior, thread and frame that the user had selected, whatever happens."""

    def __enter__(self):
        self.inferior = gdb.selected_inferior().num
        self.thread = gdb.selected_thread()
        try:
            self.frame = gdb.selected_frame()
        except gdb.error:
            self.frame = None
        return self

    def back(self):
        if self.thread is not None and self.thread.is_valid():
            self.thread.switch()  # and its inferior
            if self.frame is not None and self.frame.is_valid():
                self.frame.select()
        else:
            gdb.execute(f"inferior {self.inferior}", to_string=True)

    def __exit__(self, *_):
        self.back()
