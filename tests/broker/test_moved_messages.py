"""What the broker moves: all of it or nothing, whatever the target and the storage say."""

import asyncio

import pytest

from broker.settings.settings import AddressSettings
from broker.settings.settings_repository import SettingsRepository
from journal.errors import RecordTooLarge
from tests.broker.bench import Bench, done, message
from tests.broker.test_recovery import BrokerRun, durable


def at_once(moving):
    """What comes of it, where nothing has to be waited for."""
    with pytest.raises(StopIteration) as end:
        next(moving)
    return end.value.value


def test_a_target_that_is_gone_takes_nothing():
    bench = Bench()
    queue, target = bench.queue("q"), bench.queue("t")
    bench.session().send(message("1"), done)
    (reference,) = queue.references()
    bench.addresses.delete_queue("t")

    assert not at_once(bench.dead_letters.move_to_queue(reference, target))
    assert not at_once(bench.dead_letters.copy_to_queue(reference, target))

    assert bench.consume("q").bodies == ["1"]
    assert (queue.message_count, queue.delivering_count) == (1, 1)


class Narrow(BrokerRun):
    """A broker with messages that just fit its files."""

    def __init__(self, folder, **settings):
        found = SettingsRepository()
        found.add("#", AddressSettings(**settings))
        super().__init__(folder, settings=found)

    def queue_of(self, name):
        return self.broker.parts.postoffice.addresses.queues[name]

    async def send_largest(self, **properties):
        """Send the largest message that the storage takes; its body."""
        session = self.session()
        least, too_much = 1, 102_400
        while least + 1 < too_much:
            size = (least + too_much) // 2
            try:
                await durable(session.send, message("x" * size, address="t", **properties))
                least = size
            except RecordTooLarge:
                too_much = size
        self.queue_of("t").remove_all()
        await durable(session.send, message("x" * least, **properties))
        return b"x" * least


def content(reference):
    """The body of a message, large or not."""
    large = reference.message.large
    if large is None:
        return bytes(reference.message.body)
    try:
        return large.read(0, large.size)
    finally:
        large.close()


@pytest.mark.parametrize("how", ["expired", "killed", "moved"])
def test_a_message_that_just_fitted_is_kept_as_a_large_one(tmp_path, how):
    async def runs():
        async with Narrow(tmp_path, expiry_address="to", dead_letter_address="to") as run:
            for name in ("q", "t", "to"):
                await run.queue(name)
            body = await run.send_largest(colour="red")
            queue = run.queue_of("q")
            (reference,) = queue.references()
            if how == "expired":
                reference.message.expiration = 1
                queue.has_expiring = True
                run.scan_expired()
            elif how == "killed":
                run.broker.parts.dead_letters.kill(reference)
            else:
                assert at_once(
                    run.broker.parts.dead_letters.move_to_queue(reference, run.queue_of("to"))
                )
            await durable(run.broker.parts.storage.after)
            assert (queue.message_count, queue.delivering_count) == (0, 0)
            (moved,) = run.queue_of("to").references()
            assert content(moved) == body
        async with Narrow(tmp_path) as run:
            (found,) = run.queue_of("to").references()
            assert content(found) == body
            assert found.message.is_large
            assert found.message.get("colour") == "red"
            assert found.message.get("_AMQ_ORIG_QUEUE") == "q"
            assert found.message.get("_AMQ_LARGE_SIZE") == len(body)
            sink = run.consume("to")
            assert [one.get("_AMQ_ORIG_QUEUE") for one in sink.got] == ["q"]

    asyncio.run(runs())


@pytest.mark.parametrize("how", ["expired", "moved"])
def test_where_there_is_no_room_for_large_ones_either(tmp_path, how, caplog):
    async def runs():
        async with Narrow(tmp_path, expiry_address="to") as run:
            for name in ("q", "t", "to"):
                await run.queue(name)
            run.broker.parts.dead_letters._large = None
            body = await run.send_largest()
            queue = run.queue_of("q")
            (reference,) = queue.references()
            if how == "expired":
                reference.message.expiration = 1
                queue.has_expiring = True
                run.scan_expired()
                await durable(run.broker.parts.storage.after)
                assert "is dropped" in caplog.text
                assert queue.message_count == 0
            else:
                with pytest.raises(RecordTooLarge):
                    at_once(
                        run.broker.parts.dead_letters.move_to_queue(reference, run.queue_of("to"))
                    )
                assert [content(one) for one in queue.references()] == [body]
                assert queue.message_count == 1
            assert queue.delivering_count == 0
            assert run.queue_of("to").message_count == 0
            await run.send(message("2"))
            assert run.broker.failure is None

    asyncio.run(runs())
