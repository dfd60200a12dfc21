import socket
import subprocess
import sys
from pathlib import Path

import psycopg.errors
import pymysql
import pytest
import sqlalchemy.exc

from jdbcstore import Database, DatabaseStoreOptions, Fault, LeaseLost, classify, sqlalchemy_url
from jdbcstore.dialects import dialect_named, jdbc
from journal.errors import JournalClosed, OptionError

ROOT = Path(__file__).resolve().parents[2]


def mysql(number):
    return pymysql.err.OperationalError(number, "text")


@pytest.mark.parametrize(
    ("name", "error", "fault"),
    [
        ("postgresql", psycopg.errors.AdminShutdown(), Fault.LOST),
        ("postgresql", psycopg.errors.CannotConnectNow(), Fault.LOST),
        ("postgresql", psycopg.errors.ReadOnlySqlTransaction(), Fault.LOST),
        ("postgresql", psycopg.OperationalError("connection refused"), Fault.LOST),
        (
            "postgresql",
            psycopg.OperationalError(
                "failed: FATAL:  no pg_hba.conf entry\nMultiple connection attempts failed. All"
                " failures were:\n- host: 'a': refused\n- host: 'b': FATAL:  no pg_hba.conf entry"
            ),
            Fault.LOST,
        ),
        ("postgresql", psycopg.errors.InvalidPassword(), Fault.FATAL),
        ("postgresql", psycopg.errors.InvalidCatalogName(), Fault.FATAL),
        ("postgresql", psycopg.InterfaceError("the connection is closed"), Fault.LOST),
        ("postgresql", psycopg.errors.SerializationFailure(), Fault.CONFLICT),
        ("postgresql", psycopg.errors.DeadlockDetected(), Fault.CONFLICT),
        ("postgresql", psycopg.errors.LockNotAvailable(), Fault.CONFLICT),
        ("postgresql", psycopg.errors.QueryCanceled(), Fault.CONFLICT),
        ("postgresql", psycopg.errors.UniqueViolation(), Fault.FATAL),
        ("postgresql", psycopg.errors.UndefinedTable(), Fault.FATAL),
        ("postgresql", psycopg.ProgrammingError("no SQLSTATE"), Fault.FATAL),
        ("mysql", mysql(2006), Fault.LOST),
        ("mysql", mysql(2013), Fault.LOST),
        ("mysql", mysql(1053), Fault.LOST),
        ("mysql", pymysql.err.InterfaceError(0, ""), Fault.LOST),
        ("mysql", mysql(1205), Fault.CONFLICT),
        ("mysql", mysql(1213), Fault.CONFLICT),
        ("mysql", pymysql.err.IntegrityError(1062, "duplicate"), Fault.FATAL),
        ("mysql", pymysql.err.ProgrammingError(1146, "no table"), Fault.FATAL),
        *(("mysql", mysql(number), Fault.FATAL) for number in (1044, 1045, 1049, 1698)),
        ("sqlite", ConnectionResetError(), Fault.LOST),
        ("postgresql", TimeoutError(), Fault.LOST),
        ("mysql", socket.gaierror(), Fault.LOST),
        ("mysql", ValueError(), Fault.FATAL),
    ],
)
def test_an_error_is_classified_by_its_code(name, error, fault):
    wrapped = sqlalchemy.exc.DBAPIError("SELECT 1", {}, error)

    assert classify(error, dialect_named(name)) is fault
    assert classify(wrapped, dialect_named(name)) is fault


def test_a_pool_without_a_free_connection_is_tried_again():
    error = sqlalchemy.exc.TimeoutError("QueuePool limit")

    assert classify(error, dialect_named("sqlite")) is Fault.CONFLICT


def test_an_invalidated_connection_is_lost():
    error = sqlalchemy.exc.DBAPIError("x", {}, ValueError(), connection_invalidated=True)

    assert classify(error, dialect_named("sqlite")) is Fault.LOST


def test_a_lost_lease_closes_the_store():
    assert issubclass(LeaseLost, JournalClosed)


def oracle(code):
    import oracledb

    class Said:
        full_code = code

    return oracledb.DatabaseError(Said())


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("ORA-03113", Fault.LOST),
        ("ORA-12541", Fault.LOST),
        ("DPY-4011", Fault.LOST),
        ("DPY-4024", Fault.LOST),
        ("ORA-00060", Fault.CONFLICT),
        ("ORA-08177", Fault.CONFLICT),
        ("ORA-01017", Fault.FATAL),
        ("ORA-28000", Fault.FATAL),
        ("ORA-00001", Fault.FATAL),
        ("ORA-00942", Fault.FATAL),
    ],
)
def test_oracles_codes(code, fault):
    assert classify(oracle(code), dialect_named("oracle")) is fault


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("SQL0911N  Rolled back. Reason code 2.  SQLSTATE=40001 SQLCODE=-911", Fault.CONFLICT),
        ("SQL0913N  Unsuccessful.  SQLSTATE=57033 SQLCODE=-913", Fault.CONFLICT),
        ("SQL30081N  A communication error.  SQLSTATE=08001 SQLCODE=-30081", Fault.LOST),
        ("[IBM][CLI Driver] SQL30081N  A communication error", Fault.LOST),
        ("SQL1224N  SQLSTATE=55032 SQLCODE=-1224", Fault.LOST),
        ("SQL0803N  Duplicate.  SQLSTATE=23505 SQLCODE=-803", Fault.FATAL),
        ("SQL0204N  Undefined.  SQLSTATE=42704 SQLCODE=-204", Fault.FATAL),
        ('SQL30082N  Security processing failed: "24".  SQLSTATE=08001', Fault.FATAL),
        ("SQL30061N  The database was not found.  SQLSTATE=08004", Fault.FATAL),
        ("no state at all", Fault.FATAL),
    ],
)
def test_db2s_states_are_in_its_text(text, fault):
    assert classify(RuntimeError(text), dialect_named("db2")) is fault


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ((1205, b"deadlock"), Fault.CONFLICT),
        ((1222, b"lock time-out"), Fault.CONFLICT),
        ((20047, b"DBPROCESS is dead"), Fault.LOST),
        (((20009, b"Unable to connect"),), Fault.LOST),
        ((596, b"killed"), Fault.LOST),
        ((18401, b"Login failed: the server is in upgrade mode"), Fault.LOST),
        ((18456, b"Login failed for user 'me'"), Fault.FATAL),
        (((20002, b"Login failed for user 'me'.DB-Lib error message 20002"),), Fault.FATAL),
        ((4060, b"Cannot open database"), Fault.FATAL),
        ((2627, b"duplicate key"), Fault.FATAL),
        (("text",), Fault.FATAL),
    ],
)
def test_sql_servers_numbers(arguments, fault):
    assert classify(RuntimeError(*arguments), dialect_named("mssql")) is fault


@pytest.mark.parametrize(
    ("sqlstate", "fault"),
    [
        ("08S01", Fault.LOST),
        ("08001", Fault.LOST),
        ("HYT00", Fault.LOST),
        ("40001", Fault.CONFLICT),
        ("23000", Fault.FATAL),
    ],
)
def test_what_mssql_python_leaves_of_a_state(sqlstate, fault):
    exceptions = pytest.importorskip("mssql_python.exceptions")

    error = exceptions.sqlstate_to_exception(sqlstate, "text")

    assert classify(error, dialect_named("mssql")) is fault


@pytest.mark.parametrize(
    ("sqlstate", "fault"),
    [
        ("08006", Fault.LOST),
        ("XJ015", Fault.LOST),
        ("40001", Fault.CONFLICT),
        ("40XL1", Fault.CONFLICT),
        ("40XT0", Fault.FATAL),
        ("08004", Fault.FATAL),
        ("XJ004", Fault.FATAL),
        ("XJ040", Fault.FATAL),
        ("23505", Fault.FATAL),
        (None, Fault.FATAL),
    ],
)
def test_derbys_states(sqlstate, fault):
    error = jdbc.OperationalError("text")
    error.sqlstate = sqlstate

    assert classify(error, dialect_named("derby")) is fault


def test_a_db2_connection_string_cannot_be_broken_out_of():
    dialect = dialect_named("db2")
    url = sqlalchemy_url("jdbc:db2://db/S:user=me;sslConnection=true;").set(password="a;UID=root")

    with pytest.raises(OptionError):
        dialect.connection_string(url, -1)


def test_a_db2_connection_string_holds_every_keyword():
    url = sqlalchemy_url("jdbc:db2://db/S:user=me;password=pw;securityMechanism=9;")

    assert dialect_named("db2").connection_string(url, 1500) == (
        "ConnectTimeout=2;ReceiveTimeout=2;DATABASE=S;HOSTNAME=db;PORT=50000;PROTOCOL=TCPIP;"
        "UID=me;PWD=pw;Authentication=SERVER_ENCRYPT;"
    )


def test_a_driver_of_microsofts_that_cannot_be_loaded_names_its_library(monkeypatch):
    driver = pytest.importorskip("mssql_python")

    def connect(*words, **named):
        raise driver.exceptions.OperationalError("Connection failed", "Failed to load the driver.")

    monkeypatch.setattr(driver, "connect", connect)
    database = Database(DatabaseStoreOptions(connection_url="mssql://me:secret@host/broker"))

    with pytest.raises(OptionError, match="apt-get install libltdl7"):
        database.connect()
    database.close()


def test_no_driver_is_imported_before_a_database_needs_it():
    code = (
        "import sys, jdbcstore, jdbcstore.tools.opener, journal, broker.server\n"
        "drivers = {'psycopg', 'pymysql', 'oracledb', 'ibm_db', 'mssql_python', 'jpype'}\n"
        "print(drivers & set(sys.modules))"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )

    assert done.stdout == "set()\n"
