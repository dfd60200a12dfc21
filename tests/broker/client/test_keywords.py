"""What type checkers see of the client's keyword arguments: the same names and types as hold."""

import dataclasses
import inspect
from collections.abc import Mapping
from typing import get_type_hints

import pytest

from broker.client import (
    ClientOptions,
    ClientSettings,
    MessageHeaders,
    QueueSettings,
    SharedQueueSettings,
    make_message,
)
from broker.client.content import Content
from broker.model.properties import Property, PropertyValue
from broker.protocols.core.packet_queue import CreateQueue, CreateSharedQueue

# What create_queue has parameters for, and what the client fills in.
PARAMETERS = {
    *("address", "queue", "filter", "durable", "temporary", "requires_response", "routing_type"),
}


def fields(kind, without=frozenset()):
    """The types of a dataclass's fields, as they are written."""
    return {one.name: one.type for one in dataclasses.fields(kind) if one.name not in without}


def written(keywords):
    """The types of a TypedDict's keys, as they are written."""
    return {name: kind.__forward_arg__ for name, kind in keywords.__annotations__.items()}


def test_those_of_clients_and_sessions():
    assert written(ClientSettings) == fields(ClientOptions)
    assert get_type_hints(ClientSettings) == get_type_hints(ClientOptions)


@pytest.mark.parametrize(
    ("keywords", "packet"),
    [(QueueSettings, CreateQueue), (SharedQueueSettings, CreateSharedQueue)],
)
def test_those_of_queues(keywords, packet):
    assert written(keywords) == fields(packet, PARAMETERS)


def test_those_of_messages():
    taken = inspect.signature(make_message).parameters
    named = {one.name: one.annotation for one in taken.values() if one.kind is one.KEYWORD_ONLY}
    names = {
        "Content": Content,
        "Mapping": Mapping,
        "Property": Property,
        "PropertyValue": PropertyValue,
    }

    # Not among what a caller gives to a session: that has a clock of its own.
    assert named.pop("now_ms") == "int | None"
    assert written(MessageHeaders) == named
    assert get_type_hints(MessageHeaders, localns=names).keys() == named.keys()
