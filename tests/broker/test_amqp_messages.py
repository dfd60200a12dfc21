"""AMQP messages that Artemis has stored: loaded, listed, consumed, moved, expired, paged, kept."""

import asyncio
import struct
from pathlib import Path

import pytest

from broker.model.bodies import type_of
from broker.model.encoding import BodyReader
from broker.model.message_interface import MessageInterface
from broker.model.message_types import Persister
from broker.model.properties import PropertyType
from broker.model.wire import RecordType
from broker.model.xid import Xid
from broker.records.amqp_message import AmqpMessage
from broker.records.amqp_sections import next_section
from broker.records.amqp_values import read_value, value_size
from broker.records.records import decode_record, encode_prepared, encode_record
from broker.records.stored_messages import (
    AmqpLargeMessage,
    AmqpMessageV1,
    AmqpMessageV2,
    AmqpMessageV3,
    CoreMessage,
)
from broker.settings.settings import AddressSettings
from broker.settings.settings_repository import SettingsRepository
from broker.storage import spill_file
from broker.storage.open import messages_options
from journal.journal import Journal
from tests.broker.storage.test_amqp import ANNOTATIONS, APPLICATION, EXTRA, HEADER, MESSAGE, NULL
from tests.broker.test_recovery import BrokerRun, durable

FIRST_ID = 100_001
PAST_MS = 1_700_000_000_000
MESSAGES = [
    AmqpMessageV1(FIRST_ID, 0, "q", MESSAGE),
    AmqpMessageV2(FIRST_ID + 1, 0, "q", MESSAGE, None),
    AmqpMessageV2(FIRST_ID + 2, 0, None, MESSAGE, EXTRA),
    AmqpMessageV3(FIRST_ID + 3, 0, "q", MESSAGE, None, 0),
]
LARGE = AmqpLargeMessage(
    *(FIRST_ID + 9, True, 0, "q", EXTRA, 0, len(HEADER), HEADER, -1, 0, 13, ANNOTATIONS),
    *(40, NULL, 99, 120, APPLICATION, 0, True),
)


def settings(**changes):
    made = SettingsRepository()
    made.add("#", AddressSettings(**changes))
    return made


async def with_queues(folder, *names):
    """Make queues; the id of the first."""
    async with BrokerRun(folder) as run:
        for name in names:
            await run.queue(name)
        return run.broker.parts.postoffice.addresses.queues[names[0]].queue_id


def journal(folder):
    options = messages_options(Path(folder) / "journal", journal_type="NIO", file_size=102400)
    return Journal(options)


def put(folder, queue_id, *messages):
    """Store messages as Artemis does."""
    with journal(folder) as store:
        store.load()
        for one in messages:
            store.add(one.message_id, one.record_type, encode_record(one))
            store.update(one.message_id, RecordType.ADD_REF, struct.pack(">q", queue_id))


def stored(folder):
    """The bodies of stored messages by id."""
    found = {}

    def take(batch):
        found.update(
            (one.record_id, bytes(one.body))
            for one in batch
            if one.user_type == RecordType.ADD_MESSAGE_PROTOCOL
        )

    with journal(folder) as store:
        store.load(take)
    return found


def waiting(run, name="q"):
    queue = run.broker.parts.postoffice.addresses.queues[name]
    return [one.message for one in queue.references()]


@pytest.fixture
def folder(tmp_path):
    """A broker's folder with an AMQP message of each kind in the queue `q`."""
    queue_id = asyncio.run(with_queues(tmp_path / "data", "q", "other", "DLQ", "ExpiryQueue"))
    put(tmp_path / "data", queue_id, *MESSAGES)
    return tmp_path / "data"


def test_they_are_loaded_and_their_records_stay_as_they_are(folder):
    before = stored(folder)

    async def live():
        async with BrokerRun(folder) as run:
            return [
                (one.address, one.durable, one.priority, one.timestamp, one.get("colour"))
                for one in waiting(run)
            ]

    for _ in range(2):
        seen = asyncio.run(live())
        assert seen == [(address, True, 7, PAST_MS, "red") for address in ("q", "q", "orders", "q")]
    assert stored(folder) == before
    assert set(before) == {one.message_id for one in MESSAGES}


def test_a_core_consumer_gets_them_converted_and_they_are_gone(folder):
    async def consume():
        async with BrokerRun(folder) as run:
            session = run.session()
            sink = run.consume(session=session)
            assert [one.get("JMS_AMQP_ORIGINAL_ENCODING") for one in sink.got] == [5] * 4
            assert [one.get("NATIVE_MESSAGE_ID") for one in sink.got] == [
                "ID:AMQP_NO_PREFIX:id-1"
            ] * 4
            await durable(lambda done: session.acknowledge(0, sink.ids[-1], done))

    asyncio.run(consume())
    assert stored(folder) == {}


def test_all_protocols_see_the_same_of_it():
    members = {name for name in vars(MessageInterface) if not name.startswith("_")}
    members |= set(MessageInterface.__annotations__)
    message = AmqpMessage.from_record(encode_record(MESSAGES[3]))
    again = message.copy()
    for name, value in (
        ("_AMQ_GROUP_ID", "g"),
        ("_AMQ_DUPL_ID", b"d"),
        ("JMSReplyTo", "queue://a"),
        ("JMSCorrelationID", 7),
    ):
        again.set(name, type_of(value), value)
    again.set("_AMQ_GROUP_SEQUENCE", PropertyType.INT, -1)
    again.set("_AMQ_SCHED_DELIVERY", PropertyType.LONG, PAST_MS)

    assert all(hasattr(message, name) for name in members)
    assert (message.group_id, message.group_sequence, message.scheduled_ms) == (None, 0, 0)
    assert (again.group_id, again.group_sequence, again.scheduled_ms) == ("g", -1, PAST_MS)
    assert (again.duplicate_id, again.reply_to, again.correlation_id) == (b"d", "queue://a", None)


def test_selectors_see_their_properties(folder):
    async def consume():
        async with BrokerRun(folder) as run:
            session = run.session()
            return [
                len(list(session.administration.query_queue("q").queue.references())),
                *(
                    sum(parse(text).matches(one) for one in waiting(run))
                    for text in ("colour = 'red' AND n = -1", "colour = 'blue'", "AMQPriority = 7")
                ),
            ]

    from broker.selector.filters import parse_filter as parse

    assert asyncio.run(consume()) == [4, 4, 0, 4]


def moved(folder, target, how, **changes):
    """Do something with the messages, over a restart; what the target has, and its records."""

    async def before():
        async with BrokerRun(folder, settings=settings(**changes)) as run:
            await how(run)
            await asyncio.sleep(0.05)
            assert waiting(run) == []

    async def after():
        async with BrokerRun(folder, settings=settings(**changes)) as run:
            return [
                (type(one), one.address, one.get("_AMQ_ORIG_ADDRESS"), one.get("colour"))
                for one in waiting(run, target)
            ]

    asyncio.run(before())
    seen = asyncio.run(after())
    return seen, [decode_record(45, body, is_update=False) for body in stored(folder).values()]


async def reject(run):
    session = run.session()
    sink = run.consume(session=session)
    await durable(lambda done: session.settlement.reject(0, sink.ids, done))


async def move(run):
    dead_letters = run.broker.parts.dead_letters
    queues = run.broker.parts.postoffice.addresses.queues
    for reference in list(queues["q"].references()):
        for _ in dead_letters.move_to_queue(reference, queues["other"]):
            pass


def sections(encoded):
    """Bytes of each section before the body, and the rest."""
    reader = BodyReader(encoded)
    found = {}
    while (name := next_section(reader)) is not None:
        found[name] = reader.read_bytes(value_size(reader))
    return found | {"body": reader.read_rest()}


def told(encoded, name):
    """What a section says."""
    return read_value(BodyReader(sections(encoded)[name])).value[1].value


def assert_copy(encoded, address):
    """Of MESSAGE, and its annotations and address say where it is and was, as Artemis's do."""
    was, now = sections(MESSAGE), sections(encoded)
    same = ("header", "application_properties", "body")
    assert [now.get(name) for name in same] == [was.get(name) for name in same]
    annotations = {key.value: value.value for key, value in told(encoded, "message_annotations")}
    assert annotations["x-opt-ORIG-QUEUE"] == "q"
    assert annotations["x-opt-ORIG-ADDRESS"] in ("q", "orders")
    fields, before = told(encoded, "properties"), told(MESSAGE, "properties")
    assert fields[2].value == address
    assert (*fields[:2], *fields[3:8]) == (*before[:2], *before[3:8])


@pytest.mark.parametrize(
    ("how", "target", "changes"),
    [
        (reject, "DLQ", {"dead_letter_address": "DLQ"}),
        (move, "other", {}),
    ],
)
def test_moved_they_have_the_same_sections_and_say_where_they_were(folder, how, target, changes):
    seen, records = moved(folder, target, how, **changes)

    # The address that a message was sent to, of those in `q`.
    assert seen == [(AmqpMessage, target, one, "red") for one in ("q", "q", "orders", "q")]
    assert len(records) == 4
    for one in records:
        assert_copy(one.encoded, target)
    assert {one.persister for one in records} == {Persister.AMQP_V3}


def test_expired_they_have_the_same_sections(tmp_path):
    folder = tmp_path / "data"
    queue_id = asyncio.run(with_queues(folder, "q", "ExpiryQueue"))
    put(folder, queue_id, AmqpMessageV3(FIRST_ID, 0, "q", MESSAGE, None, PAST_MS))

    async def expire(run):
        run.consume()

    seen, (record,) = moved(folder, "ExpiryQueue", expire, expiry_address="ExpiryQueue")

    assert seen == [(AmqpMessage, "ExpiryQueue", "q", "red")]
    assert record.expiration == 0
    assert_copy(record.encoded, "ExpiryQueue")


def test_paged_they_have_the_same_sections(folder):
    changes = {"max_size_messages": 1}
    seen, _ = moved(folder, "other", move, **changes)

    async def consume():
        async with BrokerRun(folder, settings=settings(**changes)) as run:
            session = run.session()
            store = run.broker.parts.postoffice.addresses.queues["other"].pages
            sink = run.consume("other", session=session)
            for _ in range(200):
                if len(sink.got) == 4:
                    break
                await asyncio.sleep(0.05)
            return store is not None, [(type(one), one.encoded) for one in sink.got]

    is_paged, got = asyncio.run(consume())
    assert is_paged
    assert len(seen) < 4
    assert [kind for kind, _ in got] == [AmqpMessage] * 4
    for _, encoded in got:
        assert_copy(encoded, "other")


def test_a_change_that_amqp_has_no_place_for_makes_it_a_core_message():
    message = AmqpMessage.from_record(encode_record(MESSAGES[0]))
    copy = message.copy()
    copy.priority = 2

    assert isinstance(decode_record(45, message.record(), is_update=False), AmqpMessageV3)
    changed = decode_record(45, copy.record(), is_update=False)
    assert isinstance(changed, CoreMessage)
    assert changed.headers.priority == 2
    copy.priority = 7
    assert isinstance(decode_record(45, copy.record(), is_update=False), CoreMessage)
    other = message.copy()
    other.body = bytes(len(message.body))
    assert decode_record(45, other.record(), is_update=False).body == other.body


def test_properties_of_the_broker_stand_beside_the_sections():
    message = AmqpMessage.from_record(encode_record(MESSAGES[3]))
    message.set("_AMQ_ORIG_QUEUE", PropertyType.STRING, "first")
    message.set("gone", PropertyType.INT, 1)
    message.remove("gone")
    message.message_id = 7

    again = AmqpMessage.from_record(message.record())

    annotations = {
        key.value: value.value for key, value in told(again.encoded, "message_annotations")
    }
    assert (again.message_id, annotations["x-opt-ORIG-QUEUE"]) == (7, "first")
    assert sections(again.encoded)["body"] == sections(MESSAGE)["body"]
    assert (again.get("_AMQ_ORIG_QUEUE"), again.get("gone")) == ("first", None)
    assert again.record() == message.record()


def test_spilled_they_are_as_they_were(folder, monkeypatch):
    monkeypatch.setattr(spill_file, "KEPT_SIZE", 0)

    async def live():
        async with BrokerRun(folder) as run:
            return [one.record() for one in waiting(run)]

    records = asyncio.run(live())
    assert [decode_record(45, one, is_update=False).encoded for one in records] == [MESSAGE] * 4


# --- large ones ---------------------------------------------------------------------------------

BODY = b"\x00\x53\x75\xb0" + struct.pack(">I", 200_000) + bytes(range(250)) * 800


def put_body(folder):
    """The file of LARGE, with what it says of it."""
    body_file(folder).parent.mkdir(exist_ok=True)
    body_file(folder).write_bytes(HEADER.ljust(LARGE.remaining_body_position, b"\x00") + BODY)


def body_file(folder):
    return folder / "largemessages" / f"{LARGE.message_id}.msg"


def test_a_large_one_without_its_body_stays_where_it_is_and_is_told(folder, caplog):
    async def live():
        async with BrokerRun(folder) as run:
            queue = run.broker.parts.postoffice.addresses.queues["q"]
            put_id = queue.queue_id
            assert len(waiting(run)) == 4
        return put_id

    put(folder, asyncio.run(live()), LARGE)
    before = stored(folder)
    caplog.clear()

    asyncio.run(live())

    assert "AMQ222051: large message 100010 has no body" in caplog.text
    assert stored(folder) == before


def test_a_large_one_is_loaded_and_its_record_stays_as_it_is(folder):
    async def live():
        async with BrokerRun(folder) as run:
            found = run.broker.parts.postoffice.addresses.queues["q"]
            large = [one for one in waiting(run) if one.is_large]
            return found.queue_id, [(one.body_at, one.large.size) for one in large]

    queue_id, _ = asyncio.run(live())
    put_body(folder)
    put(folder, queue_id, LARGE)
    before = stored(folder)

    for _ in range(2):
        assert asyncio.run(live())[1] == [(LARGE.remaining_body_position, 200_000)]
    assert stored(folder) == before


@pytest.mark.parametrize("decision", ["commit", "rollback"])
def test_a_prepared_transaction_with_one_is_decided_by_its_manager(tmp_path, decision):
    folder = tmp_path / "data"
    queue_id = asyncio.run(with_queues(folder, "q"))
    xid = Xid(1, b"branch", b"global")
    sent = (LARGE, AmqpMessageV3(FIRST_ID, 0, "q", MESSAGE, None, 0))
    put_body(folder)
    with journal(folder) as store:
        store.load()
        for one in sent:
            store.add(one.message_id, one.record_type, encode_record(one), tx=77)
            store.update(one.message_id, RecordType.ADD_REF, struct.pack(">q", queue_id), tx=77)
        store.prepare(77, encode_prepared(xid))

    async def decide():
        async with BrokerRun(folder) as run:
            session = run.session(is_xa=True)
            assert session.xa.in_doubt() == (xid,)
            assert waiting(run) == []
            request = session.xa.commit if decision == "commit" else session.xa.rollback
            options = (False,) if decision == "commit" else ()
            await durable(lambda done: request(xid, *options, done))
            return [one.message_id for one in waiting(run)]

    is_commit = decision == "commit"
    ids = [one.message_id for one in sent]
    assert asyncio.run(decide()) == (ids if is_commit else [])
    assert set(stored(folder)) == (set(ids) if is_commit else set())
    assert body_file(folder).exists() == is_commit
