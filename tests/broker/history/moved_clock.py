"""The wall clock of one process, stepped while it runs: see moved_clock.c.

    clock = MovedClock(folder)
    subprocess.Popen(..., env={**os.environ, **clock.environment})
    clock.step_to(3600)

libfaketime has no such step for Python: its clock_nanosleep() fails once its time has changed.
"""

import mmap
import os
import shlex
import subprocess
import sysconfig
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")
SIZE = 8


class MovedClock:
    """Of one process, or of all that are started with its environment.

    Args:
        folder: for the library and the file that says how far it is moved.

    Attributes:
        environment: of a process that has this clock.
        moved_by_s: seconds.
    """

    def __init__(self, folder):
        library, path = folder / "moved_clock.so", folder / "moved_by"
        compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC"))
        made = [*compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(SOURCE)]
        subprocess.run(made, check=True, capture_output=True)
        path.write_bytes(bytes(SIZE))
        with path.open("r+b") as file:
            self._mapped = mmap.mmap(file.fileno(), SIZE)
        self.moved_by_s = 0
        # A sanitizer's library has to come first.
        before = os.environ.get("LD_PRELOAD", "")
        preload = f"{before}:{library}" if before else str(library)
        self.environment = {"LD_PRELOAD": preload, "QUIVER_CLOCK_MOVED_BY": str(path)}

    def step_to(self, seconds):
        """Be ahead of the machine's clock by so many seconds, or behind it."""
        self._mapped[:] = seconds.to_bytes(SIZE, "little", signed=True)
        self.moved_by_s = seconds
