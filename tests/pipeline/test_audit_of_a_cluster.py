"""An audit finds nothing wrong with two brokers that have pages, and forward in order."""

import asyncio
import dataclasses
import json

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: quiver-mq[spark] brings it")

from broker.client import AckMode
from broker.settings.policies import AddressFullPolicy
from broker.settings.settings import AddressSettings
from broker.settings.settings_repository import SettingsRepository
from pipeline.cli.exit_status import run
from pipeline.cli.main import pipeline as commands
from tests.broker.bridges.two_brokers import session_of, take
from tests.broker.cluster.mesh import Mesh, demand, forwarding, queue, until

ADDRESSES = ("paged", "plain")
# For each address, of each kind of producer.
COUNT = 60


class KeptMesh(Mesh):
    """Brokers that keep a history."""

    def options(self, number):
        made = super().options(number)
        messages = dataclasses.replace(
            made.store.messages,
            retention_directory=self._folder / str(number) / "retention",
            retention_period_ms=10**9,
        )
        return dataclasses.replace(made, store=dataclasses.replace(made.store, messages=messages))


def paging():
    settings = SettingsRepository()
    settings.add("#", AddressSettings(redistribution_delay_ms=0))
    full = AddressFullPolicy.PAGE
    for match in ("paged", "$.artemis.internal.sf.#"):
        settings.add(match, AddressSettings(max_size_messages=5, address_full_policy=full))
    return settings


async def send_alone(node, address, *, has_ids):
    async with session_of(node) as session:
        producer = session.producer(address)
        ids = [f"{address}{number}" if has_ids else None for number in range(COUNT)]
        await asyncio.gather(*[await producer.post(address, duplicate_id=one) for one in ids])


async def send_in_transactions(node, address):
    async with session_of(node, AckMode.TRANSACTED) as session:
        producer = session.producer(address)
        for number in range(COUNT):
            await producer.send(address)
            if number % 3 == 2:
                await session.commit()


async def forward(folder):
    """All that is sent to one node is consumed at the other."""
    queues = tuple(map(queue, ADDRESSES))
    cluster = KeptMesh(2, folder=folder, queues=queues, address_settings=paging())
    async with cluster.serving() as nodes, asyncio.TaskGroup() as group:
        for address in ADDRESSES:
            group.create_task(take(nodes[1], address, 3 * COUNT))
        await until(lambda: all(demand(nodes[0], address) for address in ADDRESSES))
        for address in ADDRESSES:
            group.create_task(send_alone(nodes[0], address, has_ids=True))
            group.create_task(send_alone(nodes[0], address, has_ids=False))
            group.create_task(send_in_transactions(nodes[0], address))
        await until(lambda: "$.artemis" in "".join(nodes[0].parts.paging.stores))
        await until(lambda: forwarding(nodes[0]) == 0)


def test_what_came_in_order_is_not_reported(tmp_path, capsys, spark, monkeypatch):
    monkeypatch.setattr(type(spark), "stop", lambda self: None)
    asyncio.run(forward(tmp_path))
    nodes = [str(tmp_path / str(number)) for number in range(2)]
    histories = [word for one in nodes for word in ("--retention", f"{one}/retention")]

    status = run(commands, "pipeline", ["audit", *nodes, *histories, "--json"])

    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (status, found) == (0, [])
