"""Python sources that are compiled too: their .pxd names every field that the source does."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


def compiled():
    tree = ast.parse((ROOT / "setup.py").read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "COMPILED":
            return ast.literal_eval(node.value)
    raise AssertionError("setup.py has no COMPILED")


def slots_of(source):
    """{class: names of its __slots__}"""
    found = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef):
            for item in node.body:
                if isinstance(item, ast.Assign) and item.targets[0].id == "__slots__":
                    value = ast.literal_eval(item.value)
                    found[node.name] = {value} if isinstance(value, str) else set(value)
    return found


def fields_of(declarations):
    """{class: names of the fields that it declares}"""
    found = {}
    for block in re.split(r"^cdef class ", declarations, flags=re.MULTILINE)[1:]:
        name = re.match(r"\w+", block)[0]
        found[name] = set(re.findall(r"^    cdef [^()\n]*?(\w+)$", block, flags=re.MULTILINE))
    return found


DECLARED = [name for name in compiled() if (ROOT / f"{name.replace('.', '/')}.pxd").exists()]


@pytest.mark.parametrize("module", DECLARED)
def test_every_slot_is_a_field(module):
    path = ROOT / f"{module.replace('.', '/')}.py"
    slots = slots_of(path.read_text())
    for name, fields in fields_of(path.with_suffix(".pxd").read_text()).items():
        missing = slots.get(name, set()) - fields
        assert not missing, f"{module}.pxd: {name} does not declare {sorted(missing)}"


def test_a_missing_field_would_be_seen():
    assert fields_of("cdef class A:\n    cdef public bint x\n    cdef object y(self)\n") == {
        "A": {"x"}
    }
    assert slots_of('class A:\n    __slots__ = ("x", "y")\n') == {"A": {"x", "y"}}
