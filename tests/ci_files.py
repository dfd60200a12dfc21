"""The Python files of `.ci/`, which is not a package: its name begins with a dot."""

import importlib.util
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / ".ci"


def load(name):
    """Import `.ci/<name>.py`, as the module `ci_<name>`."""
    module_name = f"ci_{name}"
    if module_name not in sys.modules:
        spec = importlib.util.spec_from_file_location(module_name, FOLDER / f"{name}.py")
        sys.modules[module_name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[module_name])
    return sys.modules[module_name]
