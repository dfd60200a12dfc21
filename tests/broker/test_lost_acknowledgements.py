"""An acknowledgement that a full disk refuses after all: its client knows, and gets it again."""

import asyncio

import pytest

from broker.protocols.core import packet_connection as connections
from broker.protocols.core import packet_message as messages
from broker.transport.acceptor import AcceptorOptions
from tests.broker.full_journal import full_journals
from tests.broker.test_recovery import BrokerRun
from tests.broker.wire_client import Refused, WireClient

ACKNOWLEDGE_REF = 33


def send(client, count):
    client.queue("q")
    for number in range(count):
        client.send("q", f"{number}", number)
        assert client.confirmed() == number


def take(client, count):
    """Messages: text, id, whether it was delivered before."""
    client.consume("q")
    return [client.receive() for _ in range(count)]


def first_client(port, journal, wants_answer):
    with WireClient(port, "first") as client:
        send(client, 2)
        (_, message_id, _), _ = take(client, 2)
        journal.refused.add(("update", ACKNOWLEDGE_REF))
        client.put(messages.Acknowledge(0, message_id, wants_answer))
        # An answer, or the end of the connection: never silence.
        with pytest.raises(Refused if wants_answer else ConnectionError):
            client.get(connections.NullResponse)


def second_client(port):
    with WireClient(port, "second") as client:
        return [text for text, _, _ in take(client, 2)]


@pytest.mark.parametrize("wants_answer", [True, False])
def test_an_acknowledgement_that_comes_back_is_not_believed(tmp_path, monkeypatch, wants_answer):
    made = full_journals(monkeypatch)

    async def run(work, *arguments):
        acceptor = AcceptorOptions(host="127.0.0.1", port=0)
        async with BrokerRun(tmp_path / "data", acceptors=(acceptor,)) as one:
            return await asyncio.to_thread(work, one.broker.acceptors[0].port, *arguments)

    async def both():
        await run(lambda port: first_client(port, made[-1], wants_answer))
        return await run(second_client)

    assert asyncio.run(both()) == ["0", "1"]
