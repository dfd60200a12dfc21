"""A transaction on a socket: committed once all is well, and never else."""

import os
import signal
import socket
import threading
import time

import pytest

from jdbcstore import DatabaseStoreOptions, SqlStore
from jdbcstore.record_tables.mysql_commands import Commands
from jdbcstore.record_tables.mysql_exchange import exchange

COMMIT = Commands([b"\x03COMMIT"]).packets()
SENT = Commands([b"\x03SELECT 1", b"\x03INSERT"])
COMMANDS = SENT.packets()
OK = b"\0\1\0\2\0\0\0"  # One row changed.
IDLE = b"\0\0\0\2\0\0\0"
DONE = b"\0\0\0\0\0\0\0"  # What a COMMIT answers.
END = b"\xfe\0\0\2\0"
ERROR = b"\xff\xbd\x04#40001Deadlock"
ROW = b"\x011"


def answer(*payloads):
    """Packets of one answer, numbered as a server numbers them."""
    return b"".join(
        len(one).to_bytes(3, "little") + bytes([number]) + one
        for number, one in enumerate(payloads, 1)
    )


def rows(*found):
    """The answer to a SELECT of one column."""
    return answer(b"\x01", b"column", END, *found, END)


class Server:
    """The other end: says what it is told to, and keeps what it hears."""

    def __init__(self, peer):
        self.peer = peer
        self.heard = b""

    def hear(self, size):
        while len(self.heard) < size:
            try:
                more = self.peer.recv(65536)
            except ConnectionResetError:
                return  # It closed while something that we said was unread.
            if not more:
                return
            self.heard += more

    def play(self, first, second, piece):
        self.hear(len(COMMANDS))
        for place in range(0, len(first), piece):
            self.peer.sendall(first[place : place + piece])
        if second is not None:
            self.hear(len(COMMANDS + COMMIT))
            self.peer.sendall(second)
        self.peer.shutdown(socket.SHUT_WR)
        self.hear(1 << 30)  # Until the other end closes.


def talk(first, second=None, *, piece=65536, timeout_ms=60_000):
    """What exchange() returns, or raises, and what the server heard."""
    ours, peer = socket.socketpair()
    server = Server(peer)
    thread = threading.Thread(target=server.play, args=(first, second, piece))
    thread.start()
    try:
        found = exchange(ours.fileno(), SENT, timeout_ms)
    except OSError as error:
        found = error
    finally:
        ours.close()
        thread.join()
        peer.close()
    return found, server.heard


@pytest.mark.parametrize("piece", [1, 2, 7, 65536])
def test_what_succeeds_behind_a_row_is_committed(piece):
    found, heard = talk(rows(ROW) + answer(OK), answer(DONE), piece=piece)

    assert found == (1, 0, None)
    assert heard == COMMANDS + COMMIT


def test_without_a_row_nothing_is_committed():
    found, heard = talk(rows() + answer(OK))

    assert found == (0, 0, None)
    assert heard == COMMANDS


def test_behind_a_command_that_changed_nothing_the_caller_looks_first():
    """MariaDB says so of a DELETE that was cancelled."""
    found, heard = talk(rows(ROW) + answer(IDLE))

    assert found == (1, 1, None)
    assert heard == COMMANDS


@pytest.mark.parametrize(
    "first",
    [
        answer(ERROR) + answer(OK),
        rows(ROW) + answer(ERROR),
        answer(b"\x01", b"column", END, ERROR) + answer(OK),
        answer(b"\x01", b"column", END, ROW, ERROR) + answer(b"\xff\x15\x04other"),
    ],
)
def test_behind_an_error_nothing_is_committed(first):
    found, heard = talk(first)

    assert found[2] == ERROR
    assert heard == COMMANDS


def test_behind_a_fence_without_a_row_no_error_counts():
    """Who was fenced off inserts what the new owner has inserted: that is not what ended him."""
    found, heard = talk(rows() + answer(ERROR))

    assert found == (0, 0, None)
    assert heard == COMMANDS


def test_a_commit_that_fails_is_an_error():
    found, _ = talk(rows(ROW) + answer(OK), answer(ERROR))

    assert found == (1, 0, ERROR)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (b"", None),
        (rows(ROW), None),
        (rows(ROW) + answer(OK)[:-1], None),
        (rows(ROW) + answer(OK), b""),
        # The server ended the session while it was idle, and says so before it hangs up.
        (answer(b"\xff\x87\x07#70100Connection was killed"), None),
    ],
)
def test_a_connection_that_ends_in_the_middle_is_lost(first, second):
    found, _ = talk(first, second)

    assert isinstance(found, ConnectionResetError)


@pytest.mark.parametrize(
    "first",
    [
        answer(b"\xfbfile"),
        answer(b""),
        answer(b"\x02", b"column", END),
        rows(ROW) + answer(OK) + answer(OK),
        answer(b"\x01", bytes(20_000)),
    ],
)
def test_what_is_no_answer_ends_the_talk(first):
    found, heard = talk(first)

    assert isinstance(found, ConnectionError)
    assert heard == COMMANDS


def test_silence_ends_with_the_timeout():
    ours, peer = socket.socketpair()
    with ours, peer, pytest.raises(TimeoutError, match="20 ms"):
        exchange(ours.fileno(), SENT, 20)


def test_a_peer_that_takes_nothing_ends_with_the_timeout():
    ours, peer = socket.socketpair()
    with ours, peer, pytest.raises(TimeoutError, match="silent"):
        exchange(ours.fileno(), Commands([bytes(64 << 20)]), 20)


def test_a_signal_in_the_middle_is_handled_and_the_commit_sent_once():
    """Python's handler runs meanwhile; one that raises ends it."""
    seen = []
    before = signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
    ours, peer = socket.socketpair()
    server = Server(peer)

    def play():
        for heard, said in (
            (COMMANDS, rows(ROW) + answer(OK)),
            (COMMANDS + COMMIT, answer(DONE)),
        ):
            server.hear(len(heard))
            told = len(seen)
            while len(seen) == told:  # A signal may come just before the wait begins.
                os.kill(os.getpid(), signal.SIGUSR1)
                time.sleep(0.01)
            peer.sendall(said)
        server.hear(1 << 30)

    thread = threading.Thread(target=play)
    thread.start()
    try:
        found = exchange(ours.fileno(), SENT, 60_000)
    finally:
        ours.close()
        thread.join()
        peer.close()
        signal.signal(signal.SIGUSR1, before)

    assert found == (1, 0, None)
    assert server.heard == COMMANDS + COMMIT


@pytest.mark.parametrize("database", ["mariadb"], indirect=True)
def test_a_batch_takes_one_commit(database):
    store = SqlStore(DatabaseStoreOptions(connection_url=database.url))
    store.open()
    try:
        store.load()
        driver = store.leased.table.connection.connection.driver_connection

        def commits():
            with driver.cursor() as cursor:
                cursor.execute("SHOW SESSION STATUS LIKE 'Com_commit'")
                return int(cursor.fetchone()[1])

        before = commits()
        for record_id in range(1, 21):
            store.add(record_id, 1, b"body", sync=True)
        for record_id in range(1, 21):
            store.delete(record_id, sync=True)
        assert commits() - before == 40
    finally:
        store.close()
