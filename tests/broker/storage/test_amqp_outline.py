"""An outline says what the conversion would, and is there only where that raises nothing."""

import random
import uuid

import pytest
from proton import Message, byte, symbol, timestamp

from broker.model.routing_type import RoutingType
from broker.records.amqp_message import AmqpMessage
from broker.records.amqp_outline import outline_of
from broker.records.amqp_to_core import core_content

MESSAGES = [
    Message(body=b"x" * 300, inferred=True, durable=True, priority=7, ttl=3.5, id="ID:1"),
    Message(
        body="text", annotations={symbol("x-opt-jms-dest"): byte(1)}, address="a", reply_to="r"
    ),
    Message(body={"a": [1, "b", None]}, properties={"k": 1, "t": timestamp(5), "f": 1.5}),
    Message(body=[1, {"m": b"n"}], id=uuid.UUID(int=5), expiry_time=9.0, creation_time=4.0),
    Message(body=None, subject="s", content_type=symbol("text/plain"), correlation_id=7),
]


def whole(encoded):
    """The conversion of all of a message."""
    return core_content(encoded, ())


def damaged(encoded, seeded):
    data = bytearray(encoded)
    for _ in range(seeded.randrange(3)):
        data[seeded.randrange(len(data))] = seeded.randrange(256)
    return bytes(data[: len(data) - seeded.randrange(3) * seeded.randrange(2)])


@pytest.mark.parametrize("message", MESSAGES, ids=range(len(MESSAGES)))
def test_it_says_what_the_conversion_says(message):
    encoded = bytes(message.encode())
    assert outline_of(encoded) is not None
    seeded = random.Random(3)
    for _ in range(3000):
        data = damaged(encoded, seeded)
        found = outline_of(data)
        if found is None:
            continue
        content = whole(data)
        assert found.address == content.address
        assert (found.durable, found.priority) == (content.durable is True, content.priority)
        assert (found.ttl_ms, found.expiration) == (content.ttl_ms, content.expiration)
        assert found.has_delivery_annotations == content.has_delivery_annotations
        own = [one for one in content.properties if one.startswith("_AMQ_")]
        assert own == ([] if found.routing < 0 else ["_AMQ_ROUTING_TYPE"])
        made = AmqpMessage.received(data, "q", 5, RoutingType.ANYCAST)
        assert (made.routing_type, made.group_id) == (RoutingType.ANYCAST, None)
        assert bytes(made.body) == content.body
        assert (made.type, made.timestamp) == (content.type, content.timestamp)
        assert made.user_id == content.user_id
        assert made.is_as_sent


def test_what_is_the_brokers_has_none():
    for one in (
        Message(properties={"_AMQ_DUPL_ID": "x"}),
        Message(annotations={symbol("x-opt-delivery-delay"): 5}),
        Message(group_id="g"),
        Message(user_id=b"u"),
    ):
        assert outline_of(bytes(one.encode())) is None
