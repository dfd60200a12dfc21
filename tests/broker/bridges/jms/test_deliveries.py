"""Connections that are lost again and again make no message a dead letter."""

import asyncio
import contextlib

import pytest

from broker.bridges.jms import BridgeState, CoreConnectionFactory, QualityOfService
from broker.client import AckMode, AsyncClient
from broker.client.errors import ClientError
from broker.management import broker_queries
from broker.protocols.core.packet_session import BRIDGE
from tests.broker.bridges.jms.ends import WAIT_S, bridge, wait_for
from tests.broker.bridges.jms.faults import WAYS
from tests.proxy import Proxy

# More than max-delivery-attempts, whose default is 10.
RESETS = 12
COUNT = 50


@pytest.mark.parametrize("way", WAYS)
def test_resets_while_the_target_is_away(source, target, tmp_path, way):
    """What the source has sent ahead waits at the bridge."""
    quality, exactly_once = WAYS[way]
    sent = [str(number) for number in range(COUNT)]
    source.send("q", *sent)
    with Proxy(source.port) as near, Proxy(target.port) as far:
        moving = bridge(
            lambda: CoreConnectionFactory(f"tcp://127.0.0.1:{near.port}?callTimeout=2000"),
            lambda: target.tcp(far.port),
            quality_of_service=quality,
            exactly_once=exactly_once,
            transaction_log=tmp_path / "log",
            # None is full: whatever is received waits.
            max_batch_size=COUNT + 1,
            failure_retry_interval=1,
            failover_timeout=2000,
        )
        with moving:
            for number in range(RESETS):
                assert moving.wait_until(BridgeState.STARTED, timeout_s=WAIT_S)
                wait_for(lambda: delivering(source) == COUNT)
                near.reset()
                wait_for(lambda number=number: moving.snapshot()["failures"] > number)
    wait_for(lambda: delivering(source) == 0)
    assert source.contents("q", COUNT) == sent
    assert source.count("q") == 0


def test_resets_of_a_local_transaction(source):
    source.create("to")
    sent = [str(number) for number in range(COUNT)]
    source.send("q", *sent)
    with Proxy(source.port) as proxy:
        both = lambda: source.tcp(proxy.port)  # noqa: E731 - one factory for both.
        with bridge(
            both,
            both,
            to="to",
            quality_of_service=QualityOfService.ONCE_AND_ONLY_ONCE,
            max_batch_size=COUNT + 1,
            failure_retry_interval=1,
        ) as moving:
            for number in range(RESETS):
                assert moving.wait_until(BridgeState.STARTED, timeout_s=WAIT_S)
                wait_for(lambda: delivering(source) == COUNT)
                proxy.reset()
                wait_for(lambda number=number: moving.snapshot()["failures"] > number)
    wait_for(lambda: delivering(source) == 0)
    assert source.contents("q", COUNT) == sent


def delivering(end):
    """How many of its messages are at a consumer."""
    return end.embedded.broker.parts.postoffice.addresses.queues["q"].delivering_count


@pytest.mark.parametrize(("mark", "count"), [(None, 1), (BRIDGE, 0)])
def test_what_an_application_was_given_counts_as_before(source, mark, count):
    source.send("q", "one")

    async def main():
        with Proxy(source.port) as proxy:
            async with AsyncClient(f"tcp://127.0.0.1:{proxy.port}", reconnect_attempts=0) as client:
                session = await client.session(AckMode.CLIENT)
                if mark is not None:
                    await session.add_metadata(mark, "jms")
                consumer = await session.consumer("q")
                assert await consumer.receive(WAIT_S) is not None
                proxy.reset()
                with contextlib.suppress(ClientError):
                    await client.close()

    asyncio.run(main())
    wait_for(lambda: delivering(source) == 0)
    (reference,) = source.embedded.broker.parts.postoffice.addresses.queues["q"].references()
    assert reference.delivery_count == count


def test_a_source_that_counts_them_is_warned_of_once(source, target, monkeypatch, caplog):
    """As Artemis does, by the version that it tells."""
    monkeypatch.setattr(broker_queries, "__version__", "2.50.0")
    source.send("q", "one")
    with Proxy(source.port) as proxy:
        moving = bridge(lambda: source.tcp(proxy.port), target, failure_retry_interval=1)
        with moving:
            assert target.contents("q", 1) == ["one"]
            proxy.reset()
            wait_for(lambda: moving.snapshot()["connected"] == 2)
    said = [one.message for one in caplog.records if "max-delivery-attempts" in one.message]
    assert len(said) == 1
    assert "when that has come 10 times" in said[0]
