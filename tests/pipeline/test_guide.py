"""docs/guide/pipeline.md has the columns that the sources have, and its code runs."""

import json
import re
from pathlib import Path

import pytest

from pipeline import schema

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs/guide/pipeline.md").read_text()


def table_of(heading):
    """The rows of the table of columns below a heading."""
    section = re.search(rf"^## {heading}$(.*?)(?=^## |\Z)", GUIDE, re.MULTILINE | re.DOTALL)[1]
    return re.findall(r"^\| `(\w+)` \| `([^`]+)` \| (.+?) \|$", section, re.MULTILINE)


@pytest.mark.parametrize("name", ["journal", "messages", "bindings", "retention", "broker"])
def test_every_column_is_in_the_guide(name):
    assert table_of(f"`{name}`") == [tuple(column) for column in getattr(schema, name.upper())]


def test_every_column_that_can_be_written_is_in_the_guide():
    assert table_of("Writing into a broker") == [tuple(column) for column in schema.SENT]


@pytest.fixture
def charts():
    """Charts are drawn without a window."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed").use("Agg")


def code_of(text):
    (code,) = re.findall(r"^    import pipeline\n(?:    .*\n|\n)+", text, re.MULTILINE)
    return re.sub(r"^ {4}", "", code, flags=re.MULTILINE)


@pytest.mark.parametrize(
    "document",
    [pytest.param("docs/guide/spark.md", marks=pytest.mark.slow), "docs/guide/pipeline.md"],
)
def test_the_python_in_the_document_runs(
    document, spark, charts, golden, monkeypatch, tmp_path, capsys
):
    code = code_of((ROOT / document).read_text()).replace("build/try/kinds.png", "kinds.png")
    code = code.replace("build/try", str(golden / "broker_basic"))
    monkeypatch.chdir(tmp_path)

    exec(code, {"spark": spark})

    assert "orders" in capsys.readouterr().out
    if document == "docs/guide/spark.md":
        assert (tmp_path / "kinds.png").read_bytes().startswith(b"\x89PNG")


def test_the_notebook_runs(spark, charts, golden, monkeypatch, tmp_path, capsys):
    notebook = json.loads((ROOT / "docs/guide/pipeline.ipynb").read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    monkeypatch.chdir(tmp_path)
    names = {}

    for cell in cells:
        exec(cell.replace("build/try", str(golden / "broker_basic")), names)

    said = capsys.readouterr().out
    assert "orders" in said
    (bars,) = names["figure"].axes
    assert sum(bar.get_height() for bar in bars.patches) > 0
    # Without what it said last time: that would be of somebody's machine.
    assert all(not cell.get("outputs") for cell in notebook["cells"])
