"""Devices that fail, and files that are not as they should be, while an address is paging."""

import asyncio
import errno
import os

import pytest

from broker.errors import BrokerError
from broker.records.page_records import encode_entry, entries
from broker.storage import page_folders
from broker.storage.page_folders import FileFolder, FileFolders
from journal.errors import JournalIOError
from tests.broker.bench import message
from tests.broker.paging.runs import BrokerRun, copy_of, runs


def fill_the_disk(monkeypatch):
    """From now on half of what is appended to a page still fits."""
    real = os.writev

    def writev(fd, data):
        joined = b"".join(data)
        real(fd, [joined[: len(joined) // 2]])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(page_folders.os, "writev", writev)


def test_a_full_disk_stops_the_broker_and_loses_and_doubles_nothing(tmp_path, monkeypatch):
    async def first():
        run = BrokerRun(tmp_path / "data")
        await run.broker.start()
        await run.queue()
        await run.send_numbers(range(50))
        with monkeypatch.context() as patched:
            fill_the_disk(patched)
            session = run.session()
            told = await asyncio.gather(
                *(run.send_numbers([number], session=session) for number in range(50, 60)),
                return_exceptions=True,
            )
        assert [type(one) for one in told] == [JournalIOError] * 10
        assert told[0].errno == errno.ENOSPC
        assert run.broker.failure is not None
        with pytest.raises(BrokerError):
            run.session()
        await run.broker.stop()

    async def second():
        async with BrokerRun(copy_of(tmp_path / "data", tmp_path / "copy")) as run:
            count = run.queue_of().message_count
            assert 50 <= count < 60
            await run.send_numbers([1000])
            assert await run.drain(count + 1) == [*range(count), 1000]
            await run.until(lambda: not run.pages())

    async def both():
        await first()
        await second()

    asyncio.run(both())


def test_a_commit_is_not_recorded_where_its_pages_could_not_be_written(tmp_path, monkeypatch):
    async def first():
        run = BrokerRun(tmp_path / "data")
        await run.broker.start()
        await run.queue()
        await run.send_numbers(range(20))
        sink = run.consume(session=run.session(auto_commit_sends=False, auto_commit_acks=False))
        await run.until(lambda: len(sink.got) >= 10)
        session = sink.session
        session.acknowledge(0, sink.ids[9], lambda error: None)
        with monkeypatch.context() as patched:
            fill_the_disk(patched)
            session.send(message("in the transaction"), lambda error: None)
            told = []
            session.commit(told.append)
            await run.until(lambda: told)
        assert isinstance(told[0], JournalIOError)
        await run.broker.stop()

    async def second():
        async with BrokerRun(copy_of(tmp_path / "data", tmp_path / "copy")) as run:
            assert run.queue_of().message_count == 20
            assert await run.drain(20) == list(range(20))

    async def both():
        await first()
        await second()

    asyncio.run(both())


@pytest.mark.parametrize("tail", [b"{", b"{\0\0\1\0half a record", b"\0" * 100])
def test_a_torn_end_of_a_page_is_never_appended_to(tmp_path, tail):
    async def before(run):
        await run.queue()
        await run.send_numbers(range(20))

    async def after(run):
        await run.send_numbers(range(20, 30))
        assert await run.drain(30) == list(range(30))
        await run.until(lambda: not run.pages())

    runs(tmp_path, before)
    page = next((tmp_path / "data").glob("paging/*/*.page"))
    with page.open("ab") as file:
        file.write(tail)
    runs(tmp_path, after)

    # What was not a record is kept for inspection.
    assert len(list((tmp_path / "data").glob("paging/*/*.invalidPage"))) == 1


def test_a_page_store_of_an_address_that_is_gone_is_removed(tmp_path):
    async def before(run):
        await run.queue()

    runs(tmp_path, before)
    folder = FileFolders(tmp_path / "data" / "paging").create("unknown", 0)
    folder.append(1, [encode_entry(message(), [7])])
    folder.close()
    assert len(list((tmp_path / "data" / "paging").iterdir())) == 1
    runs(tmp_path, before_nothing)

    assert list((tmp_path / "data" / "paging").iterdir()) == []


async def before_nothing(run):
    assert run.paging.stores == {}


def test_a_folder_without_an_address_is_passed_over(tmp_path):
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "000000001.page").write_bytes(b"")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "address.txt").write_bytes(b"")

    assert FileFolders(tmp_path).load(lambda folder, page: False) == {}


def test_a_page_longer_than_one_write_takes(tmp_path):
    folder = FileFolder(tmp_path, None)
    folder.append(1, [b"%04d" % number for number in range(3000)])
    folder.sync(1)

    assert folder.read(1, 0, 1 << 20) == b"".join(b"%04d" % number for number in range(3000))
    assert folder.sizes() == {1: 12000}
    folder.close()


def test_records_end_where_they_are_no_longer_whole():
    one = encode_entry(message("one"), [1, 2])
    two = encode_entry(message("two"), [3], tx_id=9)
    data = one + two

    whole = list(entries(data, 0, 0))
    assert [(item.number, item.tx_id, item.queue_ids) for item in whole] == [
        (0, -1, (1, 2)),
        (1, 9, (3,)),
    ]
    assert [bytes(item.message(data).body) for item in whole] == [b"one", b"two"]
    for size in range(len(one), len(data)):
        assert [item.number for item in entries(data[:size], 0, 0)] == [0]
    for at in range(len(one), len(data)):
        # Whatever byte is wrong: no error, and the first one is there.
        changed = data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :]
        assert next(iter(entries(changed, 0, 0))).number == 0
