"""Unpacks the archives of tests/golden."""

import tarfile

# Python 3.11.2, Debian 12's, has no filters yet; later versions warn when none is given.
_FILTER = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}


def unpack(archive, folder):
    """Extract all of `archive` below `folder`, which it returns."""
    with tarfile.open(archive) as tar:
        tar.extractall(folder, **_FILTER)
    return folder
