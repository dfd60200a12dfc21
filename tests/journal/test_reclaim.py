"""Which files can be used again: the tables of Artemis's ReclaimerTest, and a journal.

A table gives, for each file in order, its positives and its negatives by place of their target.
"""

import threading

import pytest

from journal.reclaim import reclaimable
from tests.journal.stored import View, loaded

TABLES = {
    # One file: its own deletes free it, and only all of them.
    "nothing": ([(0, {})], [0]),
    "adds": ([(10, {})], []),
    "deletes_all": ([(10, {0: 10})], [0]),
    "deletes_some": ([(10, {0: 7})], []),
    # Two files: the second releases the first.
    "two_empty": ([(0, {}), (0, {})], [0, 1]),
    "second_deletes_first": ([(10, {}), (10, {0: 10})], [0]),
    "second_deletes_some_of_first": ([(10, {}), (10, {0: 7})], []),
    "first_lives_second_is_empty": ([(10, {}), (0, {})], [1]),
    "second_deletes_both": ([(10, {}), (10, {0: 10, 1: 10})], [0, 1]),
    "second_is_dead_but_deletes_in_first": ([(10, {}), (10, {0: 5, 1: 10})], []),
    "each_deletes_its_own": ([(10, {0: 10}), (10, {1: 10})], [0, 1]),
    "shared_deletes": ([(10, {0: 5}), (10, {0: 5, 1: 10})], [0, 1]),
    "shared_deletes_second_lives": ([(10, {0: 5}), (10, {0: 5, 1: 9})], [0]),
    # Three files.
    "third_deletes_first": ([(10, {}), (10, {}), (10, {0: 10})], [0]),
    "third_deletes_second": ([(10, {}), (10, {}), (10, {1: 10})], [1]),
    "third_deletes_all": ([(10, {}), (10, {}), (10, {0: 10, 1: 10, 2: 10})], [0, 1, 2]),
    "second_and_third_delete_first": ([(10, {}), (0, {0: 5}), (0, {0: 5})], [0, 1, 2]),
    "dead_second_is_needed_by_first": ([(10, {}), (10, {0: 5}), (0, {1: 10})], []),
    "dead_third_is_needed_by_second": ([(0, {}), (10, {}), (10, {1: 5, 2: 10})], [0]),
    "chain": ([(10, {}), (10, {0: 10}), (10, {1: 10})], [0, 1]),
    "chain_with_a_gap": ([(10, {}), (10, {0: 9}), (10, {1: 10})], []),
    "middle_lives": ([(10, {}), (10, {}), (0, {0: 10})], [0, 2]),
    "zigzag": ([(10, {0: 3}), (10, {0: 3, 1: 5}), (10, {0: 4, 1: 5, 2: 10})], [0, 1, 2]),
    # More is released than there is (a commit of a transaction that was counted twice).
    "too_many": ([(10, {}), (0, {0: 20})], [0, 1]),
}


@pytest.mark.parametrize("name", TABLES)
def test_table(name):
    files, expected = TABLES[name]

    assert reclaimable(files) == expected


def test_negatives_of_an_older_file_release_nothing():
    assert reclaimable([(0, {1: 10}), (10, {})]) == [0]


def live_files(journal):
    return [count.file_id for count in journal.file_counts()]


def filled(journal, first, count, size=100):
    for record_id in range(first, first + count):
        journal.add(record_id, 1, b"x" * size)


def test_file_is_freed_when_adds_and_updates_are_deleted(tmp_path):
    journal = loaded(tmp_path)
    journal.add(1, 1, b"")
    filled(journal, 100, 150)
    journal.update(1, 1, b"")
    filled(journal, 300, 150)
    for record_id in [*range(100, 250), *range(300, 450)]:
        journal.delete(record_id)
    filled(journal, 1000, 150)

    journal.reclaim()
    pinned = [count.file_id for count in journal.file_counts() if count.live_bytes]
    assert 1 in pinned
    journal.delete(1)
    filled(journal, 2000, 150)
    journal.sync()
    waiting = threading.Event()
    for _ in range(6000):  # The files thread closes a full file before it can go.
        journal.reclaim()
        if 1 not in live_files(journal) or waiting.wait(0.01):
            break

    assert 1 not in live_files(journal)
    journal.close()
    assert set(View(tmp_path).records) == set(range(1000, 1150)) | set(range(2000, 2150))


@pytest.mark.parametrize("commits", [True, False], ids=["commit", "rollback"])
def test_end_of_a_transaction_outlives_its_operations(tmp_path, commits):
    journal = loaded(tmp_path)
    journal.add(1, 1, b"", tx=5)
    filled(journal, 100, 150)
    if commits:
        journal.commit(5)
    else:
        journal.rollback(5)
    filled(journal, 300, 150)
    for record_id in [*range(100, 250), *range(300, 450)]:
        journal.delete(record_id)
    journal.reclaim()
    journal.close()

    assert set(View(tmp_path).records) == ({1} if commits else set())


def test_prepared_transaction_keeps_its_file(tmp_path):
    journal = loaded(tmp_path)
    journal.prepare(5, b"branch")
    filled(journal, 100, 300)
    for record_id in range(100, 400):
        journal.delete(record_id)
    journal.reclaim()

    assert live_files(journal)[0] == 1
    journal.close()
    assert set(View(tmp_path).prepared) == {5}
