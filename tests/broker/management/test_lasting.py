"""What operators change lasts over a restart, and what they undo does not come back."""

import asyncio
import errno

import pytest

from broker.management.registry import Resources
from broker.storage import manager
from journal.errors import JournalIOError
from tests.broker.bench import message
from tests.broker.test_recovery import Life, durable


def call(life, resource, operation, *arguments):
    return Resources(life.broker).find(resource).invoke(operation, arguments)


async def settled(life):
    await durable(life.broker.storage.after)


def test_an_address_that_is_resumed_stays_so(tmp_path):
    async def lives():
        async with Life(tmp_path) as life:
            await life.queue("q")
            call(life, "queue.q", "pause", True)
            call(life, "address.q", "pause")
            call(life, "address.q", "resume")
            await settled(life)
            queue = life.broker.postoffice.addresses.queues["q"]
            assert (queue.is_paused, queue.status_record_id) == (False, 0)
        async with Life(tmp_path) as life:
            assert not life.broker.postoffice.addresses.queues["q"].is_paused

    asyncio.run(lives())


def test_a_paused_address_stays_so_when_it_is_changed(tmp_path):
    async def lives():
        async with Life(tmp_path) as life:
            await life.queue("q")
            call(life, "address.q", "pause", True)
            call(life, "broker", "updateAddress", "q", "ANYCAST,MULTICAST")
            await settled(life)
        async with Life(tmp_path) as life:
            assert life.broker.postoffice.addresses.queues["q"].is_paused
            call(life, "address.q", "resume")
            await settled(life)
        async with Life(tmp_path) as life:
            assert not life.broker.postoffice.addresses.queues["q"].is_paused

    asyncio.run(lives())


def test_a_divert_goes_with_its_address(tmp_path):
    async def lives():
        async with Life(tmp_path) as life:
            await life.queue("q")
            await life.queue("other")
            call(life, "broker", "createDivert", "d", None, "q", "other", True, None, None)
            call(life, "broker", "deleteAddress", "q", True)
            await life.queue("q")
            await settled(life)
        async with Life(tmp_path) as life:
            await life.send(message("1"))
            assert (life.bodies("q"), life.bodies("other")) == (["1"], [])

    asyncio.run(lives())


def test_a_setting_that_cannot_be_replaced_is_the_old_one_still(tmp_path, monkeypatch):
    def broken(record):
        raise JournalIOError(errno.EIO, "cannot write", "activemq-bindings-1.bindings")

    async def lives():
        async with Life(tmp_path) as life:
            call(life, "broker", "addAddressSettings", "a.#", '{"maxDeliveryAttempts":3}')
            with monkeypatch.context() as patch:
                patch.setattr(manager, "encode_record", broken)
                with pytest.raises(JournalIOError):
                    call(life, "broker", "addAddressSettings", "a.#", '{"maxDeliveryAttempts":4}')
            await settled(life)
        async with Life(tmp_path) as life:
            assert life.broker.settings.match("a.b").max_delivery_attempts == 3
            call(life, "broker", "addAddressSettings", "a.#", '{"maxDeliveryAttempts":5}')
            await settled(life)
        async with Life(tmp_path) as life:
            assert life.broker.settings.match("a.b").max_delivery_attempts == 5
            call(life, "broker", "removeAddressSettings", "a.#")
            await settled(life)
        async with Life(tmp_path) as life:
            assert life.broker.settings.match("a.b").max_delivery_attempts == -1

    asyncio.run(lives())
