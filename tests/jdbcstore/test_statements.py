"""Every table, and every statement on it that differs from database to database, as text.

The files in statements/ were read against each vendor's manual, since Oracle, DB2 and SQL Server
cannot be run here. To write them anew: QUIVER_WRITE_STATEMENTS=1 and run this file.
"""

import os
import re
from pathlib import Path

import pytest
from sqlalchemy.schema import CreateIndex, CreateTable

from jdbcstore.dialects import dialect_named
from jdbcstore.lease_row import LeaseRow
from jdbcstore.schema import PRIMARY_LOCK_ROW, file_table, journal_table, node_table

FOLDER = Path(__file__).parent / "statements"
DATABASES = ["sqlite", "postgresql", "mysql", "derby", "oracle", "db2", "mssql"]
NAME_MAX = {
    "sqlite": 1000,
    "postgresql": 63,
    "mysql": 64,
    "derby": 128,
    "oracle": 30,
    "db2": 128,
    "mssql": 128,
}


class Recorder:
    """A driver's connection that writes down what it is asked to do."""

    def __init__(self):
        self.asked = []
        self.rowcount = 0

    def cursor(self):
        return self

    def execute(self, sql, parameters=()):
        self.asked.append(sql)

    def close(self):
        pass


def statements(name):
    dialect = dialect_named(name)
    journal = journal_table("MESSAGES", dialect)
    files = file_table("LARGE_MESSAGES", dialect)
    nodes = node_table("NODE_MANAGER_STORE", dialect)
    for table in (journal, files, nodes):
        yield CreateTable(table).compile(dialect=dialect.engine_dialect)
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            yield CreateIndex(index).compile(dialect=dialect.engine_dialect)
    yield dialect.select_now_ms
    yield dialect.select_locked("ID", nodes, "ID = 1")
    yield dialect.insert_sql(journal)
    recorder = Recorder()
    dialect.delete_ids(recorder, journal, [1, 2, 3])
    dialect.delete_ids(recorder, journal, [1], "txId")
    yield from recorder.asked
    row = LeaseRow(nodes, dialect, PRIMARY_LOCK_ROW)
    for statement in (row._acquire, row._renew, row._release, row._look):
        yield statement.compile(dialect=dialect.engine_dialect)
    yield row.fence("holder").sql
    yield row.renewing_fence("holder", 20_000).sql


def text_of(name):
    tidy = (re.sub(r"\s+", " ", str(one)).strip() for one in statements(name))
    return "".join(f"{one};\n" for one in tidy)


@pytest.mark.parametrize("name", DATABASES)
def test_statements_are_those_that_were_read_against_the_manual(name):
    golden = FOLDER / f"{name}.sql"
    if os.environ.get("QUIVER_WRITE_STATEMENTS"):
        golden.write_text(text_of(name))

    assert text_of(name) == golden.read_text()


@pytest.mark.parametrize("name", DATABASES)
def test_names_are_within_the_databases_limit_even_for_the_longest_table(name):
    dialect = dialect_named(name)
    longest = "X" * min(dialect.table_name_max, 63)

    tables = [build(longest, dialect) for build in (journal_table, file_table, node_table)]

    names = [str(table.name) for table in tables]
    names += [str(index.name) for table in tables for index in table.indexes]
    assert max(map(len, names)) <= NAME_MAX[name]
    assert len({str(index.name) for index in tables[0].indexes}) == len(tables[0].indexes)


def test_long_names_that_begin_alike_have_indexes_of_their_own():
    dialect = dialect_named("oracle")

    first, second = (journal_table("X" * 29 + last, dialect) for last in "YZ")

    shared = {str(i.name) for i in first.indexes} & {str(i.name) for i in second.indexes}
    assert not shared


@pytest.mark.parametrize("name", DATABASES)
def test_a_table_name_stands_in_quotes_wherever_it_stands(name):
    names = "MESSAGES|LARGE_MESSAGES|NODE_MANAGER_STORE"
    bare = re.compile(rf'(?<!["`\[\w])(?:{names})\b', re.IGNORECASE)

    assert bare.findall(text_of(name)) == []
