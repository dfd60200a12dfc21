"""Statements for Oracle, DB2 and SQL Server, executed in HSQLDB, which takes each one's syntax.

Executed: every statement of statements/, in the vendor's mode, with values, and each must touch or
find the row that is meant for it. Not checked: locking, types beyond their names, and how the
vendor's own driver binds (test_sql_server.py and test_db2.py do that for two of them). What HSQLDB
does not know of a vendor is said in its own words first, and stands in REWRITTEN; so DB2's clock
is a constant here.

No test server speaks to Oracle's driver: the protocol of its thin mode (TNS and TTC) is not
published, and no free server of it exists. A login alone exchanges encrypted keys and the
capabilities of both sides. A stub in a few hundred lines would repeat what the driver's source
does, and show nothing of what Oracle does.

The JVM is another process's: this one may have started its own.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers import skip_without_jvm

HSQLDB = Path("/usr/share/java/hsqldb.jar")
STATEMENTS = Path(__file__).parent / "statements"
ROOT = Path(__file__).resolve().parents[2]

REWRITTEN = {
    "oracle": [(" ON NULL AS", " AS"), (" CHAR)", ")")],
    "db2": [
        ("BIGINT(DAYS(CURRENT TIMESTAMP - CURRENT TIMEZONE) - DAYS(DATE('1970-01-01')))", "1"),
        ("BIGINT(MIDNIGHT_SECONDS(CURRENT TIMESTAMP - CURRENT TIMEZONE))", "1"),
        ("MICROSECOND(CURRENT TIMESTAMP - CURRENT TIMEZONE)", "1"),
        ("SYSIBM.SYSDUMMY1", "DUAL"),
    ],
    "mssql": [
        ("[", '"'),
        ("]", '"'),
        (
            "DATEDIFF_BIG(MILLISECOND, CAST('1970-01-01' AS DATETIME2), SYSUTCDATETIME())",
            "DATEDIFF(MILLISECOND, CAST('1970-01-01' AS DATETIME), CURRENT_TIMESTAMP)",
        ),
        ("UPDLOCK, ROWLOCK, HOLDLOCK", "UPDLOCK, ROWLOCK"),
    ],
}
MODES = {"oracle": "ora", "db2": "db2", "mssql": "mss"}

# Values go in by the type that HSQLDB finds for a parameter: row 1 of the leases, and in wide
# numbers one that NUMBER(5) holds too, ids of records and milliseconds of a lease alike.
PROGRAM = """
import re, sys, time
from jdbcstore.dialects import jdbc, jvm
jpype = jvm.start([sys.argv[1]], {})
url = f"jdbc:hsqldb:mem:x;sql.syntax_{sys.argv[2]}=true"
connection = jdbc.connect(url, {"user": "SA", "password": ""}, jpype=jpype)
cursor = connection.cursor()
types = jpype.JClass("java.sql.Types")
values = {
    **dict.fromkeys((types.SMALLINT, types.INTEGER), 1),
    **dict.fromkeys((types.BIGINT, types.NUMERIC, types.DECIMAL), 60_000),
    **dict.fromkeys((types.VARCHAR, types.CHAR), "me"),
    **dict.fromkeys((types.BLOB, types.VARBINARY, types.LONGVARBINARY), b"body"),
}
statements = [one.rstrip(";") for one in sys.stdin.read().splitlines()]
# The last two lines ask for the lease that the release, in front of them, gives up.
is_release = re.compile(r"SET HOLDER_ID=[?], HOLDER_EXPIRATION_TIME=[?]").search
statements.sort(key=lambda one: is_release(one) is not None)
for statement in statements:
    prepared = connection.java.prepareStatement(statement)
    described = prepared.getParameterMetaData()
    for at in range(1, described.getParameterCount() + 1):
        value = values[described.getParameterType(at)]
        if isinstance(value, bytes):
            prepared.setBytes(at, value)
        elif isinstance(value, str):
            prepared.setString(at, value)
        else:
            prepared.setLong(at, value)
    if prepared.execute():
        rows = prepared.getResultSet()
        assert rows.next(), f"no row: {statement}"
        if statement.startswith("SELECT (EXTRACT") or statement.startswith("SELECT DATEDIFF"):
            now = float(str(rows.getObject(1)))
            print("off by", abs(now - time.time() * 1000), "ms")
            assert abs(now - time.time() * 1000) < 60_000
    elif statement.startswith('CREATE TABLE "NODE_MANAGER_STORE"'):
        cursor.execute('INSERT INTO NODE_MANAGER_STORE (ID) VALUES (1)')
    elif not statement.startswith("CREATE"):
        # The row is gone by its id when it is deleted by its transaction.
        expected = 0 if "txId IN" in statement else 1
        assert prepared.getUpdateCount() == expected, f"{prepared.getUpdateCount()}: {statement}"
print("executed", len(statements))
"""


@pytest.mark.slow
@pytest.mark.skipif(not HSQLDB.exists(), reason="no HSQLDB here: install Debian's libhsqldb-java")
@pytest.mark.parametrize("name", MODES)
def test_every_statement_does_its_work_in_the_vendors_mode(name):
    skip_without_jvm()
    text = (STATEMENTS / f"{name}.sql").read_text()
    for theirs, plain in REWRITTEN[name]:
        assert theirs in text
        text = text.replace(theirs, plain)
    # Oracle's parameters have names or numbers; HSQLDB prepares these, and cannot execute them.
    text = re.sub(r"(?<=[=(, ]):\w+", "?", text)

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(HSQLDB), MODES[name]],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )

    assert done.returncode == 0, done.stderr[-2000:]
    assert f"executed {len(text.splitlines())}" in done.stdout
