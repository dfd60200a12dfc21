"""An acknowledgement costs a sync of its own only where its client waits for the answer."""

import asyncio
from dataclasses import replace

import pytest

from broker.protocols.core import packet_session as sessions
from broker.protocols.core.packet_connection import NullResponse
from broker.protocols.core.packet_message import (
    Acknowledge,
    IndividualAcknowledge,
    ReceiveMessage,
    Send,
)
from broker.protocols.core.packets import decode_packet
from broker.server.server import Broker
from broker.transport.acceptor import AcceptorOptions
from tests.broker.bench import message
from tests.broker.protocols.core.peer import VERSION, Peer
from tests.broker.test_recovery import BrokerRun, options

HOUR_NS = 3600 * 10**9


class Patient(BrokerRun):
    """A broker whose journal keeps what no client waits for."""

    def __init__(self, folder):
        super().__init__(folder)
        plain = options(folder, acceptors=(AcceptorOptions(port=0),))
        messages = replace(plain.store.messages, buffer_timeout_ns=HOUR_NS)
        self.broker = Broker(replace(plain, store=replace(plain.store, messages=messages)))

    @property
    def counter(self):
        return self.broker.parts.storage.completions.messages

    async def consumer(self, count):
        """A client that has been given so many messages; their ids."""
        await self.queue()
        peer = Peer(self.broker.acceptors[0])
        peer.begin("s", -1)
        peer.send(sessions.CreateConsumer(0, "q"))
        peer.send(sessions.Start())
        peer.send(sessions.ConsumerCredits(0, -1))
        for number in range(count):
            peer.send(Send(message(str(number)), requires_response=False))
        found = []

        def received():
            found.extend(answers(peer, ReceiveMessage))
            return len(found) == count

        await until(received)
        await until(lambda: self.counter.is_durable)
        return peer, [one.message.message_id for one in found]


def answers(peer, kind):
    packets = [decode_packet(found, body, VERSION) for found, body in peer.take()]
    return [one for one in packets if isinstance(one, kind)]


async def until(is_so):
    async with asyncio.timeout(60):
        while not is_so():  # noqa: ASYNC110 -- what is durable comes from a thread.
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("kind", [Acknowledge, IndividualAcknowledge])
def test_who_waits_for_the_answer_gets_it(tmp_path, kind):
    async def run():
        async with Patient(tmp_path / "data") as broker_run:
            peer, (first,) = await broker_run.consumer(1)
            peer.send(kind(0, first, requires_response=True))
            await until(lambda: answers(peer, NullResponse))
            assert broker_run.counter.is_durable

    asyncio.run(run())


def test_without_an_answer_it_goes_with_what_comes_next(tmp_path):
    async def run():
        async with Patient(tmp_path / "data") as broker_run:
            peer, (first, second) = await broker_run.consumer(2)
            peer.send(Acknowledge(0, first, requires_response=False))
            await asyncio.sleep(0.1)
            assert not broker_run.counter.is_durable
            peer.send(Send(message("next"), requires_response=False))
            await until(lambda: broker_run.counter.is_durable)
            # Or when an answer stands behind it.
            peer.send(Acknowledge(0, second, requires_response=False))
            peer.send(sessions.CloseConsumer(0))
            await until(lambda: broker_run.counter.is_durable)

    asyncio.run(run())


def test_it_is_kept_when_the_broker_stops(tmp_path):
    async def run():
        async with Patient(tmp_path / "data") as broker_run:
            peer, (first, _) = await broker_run.consumer(2)
            peer.send(Acknowledge(0, first, requires_response=False))
        async with BrokerRun(tmp_path / "data") as broker_run:
            assert broker_run.bodies() == ["1"]

    asyncio.run(run())
