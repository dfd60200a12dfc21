"""A configuration with more than a full disk has room for: what is there is served."""

import asyncio
import logging

import pytest

from broker.model.routing_type import RoutingType
from tests.broker.cluster.mesh import until
from tests.broker.full_journal import full_journals
from tests.broker.test_reload import Instance, addresses, divert, diverts, names

BEFORE = addresses(orders={"orders": ""})
AFTER = addresses(orders={"orders": ""}, more={"more": "", "others": ""}) + diverts(
    divert("copies", "orders", "copies"), divert("more-copies", "later", "copies")
)


@pytest.fixture
def instance(tmp_path):
    return Instance(tmp_path)


def found(broker):
    every = broker.parts.postoffice.addresses
    return names(broker), {name for name, one in every.by_name.items() if one.diverts}


ALL = ({"orders", "more", "others"}, {"orders", "later"})


def test_a_broker_starts_and_makes_what_is_missing_once_there_is_room(
    instance, monkeypatch, caplog
):
    async def serve():
        instance.write(BEFORE)
        async with instance.serving():
            pass
        instance.write(AFTER)
        journals = full_journals(monkeypatch, which="bindings", is_full=True)
        async with instance.serving() as broker:
            assert found(broker) == ({"orders"}, set())
            journals[0].is_full = False
            await until(lambda: found(broker) == ALL)
        journals = full_journals(monkeypatch, which="bindings", is_full=True)
        async with instance.serving() as broker:
            assert found(broker) == ALL

    caplog.set_level(logging.INFO, "broker")
    asyncio.run(serve())

    told = [one.getMessage() for one in caplog.records if "room" in one.getMessage()]
    # The address, its two queues, two diverts.
    assert [one.split(":")[0] for one in told] == [
        "no room for 5 addresses, queues or diverts of the configuration",
        "there is room again",
    ]


def test_what_is_configured_anew_waits_for_room_and_what_is_not_any_more_does_not(
    instance, monkeypatch
):
    async def serve():
        journals = full_journals(monkeypatch, which="bindings")
        instance.write(BEFORE)
        async with instance.serving() as broker:
            journals[0].is_full = True
            instance.write(addresses(orders={"orders": ""}, gone={"gone": ""}))
            broker.reload_configuration()
            instance.write(AFTER)
            broker.reload_configuration()
            assert found(broker) == ({"orders"}, set())
            journals[0].is_full = False
            await until(lambda: found(broker) == ALL)
            assert "gone" not in broker.parts.postoffice.addresses.by_name
            assert broker.parts.postoffice.addresses.by_name["more"].routing_types == {
                RoutingType.ANYCAST
            }

    asyncio.run(serve())
