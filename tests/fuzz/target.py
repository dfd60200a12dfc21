"""One fuzz target a process: bytes in, only documented errors out.

    python tests/fuzz/target.py disk.read CORPUS -max_total_time=60

The name is a module here and a function in it. Everything behind the corpus folder goes to
libFuzzer.

A compiled module shows the fuzzer no branches. So what reads a peer's bytes runs from its source.
"""

import importlib.abc
import importlib.util
import sys
import time
from pathlib import Path

import atheris

INPUT_S = 10
# Compiled as well (setup.py, COMPILED), and used as types by nothing else that is.
FROM_SOURCE = tuple(f"broker.protocols.{one}." for one in ("amqp", "mqtt", "openwire", "stomp"))


class Sources(importlib.abc.MetaPathFinder):
    """Finds the source of a module, also where it is compiled."""

    def find_spec(self, name, path, target=None):
        if not name.startswith(FROM_SOURCE):
            return None
        file = Path(path[0], f"{name.rsplit('.', 1)[1]}.py")
        return importlib.util.spec_from_file_location(name, file) if file.exists() else None


def timed(target, data):
    """Run a target; an input that takes long is a finding. Not by the clock: we may be paused."""
    begun = time.process_time()
    target(data)
    assert time.process_time() - begun < INPUT_S


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    module, name = sys.argv.pop(1).split(".")
    sys.meta_path.insert(0, Sources())
    with atheris.instrument_imports(include=["broker", "journal"]):
        target = getattr(importlib.import_module(f"tests.fuzz.{module}"), name)
    atheris.Setup(sys.argv, lambda data: timed(target, data))
    atheris.Fuzz()
