"""Operators send again what the history has: once each, and nothing that was never sent."""

import asyncio
from datetime import datetime, timedelta

import pytest

from broker.errors import BrokerError
from broker.management.errors import ManagementError
from broker.management.registry import Resources
from broker.model.routing_type import RoutingType
from broker.model.wire import RecordType
from broker.model.xid import Xid
from broker.records.amqp_large_message import LargeAmqpMessage
from broker.recovery.loaded_messages import decode_message
from broker.settings.settings import AddressSettings
from broker.settings.settings_repository import SettingsRepository
from broker.storage.open import FileStoreOptions, bindings_options, messages_options
from journal.folder import JournalName
from journal.reader import read_file
from journal.retention import TIME_FORMAT, list_history
from tests.broker.bench import message
from tests.broker.test_recovery import BrokerRun, durable


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


async def replay(broker_run, resource, *arguments):
    """Do it, a part in each turn, as the management's own messages would."""
    work = Resources(broker_run.broker).find(resource).invoke("replay", arguments)
    for delay_s in work:
        await asyncio.sleep(delay_s or 0)
    await durable(broker_run.broker.parts.storage.after)


def run(tmp_path, story, **changes):
    async def runs():
        async with BrokerRun(
            tmp_path, **{"store": with_history(tmp_path), **changes}
        ) as broker_run:
            await broker_run.queue("q")
            await broker_run.queue("copies")
            await story(broker_run)

    asyncio.run(runs())


async def consume_all(broker_run, name="q"):
    sink = broker_run.consume(name)
    await asyncio.sleep(0)
    for one in list(sink.ids):
        await durable(lambda done, one=one: sink.session.acknowledge(0, one, done))
    sink.session.close(has_failed=False)


def test_what_was_acknowledged_comes_back_to_its_address(tmp_path):
    async def story(broker_run):
        await broker_run.send(*(message(f"{n}", n=n) for n in range(50)))
        await broker_run.send(message("other", address="copies"))
        await consume_all(broker_run)
        assert broker_run.bodies() == []

        await replay(broker_run, "broker", "q", None, None)

        assert broker_run.bodies() == [f"{n}" for n in range(50)]
        assert broker_run.bodies("copies") == ["other"]
        assert list_history(tmp_path / "history", JournalName())

    run(tmp_path, story)


def test_a_filter_and_another_address(tmp_path):
    async def story(broker_run):
        await broker_run.send(*(message(f"{n}", n=n) for n in range(10)))

        await replay(broker_run, "broker", "q", "copies", "n > 6")
        await replay(broker_run, "address.q", "copies", "n = 1")

        assert broker_run.bodies("copies") == ["7", "8", "9", "1"]
        assert len(broker_run.bodies()) == 10

    run(tmp_path, story)


def test_what_was_rolled_back_was_never_sent(tmp_path):
    async def story(broker_run):
        for end in ("rollback", "commit"):
            session = broker_run.session(auto_commit_sends=False)
            await broker_run.send(message(end), session=session)
            await durable(getattr(session, end))

        await replay(broker_run, "broker", "q", "copies", None)

        assert broker_run.bodies("copies") == ["commit"]

    run(tmp_path, story)


def test_a_duplicate_id_refuses_nothing(tmp_path):
    async def story(broker_run):
        await broker_run.send(message("1", _AMQ_DUPL_ID="one"))

        await replay(broker_run, "broker", "q", "", None)

        assert broker_run.bodies() == ["1", "1"]

    run(tmp_path, story)


def test_times_choose_files_by_their_copy(tmp_path):
    now = datetime.now()  # noqa: DTZ005 - local time is the format

    def at(hours):
        return (now + timedelta(hours=hours)).strftime(TIME_FORMAT)

    async def story(broker_run):
        await broker_run.send(message("1"))

        await replay(broker_run, "broker", at(-2), at(-1), "q", "copies", None)
        assert broker_run.bodies("copies") == []
        await replay(broker_run, "broker", at(-1), at(1), "q", "copies", None)
        assert broker_run.bodies("copies") == ["1"]
        await replay(broker_run, "address.q", at(1), at(2), "copies", None)
        assert broker_run.bodies("copies") == ["1"]

        for wrong in (("soon", at(1)), (at(1), at(-1)), (at(1)[:-1], at(1))):
            with pytest.raises(ManagementError):
                await replay(broker_run, "broker", *wrong, "q", "copies", None)

    run(tmp_path, story)


def test_a_large_message_has_its_body_again(tmp_path):
    body = "large" * 100_000

    async def story(broker_run):
        session = broker_run.session()
        large = message("")
        large.is_large = True
        session.uploads.begin(large)
        session.uploads.append(body.encode())
        session.uploads.finish(lambda: None)
        await durable(session.uploads.end, -1)

        await replay(broker_run, "broker", "q", "copies", None)

        (found,) = broker_run.broker.parts.postoffice.addresses.queues["copies"].references()
        assert found.message.large.read(0, 1 << 20).decode() == body

    run(tmp_path, story)


async def send_large(broker_run, body, session=None):
    session = session or broker_run.session()
    large = message("")
    large.is_large = True
    session.uploads.begin(large)
    for start in range(0, len(body), 100_000):
        session.uploads.append(body[start : start + 100_000])
    session.uploads.finish(lambda: None)
    await durable(session.uploads.end, len(body))


def test_a_large_message_that_is_gone_comes_back_whole(tmp_path):
    body = bytes(range(256)) * 1000

    async def story(broker_run):
        await send_large(broker_run, body)
        await consume_all(broker_run)
        assert not list((tmp_path / "largemessages").iterdir())

        # The second time from what the first one left in the history.
        await replay(broker_run, "broker", "q", "copies", None)
        await consume_all(broker_run, "copies")
        await replay(broker_run, "broker", "copies", "q", None)

        (found,) = broker_run.broker.parts.postoffice.addresses.queues["q"].references()
        assert found.message.large.read(0, len(body) + 1) == body

    run(tmp_path, story)


def test_a_large_message_of_amqp_comes_back_as_it_was_sent(tmp_path):
    body = b"0123456789" * 50_000
    # A durable header, and data.
    encoded = b"\0\x53\x70\xc0\x02\x01\x41" + b"\0\x53\x75\xb0" + len(body).to_bytes(4) + body

    async def story(broker_run):
        large = LargeAmqpMessage.received(encoded[:100], "q", 0, RoutingType.ANYCAST)
        session = broker_run.session()
        session.uploads.begin(large)
        session.uploads.append(encoded)
        assert session.uploads.finish(lambda: None)
        await durable(session.uploads.end, -1)
        await consume_all(broker_run)
        assert not list((tmp_path / "largemessages").iterdir())

        await replay(broker_run, "broker", "q", "q", None)

        (found,) = broker_run.broker.parts.postoffice.addresses.queues["q"].references()
        assert found.message.large.stored.read(0, len(encoded) + 1) == encoded
        assert found.message.large.read(0, len(body) + 1) == body

    run(tmp_path, story)


def test_a_body_of_which_a_part_is_gone_is_not_sent(tmp_path, caplog):
    body = b"x" * 300_000

    async def story(broker_run):
        await send_large(broker_run, body)
        await consume_all(broker_run)
        await replay(broker_run, "broker", "copies", None, None)
        # Of the files that it is in, the oldest is too old.
        min(list_history(tmp_path / "history", JournalName())).path.unlink()

        await replay(broker_run, "broker", "q", "copies", None)

        assert broker_run.bodies("copies") == []
        assert not list((tmp_path / "largemessages").iterdir())

    run(tmp_path, story)
    assert "the history lacks a part of the body of large message" in caplog.text


def paging_soon():
    settings = SettingsRepository()
    settings.add("#", AddressSettings(max_size_messages=2, page_size_bytes=4096))
    return settings


def test_what_went_into_pages_comes_back(tmp_path):
    async def story(broker_run):
        await broker_run.send(*(message(f"{n}", n=n) for n in range(20)))
        for end in ("rollback", "commit"):
            session = broker_run.session(auto_commit_sends=False)
            await broker_run.send(message(end, n=0), session=session)
            await durable(getattr(session, end))
        assert broker_run.broker.parts.paging.stores["q"].is_paging

        await replay(broker_run, "broker", "q", "copies", None)

        queue = broker_run.broker.parts.postoffice.addresses.queues["copies"]
        assert queue.message_count == 21
        history = broker_run.broker.parts.history
        told = [one for one in history.messages() if one is not None]
        texts = [decode_message(one.message_id, one.body) for one in told]
        sent = [one.get("n") for one in texts if one.address == "q"]
        assert sorted(sent) == [0, *range(20)]

    run(tmp_path, story, settings=paging_soon())


def test_a_crash_leaves_the_history_what_pages_have(tmp_path):
    """What a sender was told of is there, whenever the broker was killed."""

    async def runs():
        folder = tmp_path / "first"
        async with BrokerRun(
            folder, store=with_history(folder), settings=paging_soon()
        ) as broker_run:
            await broker_run.queue("q")
            await broker_run.queue("copies")
            await broker_run.send(*(message(f"{n}") for n in range(20)))
            copy = broker_run.crash_copy("crashed")
        async with BrokerRun(copy, store=with_history(copy), settings=paging_soon()) as broker_run:
            await replay(broker_run, "broker", "q", "copies", None)
            assert broker_run.broker.parts.postoffice.addresses.queues["copies"].message_count == 20

    asyncio.run(runs())


def test_a_large_message_that_was_prepared_in_a_page_comes_back_whole(tmp_path):
    body = bytes(range(256)) * 1000
    options = {"store": with_history(tmp_path), "settings": paging_soon()}

    async def runs():
        async with BrokerRun(tmp_path, **options) as broker_run:
            await broker_run.queue("q")
            await broker_run.queue("copies")
            await broker_run.send(*(message(f"{n}", n=n) for n in range(5)))
            session = broker_run.session(is_xa=True, auto_commit_sends=False)
            session.xa.start(DECIDED)
            await send_large(broker_run, body, session)
            session.xa.end(DECIDED, has_failed=False)
            await durable(session.xa.prepare, DECIDED)
        async with BrokerRun(tmp_path, **options) as broker_run:
            await durable(broker_run.session(is_xa=True).xa.commit, DECIDED, False)
            # Its file goes with its page.
            queue = broker_run.broker.parts.postoffice.addresses.queues["q"]
            async with asyncio.timeout(60):
                while queue.message_count or list((tmp_path / "largemessages").iterdir()):
                    await consume_all(broker_run)
            await replay(broker_run, "broker", "q", "copies", "n IS NULL")
            (found,) = broker_run.broker.parts.postoffice.addresses.queues["copies"].references()
            assert found.message.large.read(0, len(body) + 1) == body

    asyncio.run(runs())


DECIDED, REFUSED = Xid(1, b"b", b"decided"), Xid(1, b"b", b"refused")
FILLER = "x" * 1000


async def prepare(broker_run, xid, *messages):
    session = broker_run.session(is_xa=True, auto_commit_sends=False)
    session.xa.start(xid)
    await broker_run.send(*messages, session=session)
    session.xa.end(xid, has_failed=False)
    await durable(session.xa.prepare, xid)


def records_of(folder):
    """All that the history has, in the order of its files."""
    copies = sorted(list_history(folder / "history", JournalName()), key=lambda one: one.file_id)
    return [record for copy in copies for record in read_file(copy.path, is_newest=False)]


@pytest.mark.parametrize("how", ["stop", "crash"])
@pytest.mark.parametrize("counted_at_once", [32 << 20, -1])
def test_what_was_prepared_in_pages_is_sent_at_its_commit_after_a_restart(
    tmp_path, monkeypatch, how, counted_at_once
):
    """Whether its pages are counted by then, or not."""
    monkeypatch.setattr("broker.paging.loading._COUNTED_AT_ONCE", counted_at_once)
    texts = [f"prepared {number} {FILLER}" for number in range(20)]

    def run_in(folder):
        return BrokerRun(folder, store=with_history(folder), settings=paging_soon())

    async def runs():
        folder = tmp_path / "first"
        async with run_in(folder) as broker_run:
            for name in ("q", "copies"):
                await broker_run.queue(name)
            await broker_run.send(*(message(f"{n} {FILLER}") for n in range(5)))
            # Two in turn share pages; not all of them are durable.
            await prepare(broker_run, REFUSED, message(f"refused {FILLER}"))
            await prepare(broker_run, DECIDED, *map(message, texts), message("weak", durable=False))
            await prepare(broker_run, Xid(1, b"b", b"open"), message(f"open {FILLER}"))
            assert len(broker_run.broker.parts.paging.stores["q"].pages) > 3
            if how == "crash":
                folder = broker_run.crash_copy("crashed")
        async with run_in(folder) as broker_run:
            session = broker_run.session(is_xa=True)
            # All at once: the others wait for it, and come behind it.
            decided = durable(session.xa.commit, DECIDED, False)
            await asyncio.gather(decided, durable(session.xa.rollback, REFUSED))
            await broker_run.send(message("later"))
            await replay(broker_run, "broker", "q", "copies", None)
            queues = broker_run.broker.parts.postoffice.addresses.queues
            assert queues["copies"].message_count == 5 + 20 + 1
            assert queues["q"].message_count == 5 + 21 + 1
        async with run_in(folder) as broker_run:
            await replay(broker_run, "broker", "q", "copies", None)
            queues = broker_run.broker.parts.postoffice.addresses.queues
            assert queues["copies"].message_count == 2 * (5 + 20 + 1)
        return folder

    folder = asyncio.run(runs())
    records = records_of(folder)
    found = {}
    for place, record in enumerate(records):
        if record.kind == "event" and record.user_type == RecordType.ADD_MESSAGE_PROTOCOL:
            text = decode_message(record.record_id, record.body)
            if text.address == "q":
                found.setdefault(bytes(text.body).decode(), []).append((place, record.record_id))
    assert [text for text in found if text.startswith("prepared")] == texts
    assert not [text for text in found if text.startswith(("refused", "open", "weak"))]
    places = [found[text] for text in texts]
    # Each once, between what it was prepared and committed by, with its queue.
    assert {len(one) for one in places} == {1}
    (prepared_at,) = [
        place
        for place, record in enumerate(records)
        if record.kind == "prepare" and b"decided" in record.body
    ]
    (committed_at,) = [
        place
        for place, record in enumerate(records)
        if record.kind == "commit" and record.tx_id == records[prepared_at].tx_id
    ]
    assert all(prepared_at < place < committed_at for ((place, _),) in places)
    for ((place, message_id),) in places:
        following = records[place + 1]
        assert (following.kind, following.user_type) == ("event", RecordType.ADD_REF)
        assert following.record_id == message_id


def test_there_has_to_be_a_history(tmp_path):
    async def runs():
        async with BrokerRun(tmp_path) as broker_run:
            with pytest.raises(BrokerError, match="journal-retention-directory"):
                await replay(broker_run, "broker", "q", None, None)

    asyncio.run(runs())
