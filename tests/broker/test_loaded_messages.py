"""Records of a message journal made into messages and references, in whatever order ids come."""

import random
import struct
from dataclasses import dataclass

import pytest

from broker.model.encoding import RecordFormatError
from broker.model.message import Message
from broker.model.wire import RecordType
from broker.recovery.loaded_messages import LoadedMessages


@dataclass
class Record:
    record_id: int
    user_type: int
    body: bytes
    is_update: bool = False


def message(number):
    return Record(number, RecordType.ADD_MESSAGE_PROTOCOL, Message("a", message_id=number).record())


def reference(number, queue_id):
    return Record(number, RecordType.ADD_REF, struct.pack(">q", queue_id), is_update=True)


def acknowledged(number, queue_id):
    return Record(number, RecordType.ACKNOWLEDGE_REF, struct.pack(">q", queue_id), is_update=True)


def left_in(image, queue_id):
    return [one.message.message_id for one in image.in_order(image.queues[queue_id])]


@pytest.mark.parametrize("seed", range(5))
def test_each_queue_has_what_it_did_not_acknowledge(seed):
    """The order of a log that was compacted: ids go up and down."""
    chance = random.Random(seed)
    numbers = list(range(1, 200))
    if seed:
        chance.shuffle(numbers)
    image = LoadedMessages()
    wanted = {7: [], 8: [], 9: []}
    image.take([message(number) for number in numbers])
    for number in numbers:
        for queue_id in chance.sample([7, 8, 9], chance.randrange(4)):
            image.take([reference(number, queue_id)])
            wanted[queue_id].append(number)
    for queue_id, ids in wanted.items():
        for number in chance.sample(ids, len(ids) // 2):
            image.take([acknowledged(number, queue_id)])
            ids.remove(number)

    assert {queue_id: left_in(image, queue_id) for queue_id in wanted} == wanted
    held = {number for ids in wanted.values() for number in ids}
    assert set(image.unreferenced()) == set(numbers) - held
    for number in numbers:
        found = image.referenced(number)
        assert (None if found is None else found.message_id) == (number if number in held else None)
        for queue_id, ids in wanted.items():
            assert (image.reference(number, queue_id) is not None) == (number in ids)
    assert image.unreadable == set()


def test_a_reference_comes_once_and_may_come_again():
    image = LoadedMessages()

    image.take([message(5), reference(5, 7), reference(5, 7), acknowledged(5, 7)])
    assert left_in(image, 7) == []
    image.take([reference(5, 7)])

    assert left_in(image, 7) == [5]


def test_what_is_of_no_message_is_told(caplog):
    image = LoadedMessages()

    image.take([message(5), reference(4, 7), acknowledged(5, 8)])

    assert image.unreadable == {4}
    assert "message 4 cannot be read here" in caplog.text
    assert "queue 8 acknowledged message 5" in caplog.text


@pytest.mark.parametrize("kind", [RecordType.ADD_REF, RecordType.ACKNOWLEDGE_REF])
def test_a_record_that_is_cut_off_is_named(kind):
    image = LoadedMessages()

    with pytest.raises(RecordFormatError, match="record 5 of type"):
        image.take([message(5), Record(5, kind, b"short", is_update=True)])


def test_any_delivery_count_is_taken():
    image = LoadedMessages()
    image.take([message(5), reference(5, 7)])

    for count, known in ((3, 3), (2**31 - 1, 0xFFFF), (-1, 0)):
        body = struct.pack(">qi", 7, count)
        image.take([Record(5, RecordType.UPDATE_DELIVERY_COUNT, body, is_update=True)])

        found = image.reference(5, 7)
        assert (found.delivery_count, found.persisted_count) == (count, known)
