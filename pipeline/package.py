"""Packs the modules that Spark's workers import into one archive.

A zip for `--py-files` would not do: extension modules cannot be imported from one. Spark unpacks an
archive beside each executor, where PYTHONPATH finds it:

    spark-submit --archives quiver.tar.gz#quiver --conf spark.executorEnv.PYTHONPATH=./quiver job.py

PySpark is not in it: Spark brings its own. Extension modules are those of this machine: workers
need the same kind of machine, and the same version of Python.
"""

from __future__ import annotations

import os
import re
import tarfile
import uuid
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

from journal.errors import WrongUse

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

__all__ = ["OWN_PACKAGES", "package", "requirements"]

OWN_PACKAGES: Final = ("journal", "jdbcstore", "broker", "pipeline")
_DISTRIBUTION: Final = "quiver-mq"
# The extras of ours that sources use; of each what is installed.
_EXTRAS: Final = ("spark", "sql", "postgresql", "mysql", "object-store")
_FROM_SPARK: Final = ("pyspark", "py4j")
# What a build needs and a run does not.
_SOURCES: Final = (
    *(".c", ".cc", ".cpp", ".h", ".hh", ".hpp", ".pxd", ".pxi", ".pyx", ".pyi", ".a", ".cmake"),
)
_NOT_RUN: Final = ("__pycache__", "tests", "test")
_REQUIREMENT: Final = re.compile(r"([A-Za-z0-9._-]+)\s*(?:\[([^]]*)\])?[^;]*(?:;\s*(.*))?")
_EXTRA: Final = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")


def package(target: Path, *, without: Collection[str] = (), overwrite: bool = False) -> list[str]:
    """Write the archive: it has its name when it is whole.

    Args:
        target: a `.tar.gz`.
        without: distributions that the workers have.
        overwrite: replace one that is there.

    Returns:
        The names of what is in it: ours, then other distributions.

    Raises:
        WrongUse: the target is there, and is not to be replaced, or a name in `without` is of
            nothing that would be in it.
        OSError: it cannot be written.
    """
    if target.exists() and not overwrite:
        raise WrongUse(f"{target} is there already: --overwrite replaces it")
    names = [name for name in sorted(requirements()) if name not in _FROM_SPARK]
    unknown = sorted(set(without) - set(names))
    if unknown:
        raise WrongUse(f"{unknown[0]} would not be in it; what would: {', '.join(names)}")
    names = [name for name in names if name not in without]
    partial = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    try:
        with tarfile.open(partial, "x:gz", compresslevel=6) as archive:
            for path, inside in _files(names):
                archive.add(path, str(inside), recursive=False)
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
    return [*OWN_PACKAGES, *names]


def requirements() -> set[str]:
    """The installed distributions that sources need, directly or not, in lower case."""
    found: set[str] = set()
    waiting: list[tuple[str, frozenset[str]]] = [(_DISTRIBUTION, frozenset(_EXTRAS))]
    seen = set()
    while waiting:
        name, extras = one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        try:
            needed = distribution(name).requires or []
        except PackageNotFoundError:
            continue  # An extra that is not installed here, or of another platform.
        if name != _DISTRIBUTION:
            found.add(name)
        waiting += [
            (other, others)
            for other, others, extra in map(_parsed, needed)
            if extra is None or extra in extras
        ]
    return found


def _parsed(requirement: str) -> tuple[str, frozenset[str], str | None]:
    """Name and extras that are required, and the extra that requires them (None: always).

    >>> name, extras, extra = _parsed("psycopg[binary]>=3.3; extra == 'postgresql'")
    >>> name, sorted(extras), extra
    ('psycopg', ['binary'], 'postgresql')
    """
    found = _REQUIREMENT.match(requirement)
    assert found is not None, requirement
    extras = frozenset(one.strip() for one in (found[2] or "").split(",") if one.strip())
    extra = _EXTRA.search(found[3] or "")
    return found[1].lower().replace("_", "-"), extras, extra[1] if extra else None


def _files(names: list[str]) -> Iterator[tuple[Path, PurePath]]:
    """Each file, and where it is in the archive."""
    for own in OWN_PACKAGES:
        # Not imported: one that needs a package which is not installed here is of use without it.
        found = find_spec(own)
        assert found is not None, own
        (place,) = list(found.submodule_search_locations or [])
        for path in sorted(Path(place).rglob("*")):
            if path.is_file() and _is_wanted(path.relative_to(place)):
                yield path, own / path.relative_to(place)
    for name in names:
        for file in distribution(name).files or ():
            path = Path(str(file.locate()))
            # Commands lie outside, and what is listed may have been removed.
            if ".." not in file.parts and path.is_file() and _is_wanted(file):
                yield path, file


def _is_wanted(path: PurePath) -> bool:
    return path.suffix not in _SOURCES and not set(_NOT_RUN) & set(path.parts)
