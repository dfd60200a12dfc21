"""An older version of this repository, built beside it, for pairs of two versions."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.interop.our_broker import ROOT

# Of 2026-11-24: the first one whose pairs took part in rolling restarts. Until there is a release.
COMMIT = "8dd59fc1"
# A folder with it, built: what a developer who runs the test again does not wait for.
GIVEN = "QUIVER_OLDER"


def build_older_version(folder):
    """Build it in a folder, in some minutes; its root. Skips the test where git has no history."""
    if given := os.environ.get(GIVEN):
        return Path(given).resolve()
    archive = folder / "older.tar"
    command = ["git", "archive", "--format=tar", f"--output={archive}", COMMIT]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no commit {COMMIT} here: {done.stderr.strip()}")
    root = folder / "older"
    with tarfile.open(archive) as packed:
        packed.extractall(root, filter="data")
    build = [sys.executable, "setup.py", "--quiet", "egg_info", "build_ext", "--inplace"]
    subprocess.run(build, cwd=root, check=True, capture_output=True)
    return root


def runs(pid, root):
    """Whether a process has the modules of that tree."""
    return f"{root}/journal/" in Path(f"/proc/{pid}/maps").read_text()
