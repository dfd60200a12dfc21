"""The tree is tidy: nothing of one machine in it, no stray whitespace, no big files."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SIZE_MAX = 1 << 20
TEXT = {".py", ".pyx", ".pxd", ".pyi", ".c", ".h", ".md", ".toml", ".txt", ".sh", ".cfg", ""}
# A folder of somebody's machine; /tmp and /dev are everybody's.
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|home|root|Users|opt/venv)/")


def tracked_files():
    if shutil.which("git") is None:
        pytest.skip("no git here: install Debian's `git`")
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listing.returncode:
        pytest.skip("not a git clone: the files of the tree cannot be listed")
    names = listing.stdout.decode().split("\0")[:-1]
    return [ROOT / name for name in names if (ROOT / name).is_file()]


def own_text_files():
    golden = ROOT / "tests/golden"
    return [
        file
        for file in tracked_files()
        if file.suffix in TEXT and golden not in file.parents and file.name != "LICENSE"
    ]


def test_no_file_is_bigger_than_a_mebibyte_outside_golden():
    golden = ROOT / "tests/golden"

    big = [f for f in tracked_files() if golden not in f.parents and f.stat().st_size > SIZE_MAX]

    assert not big


def test_no_path_of_one_machine_is_named():
    found = [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()}"
        for file in own_text_files()
        if file != Path(__file__)
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if MACHINE_PATH.search(line)
    ]

    assert not found


def test_no_line_ends_in_whitespace_and_every_file_ends_in_one_newline():
    untidy = []
    for file in own_text_files():
        text = file.read_text()
        if text and (not text.endswith("\n") or text.endswith("\n\n")):
            untidy.append(f"{file.relative_to(ROOT)}: end of file")
        untidy += [
            f"{file.relative_to(ROOT)}:{number}"
            for number, line in enumerate(text.split("\n"), 1)
            if line != line.rstrip()
        ]

    assert not untidy
