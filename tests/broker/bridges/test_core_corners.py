"""Core bridges: transformers that fail, odd addresses, and operators who are quick."""

import asyncio

import pytest

from broker.bridges.core import bridge as core_bridge
from broker.bridges.core.forwarding import Forwarding
from broker.bridges.core.status import BridgeState
from broker.routing import transformers
from broker.settings.settings import AddressSettings
from broker.settings.settings_repository import SettingsRepository
from tests.broker.bridges.two_brokers import (
    bridge,
    count_of,
    make_queue,
    options,
    port_of,
    running,
    send,
    take,
    until,
)
from tests.proxy import Proxy


class Forgets:
    """A transformer without a `return`, for one message."""

    def __init__(self, properties):
        pass

    def transform(self, message):
        if message.get("bad") is None:
            return message
        return None


def test_a_transformer_that_gives_no_message_is_told_of_and_drops_none(monkeypatch):
    monkeypatch.setitem(transformers._BUILT_IN, "org.example.Forgets", Forgets)
    settings = settings_of(_={"dead_letter_address": "dead", "max_delivery_attempts": 2})

    async def main():
        async with running(options("t", queue="to")) as target:
            configured = bridge(transformer_class_name="org.example.Forgets")
            made = options(
                "s",
                queue="from",
                bridges=(configured,),
                target_port=port_of(target),
                settings=settings,
            )
            async with running(made) as source:
                one = source.bridges.by_name["b"]
                await send(source, "from", "good")
                assert await take(target, "to", 1) == ["good"]
                await send(source, "from", "bad", properties={"bad": True})
                told = "transformer: TypeError: transform() gave NoneType, it has to give a Message"
                await until(lambda: told in one.status.reason)
                await asyncio.sleep(0.3)
                assert count_of(source, "from") == 1
                await until(lambda: told in one.status.reason)

    asyncio.run(main())


def settings_of(**by_match):
    """Address settings: a match each, `_` for `#`."""
    made = SettingsRepository()
    for match, values in by_match.items():
        made.add("#" if match == "_" else match, AddressSettings(**values))
    return made


class Elsewhere:
    """A transformer that sets the address."""

    def __init__(self, properties):
        pass

    def transform(self, message):
        message.address = "small"
        return message


@pytest.mark.parametrize("way", ["wildcard", "transformer"])
def test_each_address_of_the_target_has_its_own_number(way, monkeypatch):
    """A queue of many addresses, or a transformer that sends elsewhere."""
    monkeypatch.setitem(transformers._BUILT_IN, "org.example.Elsewhere", Elsewhere)
    seen = []
    put = Forwarding._put

    def counted(self, sending, sent):
        put(self, sending, sent)
        seen.append(sum(one.address == "small" for one in self._sent))

    monkeypatch.setattr(Forwarding, "_put", counted)

    async def main():
        settings = settings_of(small={"id_cache_size": 3})
        async with running(options("t", queue="small", settings=settings)) as target:
            changes = {"queue": "#", "forwarding_address": None}
            if way == "transformer":
                changes = {"transformer_class_name": "org.example.Elsewhere"}
                await make_queue(target, "to")
            configured = bridge(**changes)
            made = options("s", bridges=(configured,), target_port=port_of(target))
            async with running(made) as source:
                await make_queue(source, configured.queue_name)
                address = "small" if way == "wildcard" else "from"
                sent = [str(number) for number in range(50)]
                await send(source, address, *sent)
                assert await take(target, "small", 50) == sent

    asyncio.run(main())
    assert max(seen) == 3


def test_a_target_that_forgets_its_ids_at_a_restart_is_warned_of(caplog):
    async def main():
        made = options("t", queue="to", persist_id_cache=False)
        async with running(made) as target:
            made = options("s", queue="from", bridges=(bridge(),), target_port=port_of(target))
            async with running(made) as source:
                await send(source, "from", "one")
                assert await take(target, "to", 1) == ["one"]

    asyncio.run(main())
    said = [one.message for one in caplog.records if "persist-id-cache is false" in one.message]
    assert len(said) == 1
    assert "messages may double if it restarts" in said[0]


@pytest.mark.parametrize("first", ["pause", "stop"])
def test_a_bridge_that_is_left_twice_ends_as_it_was_wished_last(first):
    """And soon: the second wish does not take the end from the first one."""

    async def main():
        async with running(options("t", queue="to")) as target:
            with Proxy(port_of(target)) as proxy:
                made = options("s", queue="from", bridges=(bridge(),), target_port=proxy.port)
                async with running(made) as source:
                    one = source.bridges.by_name["b"]
                    await send(source, "from", "zero")
                    assert await take(target, "to", 1) == ["zero"]
                    await until(lambda: count_of(source, "from") == 0)
                    proxy.stall()
                    await send(source, "from", "one")
                    await until(lambda: one.status.pending_count == 1)
                    calls = [one.pause, one.stop]
                    if first == "stop":
                        calls.reverse()
                    leaving = [asyncio.ensure_future(call()) for call in calls]
                    await asyncio.sleep(0.1)
                    proxy.resume()
                    async with asyncio.timeout(20):
                        await asyncio.gather(*leaving)
                    wished = BridgeState.STOPPED if first == "pause" else BridgeState.PAUSED
                    assert one.state is wished
                    assert count_of(source, "from") == 0
                    one.start()
                    await send(source, "from", "two")
                    assert await take(target, "to", 2) == ["one", "two"]

    asyncio.run(main())


def test_a_fault_of_the_bridge_does_not_end_it(monkeypatch):
    left = [2]
    tell = core_bridge.tell_connected

    def fails(*args):
        if left[0]:
            left[0] -= 1
            raise ZeroDivisionError("planted")
        tell(*args)

    monkeypatch.setattr(core_bridge, "tell_connected", fails)

    async def main():
        async with running(options("t", queue="to")) as target:
            made = options("s", queue="from", bridges=(bridge(),), target_port=port_of(target))
            async with running(made) as source:
                await send(source, "from", "one")
                assert await take(target, "to", 1) == ["one"]
                assert source.bridges.by_name["b"].state is BridgeState.STARTED

    asyncio.run(main())
    assert left == [0]
