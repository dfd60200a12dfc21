import socket

import psycopg.errors
import pymysql
import pytest
import sqlalchemy.exc

from jdbcstore import Fault, LeaseLost, classify
from jdbcstore.dialects import dialect_named
from journal.errors import JournalClosed


def mysql(number):
    return pymysql.err.OperationalError(number, "text")


@pytest.mark.parametrize(
    ("name", "error", "fault"),
    [
        ("postgresql", psycopg.errors.AdminShutdown(), Fault.LOST),
        ("postgresql", psycopg.errors.CannotConnectNow(), Fault.LOST),
        ("postgresql", psycopg.errors.ReadOnlySqlTransaction(), Fault.LOST),
        ("postgresql", psycopg.OperationalError("connection refused"), Fault.LOST),
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
        ("sqlite", ConnectionResetError(), Fault.LOST),
        ("postgresql", TimeoutError(), Fault.LOST),
        ("mysql", socket.gaierror(), Fault.LOST),
        ("mysql", ValueError(), Fault.FATAL),
    ],
)
def test_an_error_is_judged_by_its_code(name, error, fault):
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
