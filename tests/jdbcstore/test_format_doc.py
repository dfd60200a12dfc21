"""docs/format/sql.md draws the tables that the code makes."""

import re
from pathlib import Path

import pytest
from sqlalchemy.schema import CreateTable

from jdbcstore.dialects import dialect_named
from jdbcstore.dialects.choose import DIALECTS
from jdbcstore.node import NodeState
from jdbcstore.schema import file_table, journal_table, node_table
from tests.jdbcstore import format_example

DOCUMENT = (Path(__file__).resolve().parents[2] / "docs/format/sql.md").read_text()
TABLES = {
    "Journal table": journal_table,
    "File table": file_table,
    "Node manager table": node_table,
}


def section(title):
    return re.search(rf"^## \d+\. {title}\n(.*?)(?=^## |\Z)", DOCUMENT, re.M | re.S)[1]


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def rows(text, first_column):
    """The rows of the table whose header begins with that cell, as lists of cells."""
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {first_column} |"))
    found = [cells(lines[start])]
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        found.append(cells(line))
    return found


COLUMN = re.compile(r"^\t\"?(\w+)\"? (\w+(?:\([\w ,]+\))?)", re.M)
# What databases call the same in more ways than one.
SYNONYMS = ((", 0)", ")"), (" CHAR)", ")"))


def sql_types(table, dialect):
    """{column: its type as CREATE TABLE says it}."""
    types = dict(COLUMN.findall(str(CreateTable(table).compile(dialect=dialect.engine_dialect))))
    for name, type_ in types.items():
        for one, other in SYNONYMS:
            type_ = type_.replace(one, other)
        types[name] = "INTEGER" if type_ == "INT" else type_
    return types


def documented_types(dialect):
    """{kind: type} of one database."""
    header, *body = rows(section("Types"), "kind")
    column = header.index(dialect.name)
    return {row[0]: row[column] for row in body}


@pytest.mark.parametrize("title", TABLES)
def test_the_drawing_has_the_columns_in_their_order(title):
    table = TABLES[title]("T", dialect_named("sqlite"))
    drawn = re.search(r"^ {4}\| (\w+ .*)$", section(title), re.M)[1]
    _, *listed = rows(section(title), "column")

    assert cells(drawn) == list(table.columns.keys())
    assert [row[0] for row in listed] == list(table.columns.keys())


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("title", TABLES)
def test_the_types_are_those_of_the_statements(name, title):
    dialect = dialect_named(name)
    types = sql_types(TABLES[title]("T", dialect), dialect)
    kinds = documented_types(dialect)

    for column, kind, _ in rows(section(title), "column")[1:]:
        documented = kinds.get(kind, kind).removesuffix(", key")
        if documented != "generated key":
            assert types[column] == documented, column


@pytest.mark.parametrize("name", DIALECTS)
def test_whether_seq_is_the_key_is_said(name):
    dialect = dialect_named(name)

    assert documented_types(dialect)["seq"].endswith(", key") is dialect.seq_is_key


@pytest.mark.parametrize("name", DIALECTS)
def test_the_clock_of_every_database_is_named(name):
    dialect = dialect_named(name)
    clocks = {row[0]: row[1] for row in rows(section("Node manager table"), "database")[1:]}

    for call in re.findall(r"`([\w() ]+)`", clocks[dialect.name]):
        assert call in dialect.now_ms


def test_the_letters_of_the_state_are_those_that_are_written():
    said = next(
        row[2] for row in rows(section("Node manager table"), "column") if row[0] == "STATE"
    )

    assert set(re.findall(r"`(\w)`", said)) == {state.value for state in NodeState if state.value}


def test_the_examples_are_what_the_code_writes(tmp_path):
    assert section("Examples").strip("\n") == format_example.text(tmp_path).strip("\n")
