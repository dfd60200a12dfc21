"""Who waits is woken, whatever they wait for."""

import threading

import pytest

from journal.journal import Journal
from journal.options import JournalOptions, JournalType

WAIT_S = 30


@pytest.fixture
def journal(tmp_path):
    options = JournalOptions(
        directory=tmp_path,
        journal_type=JournalType.NIO,
        file_size=1 << 20,
        buffer_timeout_ns=0,
    )
    with Journal(options) as journal:
        journal.load()
        yield journal


def in_time(function):
    """Run it on a thread of its own; whether it came to an end."""
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    thread.join(WAIT_S)
    return not thread.is_alive()


def test_waits_for_the_file_and_for_the_disk_do_not_take_each_others_turns(journal):
    def both(first):
        for i in range(300):
            journal.add(first + i, 1, b"x", sync=i % 2 == 0)

    def four():
        threads = [threading.Thread(target=both, args=(n * 1000,)) for n in range(1, 5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert in_time(four)
