"""Statements for Oracle, DB2 and SQL Server, run in HSQLDB, which can take each one's syntax.

Syntax and effect, not locking; what HSQLDB does not know of a vendor is said in its own words
first, and stands in REWRITTEN. The JVM is another process's: this one may have started its own.
"""

import os
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

PROGRAM = """
import sys, time
from jdbcstore.dialects import jdbc, jvm
jpype = jvm.start([sys.argv[1]], {})
url = f"jdbc:hsqldb:mem:x;sql.syntax_{sys.argv[2]}=true"
connection = jdbc.connect(url, {"user": "SA", "password": ""}, jpype=jpype)
cursor = connection.cursor()
for statement in sys.stdin.read().splitlines():
    statement = statement.rstrip(";")
    if statement.startswith("CREATE"):
        cursor.execute(statement)
    elif statement.startswith("SELECT (EXTRACT"):
        cursor.execute(statement)
        now = cursor.fetchone()[0]
        print("off by", abs(float(now) - time.time() * 1000), "ms")
        assert abs(float(now) - time.time() * 1000) < 60_000
    else:
        connection.java.prepareStatement(statement)
"""


@pytest.mark.skipif(not HSQLDB.exists(), reason="no HSQLDB here: install Debian's libhsqldb-java")
@pytest.mark.parametrize("name", MODES)
def test_the_statements_run_in_the_vendors_mode(name):
    skip_without_jvm()
    text = (STATEMENTS / f"{name}.sql").read_text()
    for theirs, plain in REWRITTEN[name]:
        assert theirs in text
        text = text.replace(theirs, plain)

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
