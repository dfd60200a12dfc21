"""Operators send again what the history has: once each, and nothing that was never sent."""

import asyncio
from datetime import datetime, timedelta

import pytest

from broker.errors import BrokerError
from broker.management.errors import ManagementError
from broker.management.registry import Resources
from broker.storage.open import FileStoreOptions, bindings_options, messages_options
from journal.folder import JournalName
from journal.retention import TIME_FORMAT, list_history
from tests.broker.bench import message
from tests.broker.test_recovery import Life, durable


def with_history(folder):
    return FileStoreOptions(
        bindings=bindings_options(folder / "bindings"),
        messages=messages_options(
            folder / "journal",
            journal_type="NIO",
            file_size=102400,
            retention_directory=folder / "history",
            retention_period_ms=10**9,
        ),
    )


async def replay(life, resource, *arguments):
    """Do it, a part in each turn, as the management's own messages would."""
    work = Resources(life.broker).find(resource).invoke("replay", arguments)
    for delay_s in work:
        await asyncio.sleep(delay_s or 0)
    await durable(life.broker.core.storage.after)


def run(tmp_path, story, **changes):
    async def lives():
        async with Life(tmp_path, **{"store": with_history(tmp_path), **changes}) as life:
            await life.queue("q")
            await life.queue("copies")
            await story(life)

    asyncio.run(lives())


async def consume_all(life, name="q"):
    sink = life.consume(name)
    await asyncio.sleep(0)
    for one in list(sink.ids):
        await durable(lambda done, one=one: sink.session.acknowledge(0, one, done))
    sink.session.close(has_failed=False)


def test_what_was_acknowledged_comes_back_to_its_address(tmp_path):
    async def story(life):
        await life.send(*(message(f"{n}", n=n) for n in range(50)))
        await life.send(message("other", address="copies"))
        await consume_all(life)
        assert life.bodies() == []

        await replay(life, "broker", "q", None, None)

        assert life.bodies() == [f"{n}" for n in range(50)]
        assert life.bodies("copies") == ["other"]
        assert list_history(tmp_path / "history", JournalName())

    run(tmp_path, story)


def test_a_filter_and_another_address(tmp_path):
    async def story(life):
        await life.send(*(message(f"{n}", n=n) for n in range(10)))

        await replay(life, "broker", "q", "copies", "n > 6")
        await replay(life, "address.q", "copies", "n = 1")

        assert life.bodies("copies") == ["7", "8", "9", "1"]
        assert len(life.bodies()) == 10

    run(tmp_path, story)


def test_what_was_rolled_back_was_never_sent(tmp_path):
    async def story(life):
        for end in ("rollback", "commit"):
            session = life.session(auto_commit_sends=False)
            await life.send(message(end), session=session)
            await durable(getattr(session, end))

        await replay(life, "broker", "q", "copies", None)

        assert life.bodies("copies") == ["commit"]

    run(tmp_path, story)


def test_a_duplicate_id_refuses_nothing(tmp_path):
    async def story(life):
        await life.send(message("1", _AMQ_DUPL_ID="one"))

        await replay(life, "broker", "q", "", None)

        assert life.bodies() == ["1", "1"]

    run(tmp_path, story)


def test_times_choose_files_by_their_copy(tmp_path):
    now = datetime.now()  # noqa: DTZ005 - local time is the format

    def at(hours):
        return (now + timedelta(hours=hours)).strftime(TIME_FORMAT)

    async def story(life):
        await life.send(message("1"))

        await replay(life, "broker", at(-2), at(-1), "q", "copies", None)
        assert life.bodies("copies") == []
        await replay(life, "broker", at(-1), at(1), "q", "copies", None)
        assert life.bodies("copies") == ["1"]
        await replay(life, "address.q", at(1), at(2), "copies", None)
        assert life.bodies("copies") == ["1"]

        for wrong in (("soon", at(1)), (at(1), at(-1)), (at(1)[:-1], at(1))):
            with pytest.raises(ManagementError):
                await replay(life, "broker", *wrong, "q", "copies", None)

    run(tmp_path, story)


def test_a_large_message_has_its_body_again(tmp_path):
    body = "large" * 100_000

    async def story(life):
        session = life.session()
        large = message("")
        large.is_large = True
        session.begin_large(large)
        session.append_large(body.encode())
        session.finish_large(lambda: None)
        await durable(session.end_large, -1)

        await replay(life, "broker", "q", "copies", None)

        (found,) = life.broker.core.postoffice.addresses.queues["copies"].references()
        assert found.message.large.read(0, 1 << 20).decode() == body

    run(tmp_path, story)


def test_there_has_to_be_a_history(tmp_path):
    async def lives():
        async with Life(tmp_path) as life:
            with pytest.raises(BrokerError, match="journal-retention-directory"):
                await replay(life, "broker", "q", None, None)

    asyncio.run(lives())
