"""Every module: its doctests hold, and it has a stub if Python sees anything of it."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(
    path
    for room in ("journal", "jdbcstore", "broker", "pipeline")
    for path in (ROOT / room).rglob("*.py*")
    if path.suffix in {".py", ".pyx"} and path.stem != "__init__"
)
PUBLIC = re.compile(r"^(?:def|cpdef|class|cdef class)\b", re.MULTILINE)


def name_of(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_doctests_hold(path):
    if path.relative_to(ROOT).parts[0] == "pipeline":
        pytest.importorskip(
            "pyspark", reason="PySpark is not installed: quiver-mq[spark] brings it"
        )
    outcome = doctest.testmod(importlib.import_module(name_of(path)))

    assert outcome.failed == 0


@pytest.mark.parametrize("path", [path for path in SOURCES if path.suffix == ".pyx"], ids=name_of)
def test_a_public_cython_module_has_a_stub(path):
    assert path.with_suffix(".pyi").exists() or not PUBLIC.search(path.read_text())
