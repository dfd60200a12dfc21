"""A copy of a folder that is in use, as a crash would leave it."""

import contextlib
import shutil


def copy_live(folder, target):
    """Copy a folder; what is renamed or removed meanwhile is left out. The copy's path."""
    return shutil.copytree(folder, target, copy_function=_copy_if_there)


def _copy_if_there(source, target):
    with contextlib.suppress(FileNotFoundError):
        shutil.copy2(source, target)
