"""Where other projects' sources lie that are measured beside ours: below the folder that the build was configured with (GODWIT_PEERS_DIR)."""
import os


def find(build, *names):
    """The folder of the first of @p names in that folder, or None."""
    try:
        with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as f:
            folder = next((line.rstrip("\n").partition("=")[2] for line in f if line.startswith("GODWIT_PEERS_DIR:")), "")
    except OSError:
        return None
    return next((p for p in (os.path.join(folder, n) for n in names) if folder and os.path.isdir(p)), None)
