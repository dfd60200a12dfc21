"""Transformers: found by entry point, built in, and what becomes of one that fails."""

from importlib.metadata import EntryPoint, EntryPoints

import pytest

from broker.errors import BrokerError
from broker.model.message import Message
from broker.model.routing_type import RoutingType
from broker.records.binding_records import Divert, Transformer
from broker.routing import transformers
from broker.routing.divert import DivertBinding
from broker.routing.transformers import make_transformer
from broker.selector.filters import parse_filter
from tests.broker.bench import Bench, done

ADD_HEADERS = "org.apache.activemq.artemis.core.server.transformer.AddHeadersTransformer"


class Reverse:
    """Turns bodies round."""

    def __init__(self, properties):
        self.properties = properties
        if "fails" in properties:
            raise KeyError("fails")

    def transform(self, message):
        if bytes(message.body) == b"bad":
            raise RuntimeError("not this one")
        if bytes(message.body) == b"none":
            return None
        message.body = bytes(message.body)[::-1]
        return message


@pytest.fixture
def installed(monkeypatch):
    found = EntryPoints(
        [EntryPoint("org.example.Reverse", f"{__name__}:Reverse", transformers.GROUP)]
    )
    monkeypatch.setattr(transformers, "entry_points", lambda **wanted: found.select(**wanted))


def divert(class_name, **properties):
    pairs = tuple(properties.items())
    record = Divert(
        "d", "q", "x", "d", False, None, RoutingType.STRIP, Transformer(class_name, pairs)
    )
    return DivertBinding(record, parse_filter=parse_filter)


def test_one_of_another_distribution_is_found_by_its_name(installed):
    made = make_transformer("org.example.Reverse", {"a": "b"})

    assert made.properties == {"a": "b"}


def test_an_unknown_one_is_refused_with_those_there_are(installed):
    with pytest.raises(ValueError, match="installed: org"):
        make_transformer("x", {})


def test_one_that_refuses_its_properties_is_refused(installed):
    with pytest.raises(ValueError, match="fails"):
        make_transformer("org.example.Reverse", {"fails": "1"})


def test_headers_are_added_instead_of_those_of_their_names():
    message = make_transformer(ADD_HEADERS, {"a": "1"}).transform(Message("q", b"x"))

    assert message.get("a") == "1"


def test_a_divert_transforms_its_copies_alone(installed):
    bench = Bench()
    for name in ("q", "x"):
        bench.queue(name)
    bench.addresses.bind(divert("org.example.Reverse"))

    bench.session().send(Message("q", b"abc"), done)

    there = {
        name: [bytes(one.message.body) for one in bench.addresses.queues[name].references()]
        for name in ("q", "x")
    }
    assert there == {"q": [b"abc"], "x": [b"cba"]}


@pytest.mark.parametrize(
    ("body", "told"),
    [(b"bad", "RuntimeError: not this"), (b"none", "gave NoneType, it has to give a Message")],
)
def test_a_message_that_a_divert_cannot_transform_is_refused(installed, body, told):
    bench = Bench()
    for name in ("q", "x"):
        bench.queue(name)
    bench.addresses.bind(divert("org.example.Reverse"))

    with pytest.raises(BrokerError, match=told):
        bench.session().send(Message("q", body), done)

    assert [bench.addresses.queues[name].message_count for name in ("q", "x")] == [0, 0]
