"""What the stub of SQL Server knows of Transact-SQL: enough to let SQLite run our statements.

It does not check syntax: test_foreign_sql.py does. What SQLAlchemy asks the catalogue is
answered from SQLite's own, in the columns that the question names.
"""

import re
from dataclasses import dataclass

NOW_MS = "DATEDIFF_BIG(MILLISECOND, CAST('1970-01-01' AS DATETIME2), SYSUTCDATETIME())"
LOCK_HINT = " WITH (UPDLOCK, ROWLOCK, HOLDLOCK)"
# (Transact-SQL, what SQLite has in its place).
WRITTEN = (
    (NOW_MS, "now_ms()"),
    (LOCK_HINT, ""),
    ("VARBINARY(max)", "BLOB"),
    ("NVARCHAR(max)", "TEXT"),
)
IDENTITY = re.compile(r"ID BIGINT NOT NULL IDENTITY(.*),\s*PRIMARY KEY \(ID\)", re.DOTALL)
APPEND = re.compile(r"DATA\.WRITE\(CAST\((@\w+) AS BLOB\), NULL, NULL\)")
DROP_INDEX = re.compile(r"(DROP INDEX \[\w+\]) ON \[\w+\]")
TOP = re.compile(r"SELECT TOP \(?(\d+|@\w+)\)? ")
# Type in sys.types of what our tables have: (system_type_id, name, max_length, precision).
TYPES = {
    "BIGINT": (127, "bigint", 8, 19),
    "INTEGER": (56, "int", 4, 10),
    "SMALLINT": (52, "smallint", 2, 5),
    "BLOB": (165, "varbinary(max)", -1, 0),
    "TEXT": (231, "nvarchar(max)", -1, 0),
}


@dataclass(frozen=True)
class Answer:
    """Rows of a result, or how many a statement touched.

    Attributes:
        columns: (name, kind) each, see tds_wire.columns(); empty without a result.
        rows: of the result.
        count: rows touched; -1 where that is not counted.
    """

    columns: list
    rows: list
    count: int = -1


def for_sqlite(text):
    """A statement as SQLite takes it.

    >>> for_sqlite("SELECT a FROM (SELECT TOP 5 a FROM [T] ORDER BY a) AS coming")
    'SELECT a FROM (SELECT a FROM [T] ORDER BY a LIMIT 5) AS coming'
    """
    for theirs, ours in WRITTEN:
        text = text.replace(theirs, ours)
    text = IDENTITY.sub(r"ID INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT\1", text)
    text = DROP_INDEX.sub(r"\1", text)
    text = APPEND.sub(r"DATA = CAST(coalesce(DATA, x'') || \1 AS BLOB)", text)
    while (match := TOP.search(text)) is not None:
        end = _end_of_select(text, match.end())
        text = (
            f"{text[: match.start()]}SELECT {text[match.end() : end]} LIMIT {match[1]}{text[end:]}"
        )
    return text


def _end_of_select(text, start):
    depth = 0
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth < 0:
            return at
    return len(text)


# The catalogue.


def answer_from_catalogue(storage, text, values):
    """What the views of `sys` would say; None if the statement does not ask them."""
    if "fn_listextendedproperty" in text:
        return Answer([("", "int")], [])
    if " sys." not in text:
        return None
    wanted = set(values.values())
    found = [
        row
        for table in _tables(storage)
        if table in wanted
        for row in _rows_about(storage, table, text)
    ]
    names = _result_names(text)
    kinds = ["int" if all(isinstance(r.get(n, 0), int) for r in found) else "text" for n in names]
    return Answer(
        list(zip(names, kinds, strict=True)), [tuple(row.get(n) for n in names) for row in found]
    )


def _tables(storage):
    listed = storage.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return [name for (name,) in listed]


def _result_names(text):
    """Names of the columns that a SELECT returns."""
    listed = re.match(r"\s*SELECT (.*?)\s+FROM sys\.", text, re.DOTALL)[1]
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(listed):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append(listed[start:at])
            start = at + 1
    parts.append(listed[start:])
    return [re.split(r"\s+AS\s+|\.", part)[-1].strip(" []\n") for part in parts]


def _rows_about(storage, table, text):
    columns = list(storage.execute(f'PRAGMA table_info("{table}")'))
    if "sys.key_constraints" in text:
        for _, name, _, _, _, key in columns:
            if key:
                yield {
                    "table_name": table,
                    "owner": "dbo",
                    "constraint_name": f"PK_{table}",
                    "column_name": name,
                    "key_ordinal": key,
                    "index_type": 1,
                }
    elif "sys.index" in text:
        yield from _rows_about_indexes(storage, table, is_of_columns="sys.index_columns" in text)
    elif "sys.columns" in text:
        for _, name, declared, is_required, _, _ in columns:
            _, type_name, size, precision = _type(declared)
            yield {
                "table_name": table,
                "column_name": name,
                "precision": precision,
                "scale": 0,
                "type_name": type_name.partition("(")[0],
                "max_length": size,
                "base_type": type_name.partition("(")[0],
                "is_nullable": 1 - is_required,
                "is_identity": 0,
            }
    else:
        yield {"name": table}


def _rows_about_indexes(storage, table, *, is_of_columns):
    indexes = list(storage.execute(f'PRAGMA index_list("{table}")'))
    for number, (_, name, is_unique, origin, _) in enumerate(sorted(indexes, key=lambda i: i[1])):
        if origin != "c":
            continue
        if not is_of_columns:
            yield {
                "table_name": table,
                "index_id": number + 2,
                "is_unique": is_unique,
                "name": name,
                "type": 2,
            }
            continue
        for _, _, column in storage.execute(f'PRAGMA index_info("{name}")'):
            yield {
                "table_name": table,
                "index_id": number + 2,
                "name": column,
                "is_included_column": 0,
            }


def _type(declared):
    """Of a column as SQLite keeps its declaration."""
    if declared in TYPES:
        return TYPES[declared]
    name, _, size = declared.rstrip(")").partition("(")
    number = {"VARCHAR": 167, "CHAR": 175}[name]
    return number, f"{name.lower()}({size})", int(size), 0


DESCRIBED = (
    ("parameter_ordinal", "int"),
    ("name", "text"),
    ("suggested_system_type_id", "int"),
    ("suggested_system_type_name", "text"),
    ("suggested_max_length", "int"),
    ("suggested_precision", "int"),
    ("suggested_scale", "int"),
    *((f"suggested_user_type_{part}", "int") for part in ("id",)),
    *((f"suggested_user_type_{part}", "text") for part in ("database", "schema", "name")),
    ("suggested_assembly_qualified_type_name", "text"),
    ("suggested_xml_collection_id", "int"),
    *((f"suggested_xml_collection_{part}", "text") for part in ("database", "schema", "name")),
    *((f"suggested_is_{part}", "int") for part in ("xml_document", "case_sensitive")),
    *((f"suggested_is_{part}", "int") for part in ("fixed_length_clr_type", "input", "output")),
    ("formal_parameter_name", "text"),
    ("suggested_tds_type_id", "int"),
    ("suggested_tds_length", "int"),
)
TDS_TYPES = {127: 38, 56: 38, 52: 38, 165: 165, 167: 167, 175: 175, 231: 231}


def described_parameters(storage, text):
    """sp_describe_undeclared_parameters: the types of the columns that parameters stand for."""
    types = {
        name.upper(): _type(declared)
        for table in _tables(storage)
        if f"[{table}]" in text
        for _, name, declared, _, _, _ in storage.execute(f'PRAGMA table_info("{table}")')
    }
    inserted = re.search(r"INSERT INTO \[\w+\] \((.*?)\) VALUES \((.*?)\)", text)
    if inserted:
        named = zip(
            *([one.strip() for one in part.split(",")] for part in inserted.groups()), strict=True
        )
        columns = {mark: column for column, mark in named}
    else:
        columns = {
            mark: column for column, mark in re.findall(r"(\w+)\]?\s*(?:=|>=|<)\s*(@\w+)", text)
        }
    rows = []
    for number, mark in enumerate(dict.fromkeys(re.findall(r"@\w+", text)), 1):
        type_id, name, size, precision = types.get(columns.get(mark, "").upper(), TYPES["BIGINT"])
        known = {
            "parameter_ordinal": number,
            "name": mark,
            "suggested_system_type_id": type_id,
            "suggested_system_type_name": name,
            "suggested_max_length": size,
            "suggested_precision": precision,
            "suggested_scale": 0,
            "suggested_is_input": 1,
            "suggested_is_output": 0,
            "suggested_is_xml_document": 0,
            "suggested_is_case_sensitive": 0,
            "suggested_is_fixed_length_clr_type": 0,
            "suggested_tds_type_id": TDS_TYPES[type_id],
            "suggested_tds_length": 65535 if size < 0 else size,
        }
        rows.append(tuple(known.get(column) for column, _ in DESCRIBED))
    return Answer(list(DESCRIBED), rows)
