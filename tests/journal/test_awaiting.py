"""What waits for an awaitable: tasks, callbacks, and tasks that are not asyncio's own."""

import asyncio

import pytest

from journal.journal import Journal
from journal.options import JournalOptions, JournalType


@pytest.fixture
def journal(tmp_path):
    options = JournalOptions(
        directory=tmp_path / "j", journal_type=JournalType.NIO, file_size=65536
    )
    with_files = Journal(options)
    with_files.open()
    with_files.load()
    yield with_files
    with_files.close()


def test_a_callback_is_given_the_awaitable_itself(journal):
    async def main():
        waiting = journal.durable(journal.add(1, 0, b"x", sync=True, wait=False))
        told = asyncio.get_running_loop().create_future()
        waiting.add_done_callback(told.set_result)
        return waiting, await told

    waiting, given = asyncio.run(main())

    assert given is waiting


@pytest.mark.parametrize("task", [asyncio.Task, asyncio.tasks._PyTask], ids=["C", "Python"])
def test_tasks_of_both_kinds_are_woken(journal, task):
    async def work(first):
        return [await journal.add_durable(first + i, 0, b"x") for i in range(20)]

    async def main():
        asyncio.get_running_loop().set_task_factory(
            lambda loop, coro, **more: task(coro, loop=loop)
        )
        return await asyncio.gather(*(work(1 + 100 * i) for i in range(8)))

    assert asyncio.run(main()) == [[None] * 20] * 8
    assert journal.stats()["records"] == 160


def test_a_cancelled_task_ends_and_its_record_stays(journal):
    async def cancelled(record_id):
        """Whether it was cancelled before its record was durable."""
        waiting = asyncio.ensure_future(
            asyncio.wait_for(journal.add_durable(record_id, 0, b"x"), 30)
        )
        await asyncio.sleep(0)
        waiting.cancel()
        try:
            await waiting
        except asyncio.CancelledError:
            return True
        return False

    async def main():
        record_id = 1
        while not await cancelled(record_id) and record_id < 1_000:
            record_id += 1
        assert record_id < 1_000
        await journal.add_durable(record_id + 1, 0, b"y")
        return record_id + 1

    assert asyncio.run(main()) == journal.stats()["records"]


def test_what_is_durable_before_anybody_watches_is_told_all_the_same(journal):
    async def main(record_id):
        told = asyncio.get_running_loop().create_future()
        waiting = journal.durable(journal.add(record_id, 0, b"x", sync=True, wait=False))
        waiting.add_done_callback(told.set_result)
        await asyncio.wait_for(told, 60)

    # Each run has an event loop that has not watched yet. One in ten met the moment.
    for record_id in range(1, 201):
        asyncio.run(main(record_id))
