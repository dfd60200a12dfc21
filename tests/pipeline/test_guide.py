"""docs/guide/pipeline.md has the columns that the sources have, and its code runs."""

import re
from pathlib import Path

import pytest

from pipeline import schema

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs/guide/pipeline.md").read_text()


def table_of(name):
    """The rows of the table below the heading of a source."""
    section = re.search(rf"^## `{name}`$(.*?)(?=^## |\Z)", GUIDE, re.MULTILINE | re.DOTALL)[1]
    return re.findall(r"^\| `(\w+)` \| `([^`]+)` \| (.+?) \|$", section, re.MULTILINE)


@pytest.mark.parametrize("name", ["journal", "messages", "bindings", "retention"])
def test_every_column_is_in_the_guide(name):
    assert table_of(name) == [tuple(column) for column in getattr(schema, name.upper())]


def code_of(text):
    (code,) = re.findall(r"^    import pipeline\n(?:    .*\n|\n)+", text, re.MULTILINE)
    return re.sub(r"^ {4}", "", code, flags=re.MULTILINE)


@pytest.mark.parametrize("document", ["README.md", "docs/guide/pipeline.md"])
def test_the_python_in_the_document_runs(document, spark, golden, monkeypatch, tmp_path, capsys):
    code = code_of((ROOT / document).read_text()).replace("build/try", str(golden / "broker_basic"))
    monkeypatch.chdir(tmp_path)

    exec(code, {"spark": spark})

    assert "orders" in capsys.readouterr().out
