"""What operators change lasts over a restart, and what they undo does not come back."""

import asyncio
import errno

import pytest

from broker.management.registry import Resources
from broker.storage import manager
from journal.errors import JournalIOError
from tests.broker.bench import message
from tests.broker.test_recovery import BrokerRun, durable


def call(run, resource, operation, *arguments):
    return Resources(run.broker).find(resource).invoke(operation, arguments)


async def settled(run):
    await durable(run.broker.parts.storage.after)


def test_an_address_that_is_resumed_stays_so(tmp_path):
    async def runs():
        async with BrokerRun(tmp_path) as run:
            await run.queue("q")
            call(run, "queue.q", "pause", True)
            call(run, "address.q", "pause")
            call(run, "address.q", "resume")
            await settled(run)
            queue = run.broker.parts.postoffice.addresses.queues["q"]
            assert (queue.is_paused, queue.status_record_id) == (False, 0)
        async with BrokerRun(tmp_path) as run:
            assert not run.broker.parts.postoffice.addresses.queues["q"].is_paused

    asyncio.run(runs())


def test_a_paused_address_stays_so_when_it_is_changed(tmp_path):
    async def runs():
        async with BrokerRun(tmp_path) as run:
            await run.queue("q")
            call(run, "address.q", "pause", True)
            call(run, "broker", "updateAddress", "q", "ANYCAST,MULTICAST")
            await settled(run)
        async with BrokerRun(tmp_path) as run:
            assert run.broker.parts.postoffice.addresses.queues["q"].is_paused
            call(run, "address.q", "resume")
            await settled(run)
        async with BrokerRun(tmp_path) as run:
            assert not run.broker.parts.postoffice.addresses.queues["q"].is_paused

    asyncio.run(runs())


def test_a_divert_goes_with_its_address(tmp_path):
    async def runs():
        async with BrokerRun(tmp_path) as run:
            await run.queue("q")
            await run.queue("other")
            call(run, "broker", "createDivert", "d", None, "q", "other", True, None, None)
            call(run, "broker", "deleteAddress", "q", True)
            await run.queue("q")
            await settled(run)
        async with BrokerRun(tmp_path) as run:
            await run.send(message("1"))
            assert (run.bodies("q"), run.bodies("other")) == (["1"], [])

    asyncio.run(runs())


def test_a_setting_that_cannot_be_replaced_is_the_old_one_still(tmp_path, monkeypatch):
    def broken(record):
        raise JournalIOError(errno.EIO, "cannot write", "activemq-bindings-1.bindings")

    async def runs():
        async with BrokerRun(tmp_path) as run:
            call(run, "broker", "addAddressSettings", "a.#", '{"maxDeliveryAttempts":3}')
            with monkeypatch.context() as patch:
                patch.setattr(manager, "encode_record", broken)
                with pytest.raises(JournalIOError):
                    call(run, "broker", "addAddressSettings", "a.#", '{"maxDeliveryAttempts":4}')
            await settled(run)
        async with BrokerRun(tmp_path) as run:
            assert run.broker.settings.match("a.b").max_delivery_attempts == 3
            call(run, "broker", "addAddressSettings", "a.#", '{"maxDeliveryAttempts":5}')
            await settled(run)
        async with BrokerRun(tmp_path) as run:
            assert run.broker.settings.match("a.b").max_delivery_attempts == 5
            call(run, "broker", "removeAddressSettings", "a.#")
            await settled(run)
        async with BrokerRun(tmp_path) as run:
            assert run.broker.settings.match("a.b").max_delivery_attempts == -1

    asyncio.run(runs())
