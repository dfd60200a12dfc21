"""Nobody who waits is forgotten: blocked threads wake each other in a chain (buffer.pyx)."""

import threading

import pytest

from journal import Journal, JournalOptions

WAIT_S = 60


@pytest.mark.parametrize("buffer_timeout_ns", [0, 100_000])
@pytest.mark.parametrize("producers", [1, 3, 40])
def test_every_waiter_returns_whatever_it_waits_for(tmp_path, producers, buffer_timeout_ns, effort):
    """Waits for the disk, for the file alone and for older tickets, all mixed."""
    journal = Journal(
        JournalOptions(
            directory=tmp_path,
            journal_type="NIO",
            file_size=256 * 1024,
            buffer_size=4096,
            buffer_timeout_ns=buffer_timeout_ns,
        )
    )
    rounds = effort(20_000, 200) // producers
    with journal:
        journal.load()

        def produce(first: int) -> None:
            old = []
            for i in range(rounds):
                record_id = first + i
                ticket = journal.add(record_id, 1, b"x" * (i % 700), sync=i % 3 == 0)
                old.append(ticket)
                if i % 50 == 49:
                    journal.wait(old[i // 2])
                if i % 70 == 69:
                    journal.sync()

        threads = [
            threading.Thread(target=produce, args=(1 + k * rounds,), daemon=True)
            for k in range(producers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT_S)

        assert not any(thread.is_alive() for thread in threads)
        assert len(journal) == rounds * producers
