"""One fuzz target a process: bytes in, only documented errors out.

    python tests/fuzz/target.py disk.read CORPUS -max_total_time=60

The name is a module here and a function in it. Everything behind the corpus folder goes to
libFuzzer.
"""

import importlib
import sys
import time
from pathlib import Path

import atheris

INPUT_S = 10


def timed(target, data):
    """Run a target; an input that takes long is a finding. Not by the clock: we may be paused."""
    begun = time.process_time()
    target(data)
    assert time.process_time() - begun < INPUT_S


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    module, name = sys.argv.pop(1).split(".")
    with atheris.instrument_imports(include=["broker", "journal"]):
        target = getattr(importlib.import_module(f"tests.fuzz.{module}"), name)
    atheris.Setup(sys.argv, lambda data: timed(target, data))
    atheris.Fuzz()
