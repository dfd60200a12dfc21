"""Protocols that other distributions bring: found by entry point, checked, asked in turn."""

import asyncio

import pytest

from broker.config.errors import ConfigError
from broker.config.load import load
from broker.errors import BrokerError
from broker.options import BrokerOptions
from broker.options.from_config import broker_options
from broker.protocols.registry import (
    GROUP,
    AcceptorParameter,
    Detection,
    installed_protocols,
    read_parameters,
)
from broker.server.server import Broker
from broker.settings.value_types import INT, at_least
from broker.transport.acceptor import AcceptedProtocol, AcceptorOptions
from tests.broker.acceptors import acceptor_of
from tests.broker.protocols.core.peer import Wire
from tests.broker.protocols.distribution import install

FACTORY = """
from broker.protocols.registry import AcceptorParameter, Detection
from broker.settings.value_types import INT, at_least

class Factory:
    name = "LINE"
    detection_size = preamble_size = 4
    parameters = {"lineMax": AcceptorParameter(at_least(INT, 1), 80)}
    def detect(self, first):
        return Detection.YES if first == b"LINE" else Detection.MORE
    def manager(self, sessions):
        return None

LINE = Factory()
"""


@pytest.fixture
def line(tmp_path, monkeypatch):
    """A distribution with the protocol LINE."""
    install(tmp_path / "site", monkeypatch, {"LINE": "line_protocol:LINE"}, line_protocol=FACTORY)


def test_those_of_this_distribution_are_installed():
    assert list(installed_protocols()) == ["AMQP", "CORE", "MQTT", "OPENWIRE", "STOMP"]


def test_another_distribution_brings_one(line):
    assert list(installed_protocols()) == ["AMQP", "CORE", "LINE", "MQTT", "OPENWIRE", "STOMP"]


@pytest.mark.parametrize(
    ("names", "module", "error"),
    [
        ({"LINE": "nowhere_at_all:LINE"}, "", r"nowhere_at_all:LINE cannot be loaded: ModuleNotF"),
        ({"LINE": "broken_one:LINE"}, "1 / 0", r"broken_one:LINE cannot be .* ZeroDivisionError"),
        ({"LINE": "broken_two:LINE"}, "LINE = 1", r"broken_two:LINE is not a protocol: .* name, d"),
        ({"OTHER": "broken_three:LINE"}, FACTORY, r"OTHER = broken_three:LINE calls itself LINE"),
        ({"CORE": "broker.protocols.core.factory:CORE "}, "", r"another entry point has that name"),
    ],
)
def test_one_that_is_broken_is_named(names, module, error, tmp_path, monkeypatch):
    (value,) = names.values()
    install(tmp_path, monkeypatch, names, **{value.partition(":")[0].partition(".")[0]: module})

    with pytest.raises(BrokerError, match=rf"entry point {GROUP}: .*{error}"):
        installed_protocols()
    with pytest.raises(BrokerError, match=error):
        asyncio.run(Broker(BrokerOptions(acceptors=())).start())


def test_without_any_the_distribution_is_not_installed(monkeypatch):
    monkeypatch.setattr("broker.entry_points.entry_points", lambda group: [])

    with pytest.raises(BrokerError, match="install the distribution again"):
        installed_protocols()


class Factory:
    """Of two bytes."""

    name = "TWO"
    parameters = {"lineMax": AcceptorParameter(at_least(INT, 1), 80)}  # noqa: RUF012


def test_parameters_have_values_or_defaults():
    assert read_parameters(Factory, {}) == {"lineMax": 80}
    assert read_parameters(Factory, {"lineMax": "7", "backlog": "x"}) == {"lineMax": 7}
    with pytest.raises(ValueError, match=r"^lineMax: "):
        read_parameters(Factory, {"lineMax": "0"})


# --- acceptors --------------------------------------------------------------------------------


def configured(tmp_path, query):
    """The acceptor of a configuration with these parameters in its URI."""
    file = tmp_path / "broker.xml"
    file.write_text(
        '<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core"><acceptors>'
        f'<acceptor name="a">tcp://127.0.0.1:1?{query}</acceptor></acceptors></core></configuration>'
    )
    (acceptor,) = broker_options(load(file)).acceptors
    return acceptor


def test_a_protocols_parameters_reach_its_acceptor(line, tmp_path):
    acceptor = configured(tmp_path, "protocols=CORE,LINE;lineMax=9;backlog=3")

    assert acceptor.protocols == ("CORE", "LINE")
    assert acceptor.parameters == {"lineMax": "9"}
    assert acceptor.backlog == 3


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("linMax=9", "no parameter linMax; did you mean lineMax"),
        ("lineMax=x", "acceptor 'a': lineMax: 'x' is not"),
        ("protocols=CORE;lineMax=9", "no parameter lineMax; it is one of protocol LINE"),
        (
            "protocols=HORNETQ",
            "protocol HORNETQ, which this version does not speak; it speaks AMQP, CORE, L",
        ),
        ("protocols=LINES", "LINES, which is unknown; did you mean LINE"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(line, tmp_path, query, error):
    with pytest.raises(ConfigError, match=rf"broker\.xml:1: .*{error}"):
        configured(tmp_path, query)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"parameters": {"linMax": "9"}}, "acceptor artemis: no parameter linMax; did you mean li"),
        ({"parameters": {"lineMax": "0"}}, "acceptor artemis: lineMax: "),
        ({"parameters": {"lineMax": "9"}, "protocols": ("CORE",)}, "no parameter lineMax"),
    ],
)
def test_options_that_no_configuration_has_checked(line, options, error):
    acceptor = AcceptorOptions(host="127.0.0.1", port=0, **options)

    with pytest.raises(BrokerError, match=error):
        asyncio.run(Broker(BrokerOptions(acceptors=(acceptor,))).start())


# --- detection --------------------------------------------------------------------------------


class Taken:
    """A handler that keeps what it is given."""

    def __init__(self):
        self.received = []

    def receive(self, data):
        self.received.append(data)

    def lost(self, error):
        pass


def word(text, taken, preamble_size=0):
    """A protocol that begins with this word."""

    def detect(first):
        if first == text:
            return Detection.YES
        return Detection.MORE if text.startswith(first) else Detection.NO

    return AcceptedProtocol(len(text), preamble_size, detect, lambda connection: taken)


async def speak(*chunks):
    """What the handlers of LINE (whose preamble is taken off) and LIN7 get, and what is open."""
    line, other = Taken(), Taken()
    protocols = {"LINE": word(b"LINE", line, 4), "LIN7": word(b"LIN7xxxxx", other)}
    connection = acceptor_of(AcceptorOptions(), protocols)._accept()
    connection.connection_made(Wire())
    for chunk in chunks:
        connection.data_received(chunk)
    return line.received, other.received, connection.is_open


@pytest.mark.parametrize(
    ("chunks", "result"),
    [
        ([b"LINEabc", b"d"], ([b"abc", b"d"], [], True)),
        ([b"L", b"I", b"N", b"E"], ([b""], [], True)),
        ([b"LIN", b"7xxxx", b"xy"], ([], [b"LIN7xxxxxy"], True)),
        ([b"LIN"], ([], [], True)),
        ([b"M"], ([], [], False)),
        ([b"LIN7xxxxy"], ([], [], False)),
    ],
)
def test_the_first_bytes_are_waited_for_as_long_as_a_protocol_needs_more(chunks, result):
    assert asyncio.run(speak(*chunks)) == result


def test_one_that_never_has_enough_is_not_waited_for():
    async def begin():
        undecided = AcceptedProtocol(3, 0, lambda first: Detection.MORE, lambda connection: Taken())
        connection = acceptor_of(AcceptorOptions(), {"U": undecided})._accept()
        connection.connection_made(Wire())
        connection.data_received(b"ab")
        was_open = connection.is_open
        connection.data_received(b"c")
        return was_open, connection.is_open

    assert asyncio.run(begin()) == (True, False)
