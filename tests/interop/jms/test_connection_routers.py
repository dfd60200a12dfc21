"""Artemis's JMS client goes where a connection router of ours sends it."""

import asyncio

import pytest

from tests.broker.routers.brokers import hashing
from tests.interop.asynchronous import asynchronous
from tests.interop.jms.client import JmsClient
from tests.interop.jms_outlives import made_by

pytestmark = [pytest.mark.interop, pytest.mark.slow]

# Without attempts to reconnect the client gives up where it is sent elsewhere.
OPTIONS = "?reconnectAttempts=10&retryInterval=50&clientID="


@asynchronous
async def test_both_brokers_send_clients_to_each_other_by_their_ids(tmp_path):
    async with hashing(tmp_path) as brokers:
        # One client id for each broker.
        ids = {}
        for number in range(100):
            name = f"client-{number}"
            ids.setdefault(brokers.owner_of(name), name)
        queues = [one.parts.postoffice.addresses.queues for one in brokers.brokers]
        with made_by(lambda port: JmsClient(port)) as new:
            clients = [await asyncio.to_thread(new, port) for port in brokers.ports]
            for wanted, client_id in ids.items():
                for first, client in enumerate(clients):
                    queue = f"q.{wanted}.{first}"
                    command = ("produce", queue, 2, OPTIONS + client_id)
                    assert await asyncio.to_thread(client.run, *command) == "0"
                    assert [queue in one for one in queues] == [wanted == 0, wanted == 1]
                    assert queues[wanted][queue].message_count == 2
