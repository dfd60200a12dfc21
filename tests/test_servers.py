"""The servers that other tests lean on do what tests/servers.py promises."""

import contextlib
import socket
import threading

import pytest
import sqlalchemy

from tests.servers import descendants

KINDS = ["postgresql", "mariadb"]


@contextlib.contextmanager
def connected(database):
    engine = sqlalchemy.create_engine(database.url, poolclass=sqlalchemy.NullPool)
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def add_row(database):
    with connected(database) as connection:
        connection.exec_driver_sql("CREATE TABLE t (a INTEGER)")
        connection.exec_driver_sql("INSERT INTO t VALUES (1)")
        connection.commit()


def rows(database):
    with connected(database) as connection:
        return connection.exec_driver_sql("SELECT a FROM t").fetchall()


@pytest.mark.parametrize("database", [*KINDS, "sqlite"], indirect=True)
def test_a_database_is_empty_and_keeps_rows(database):
    add_row(database)

    assert rows(database) == [(1,)]


@pytest.mark.parametrize("kind", KINDS)
def test_two_databases_of_a_server_are_apart(new_database, kind):
    first, second = new_database(kind), new_database(kind)

    add_row(first)

    with connected(second) as connection, pytest.raises(sqlalchemy.exc.SQLAlchemyError):
        connection.exec_driver_sql("SELECT a FROM t")


@pytest.mark.parametrize("database", KINDS, indirect=True)
@pytest.mark.parametrize("end", ["stop", "kill9"])
def test_committed_rows_survive_an_end_of_the_server(database, end):
    add_row(database)

    getattr(database.server, end)()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", database.port)) != 0
    database.server.start()

    assert rows(database) == [(1,)]


@pytest.mark.parametrize("database", KINDS, indirect=True)
def test_a_paused_server_answers_after_it_was_resumed(database):
    add_row(database)
    answers = []
    asker = threading.Thread(target=lambda: answers.append(rows(database)))

    database.server.pause()
    states = {state(pid) for pid in descendants(database.server.pid)}
    asker.start()
    asker.join(0.2)
    silent = list(answers)
    database.server.resume()
    asker.join()

    assert silent == []
    assert states <= {"T", "Z"}  # Z: ended, and its parent, stopped too, has not asked yet.
    assert answers == [[(1,)]]


def state(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


def test_derby_listens(database_servers):
    server = database_servers.get("derby")

    server.kill9()
    server.start()

    with socket.create_connection(("127.0.0.1", server.port)):
        pass
