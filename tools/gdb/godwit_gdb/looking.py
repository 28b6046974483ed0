"""The thread that `godwit select` shows, as long as it does."""

shown = None  # what shows it: a Replica or an InPlace
line = None  # what `godwit where` says of it


def stay(what, where):
    global shown, line
    what.keep()
    shown, line = what, where


def forget():
    """The process has gone on: what was shown is over, and whatever is selected stays so."""
    global shown
    shown = None


def leave():
    """Back to what was selected before, if the user is not elsewhere by now. False: nothing is shown."""
    global shown
    if shown is None:
        return False
    what, shown = shown, None
    what.__exit__(None, None, None)
    return True
