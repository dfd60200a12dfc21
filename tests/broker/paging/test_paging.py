"""Addresses whose messages go to pages: order, counts, restarts, transactions."""

import asyncio

import pytest

from broker.model.routing_type import RoutingType
from broker.model.xid import Xid
from broker.settings.settings import AddressSettings
from tests.broker.bench import message
from tests.broker.paging.lives import SMALL, durable, lives

XID = Xid(1, b"b", b"g")
# All that the tests send fits the window.
WIDE = {"max_read_page_bytes": 1024 * 1024}
NARROW = AddressSettings(**{**SMALL, "max_read_page_messages": 1})

HOWS = pytest.mark.parametrize("how", ["stop", "crash"])


def test_what_does_not_fit_memory_waits_in_pages_and_comes_in_order(tmp_path):
    async def part(life):
        await life.queue()
        await life.send_numbers(range(500))
        queue = life.queue_of()
        assert queue.message_count == 500
        assert queue.waiting.count == 10
        assert len(life.pages()) > 10

        assert await life.drain(500) == list(range(500))

        assert queue.message_count == 0
        await life.until(lambda: not life.pages())
        assert queue.pages is None
        assert not life.paging.stores["q"].is_paging
        await life.until(lambda: len(life.broker._stores.messages) == 0)

    lives(tmp_path, part)


@HOWS
def test_pages_survive_a_restart(tmp_path, how):
    async def before(life):
        await life.queue()
        await life.send_numbers(range(300))

    async def between(life):
        await life.until(lambda: life.queue_of().message_count == 300)
        await life.send_numbers(range(300, 400))

    async def after(life):
        await life.until(lambda: life.queue_of().message_count == 400)
        assert await life.drain(400) == list(range(400))
        await life.until(lambda: not life.pages())

    lives(tmp_path, before, between, after, how=how)


@HOWS
def test_what_was_acknowledged_does_not_come_again(tmp_path, how):
    async def before(life):
        await life.queue()
        await life.send_numbers(range(300))
        sink = life.consume()
        await life.until(lambda: len(sink.got) == 300)
        await life.acknowledge(sink, sink.ids[149])
        # And here and there one far behind.
        for number in range(200, 260, 2):
            await life.acknowledge(sink, sink.ids[number], is_individual=True)

    async def after(life):
        expected = [
            number for number in range(150, 300) if not (200 <= number < 260 and number % 2 == 0)
        ]
        await life.until(lambda: life.queue_of().message_count == len(expected))
        assert await life.drain(len(expected)) == expected
        await life.until(lambda: not life.pages())
        await life.until(lambda: len(life.broker._stores.messages) == 0)

    async def at_last(life):
        assert life.queue_of().message_count == 0
        assert len(life.broker._stores.messages) == 0

    lives(tmp_path, before, after, at_last, how=how, settings=WIDE)


@HOWS
def test_each_queue_of_an_address_goes_through_its_pages_alone(tmp_path, how):
    names = ("fast", "slow", "odd")

    async def before(life):
        for name in names:
            await life.queue(
                name,
                address="topic",
                routing_type=RoutingType.MULTICAST,
                filter="AMQPriority > 4" if name == "odd" else None,
            )
        for number in range(200):
            await durable(
                life.session().send, message(str(number), "topic", priority=4 + number % 2)
            )
        assert sorted(await life.drain(200, "fast")) == list(range(200))
        assert life.queue_of("slow").message_count == 200
        assert life.queue_of("odd").message_count == 100

    async def after(life):
        assert life.queue_of("fast").message_count == 0
        await life.until(lambda: life.queue_of("odd").message_count == 100)
        assert await life.drain(100, "odd") == list(range(1, 200, 2))
        assert life.pages("topic")
        assert sorted(await life.drain(200, "slow")) == list(range(200))
        await life.until(lambda: not life.pages("topic"))
        await life.until(lambda: len(life.broker._stores.messages) == 0)

    lives(tmp_path, before, after, how=how)


@HOWS
@pytest.mark.parametrize("is_committed", [True, False])
def test_a_transaction_in_pages_counts_with_its_commit(tmp_path, how, is_committed):
    async def before(life):
        await life.queue()
        await life.send_numbers(range(20))
        session = life.session(auto_commit_sends=False)
        for number in range(100, 200):
            session.send(message(str(number)), lambda error: None)
        await life.send_numbers(range(20, 40))
        sink = life.consume()
        await life.until(lambda: len(sink.got) == 40)
        assert life.queue_of().message_count == 40
        if is_committed:
            await durable(session.commit)
            await life.until(lambda: len(sink.got) == 140)
        else:
            await durable(session.rollback)
            await life.send_numbers([40])
            await life.until(lambda: len(sink.got) == 41)
        life.expected = [int(body) for body in sink.bodies]
        expected.extend(life.expected)

    async def after(life):
        await life.until(lambda: life.queue_of().message_count == len(expected))
        assert sorted(await life.drain(len(expected))) == sorted(expected)
        await life.until(lambda: not life.pages())
        await life.until(lambda: len(life.broker._stores.messages) == 0)

    expected = []
    lives(tmp_path, before, after, how=how, settings=WIDE)
    assert set(expected) >= set(range(100, 200)) if is_committed else not set(expected) & {100}


def test_a_transaction_in_pages_comes_in_its_order(tmp_path):
    """Also where the queue has read a part of it before its commit, and not the rest."""
    order = []

    async def life(life):
        await life.queue()
        await life.send_numbers(range(20))
        session = life.session(auto_commit_sends=False)
        for numbers in (range(100, 105), range(105, 110)):
            for number in numbers:
                session.send(message(str(number)), lambda error: None)
            if 100 in numbers:
                await life.send_numbers(range(20, 40))
        await life.until(lambda: life.paging.writer.is_idle)
        sink = life.consume()
        # Its window is full in the midst of the second twenty.
        await life.until(lambda: len(sink.got) == 30)
        await durable(session.commit)
        await life.acknowledge(sink, sink.ids[-1])
        await life.until(lambda: len(sink.got) == 50)
        order.extend(int(body) for body in sink.bodies)

    settings = {**WIDE, "max_read_page_messages": 20, "page_size_bytes": 1024 * 1024}
    lives(tmp_path, life, settings=settings)
    assert [number for number in order if number >= 100] == list(range(100, 110))
    assert [number for number in order if number < 100] == list(range(40))


def test_messages_with_and_without_duplicate_ids_keep_their_order(tmp_path):
    """The former count with a commit of their own, the latter as soon as they are written."""
    order = []

    async def life(life):
        await life.queue()
        sink = life.consume()
        await life.send_numbers(range(20))
        await life.until(lambda: len(sink.got) == 20)
        journal = life.broker._stores.messages
        journal.detach_loop()
        session = life.session()
        for number in range(20, 50):
            properties = {"_AMQ_DUPL_ID": str(number)} if number % 3 == 0 else {}
            session.send(message(str(number), **properties), lambda error: None)
        await asyncio.sleep(0.1)
        journal.attach_loop(asyncio.get_running_loop())
        await life.until(lambda: len(sink.got) == 50)
        order.extend(int(body) for body in sink.bodies)

    lives(tmp_path, life, settings=WIDE)
    assert order == list(range(50))


@pytest.mark.parametrize("decision", ["commit", "rollback"])
def test_a_prepared_transaction_sends_into_pages_and_acknowledges_from_them(tmp_path, decision):
    async def before(life):
        await life.queue()
        await life.send_numbers(range(40))
        session = life.session(is_xa=True, auto_commit_sends=False, auto_commit_acks=False)
        session.xa.start(XID)
        sink = life.consume(session=session)
        await life.until(lambda: len(sink.got) == 40)
        await life.acknowledge(sink, sink.ids[29])
        await life.send_numbers(range(100, 120), session=session)
        session.xa.end(XID, has_failed=False)
        await durable(session.xa.prepare, XID)

    async def between(life):
        await life.until(lambda: life.queue_of().message_count == 40)
        sink = life.consume()
        await life.until(lambda: len(sink.got) == 10)
        assert sink.bodies == [str(number) for number in range(30, 40)]

    async def decide(life):
        session = life.session(is_xa=True, auto_commit_sends=False, auto_commit_acks=False)
        if decision == "commit":
            await durable(session.xa.commit, XID, False)
        else:
            await durable(session.xa.rollback, XID)

    async def after(life):
        expected = {
            "commit": [*range(30, 40), *range(100, 120)],
            "rollback": list(range(40)),
        }[decision]
        await life.until(lambda: life.queue_of().message_count == len(expected))
        assert await life.drain(len(expected)) == expected
        await life.until(lambda: not life.pages())
        await life.until(lambda: len(life.broker._stores.messages) == 0)

    lives(tmp_path, before, between, decide, after, how="crash", settings=WIDE)


@HOWS
def test_a_deleted_queue_takes_its_pages_along(tmp_path, how):
    async def before(life):
        for name in ("kept", "gone"):
            await life.queue(name, address="topic", routing_type=RoutingType.MULTICAST)
        await life.send_numbers(range(100), "topic")
        assert await life.drain(100, "kept") == list(range(100))
        sink = life.consume("gone")
        await life.until(lambda: len(sink.got) == 100)
        await life.acknowledge(sink, sink.ids[50])
        life.broker.postoffice.addresses.delete_queue("gone")
        await durable(life.broker.storage.after)
        await life.until(lambda: not life.pages("topic"))

    async def after(life):
        assert len(life.broker._stores.messages) == 0
        assert not life.paging.active_count

    lives(tmp_path, before, after, how=how, settings=WIDE)


def test_duplicates_are_found_while_paging(tmp_path):
    async def part(life):
        await life.queue()
        for number in [*range(30), *range(30)]:
            session = life.session()
            sent = durable(session.send, message(str(number), _AMQ_DUPL_ID=f"id{number}"))
            await sent
        assert life.queue_of().message_count == 30
        assert await life.drain(30) == list(range(30))

    lives(tmp_path, part)


def test_what_comes_back_from_a_consumer_comes_before_its_pages(tmp_path):
    async def part(life):
        await life.queue()
        await life.send_numbers(range(60))
        session = life.session(auto_commit_acks=False, auto_commit_sends=False)
        sink = life.consume(session=session)
        await life.until(lambda: len(sink.got) == 60)
        session.acknowledge(0, sink.ids[44], lambda error: None)
        session.stop()
        await durable(session.rollback)
        session.close(has_failed=False)
        assert await life.drain(60) == list(range(60))

    lives(tmp_path, part, settings=WIDE)


def test_a_queue_done_with_a_page_that_others_need_sees_nothing_of_it_again(tmp_path):
    """The last one acknowledged stands before others that were, in bytes that are at hand."""

    async def before(life):
        for name in ("first", "second"):
            await life.queue(name, address="t", routing_type=RoutingType.MULTICAST)
        await life.send_numbers(range(100), "t")
        sink = life.consume("first")
        await life.until(lambda: len(sink.got) == 100)
        for number in range(30, 60):
            await life.acknowledge(sink, sink.ids[number], is_individual=True)

    async def after(life):
        expected = [*range(30), *range(60, 100)]
        for queue in ("first", "second"):
            life.broker.options.settings.add("t", NARROW)
            wanted = expected if queue == "first" else list(range(100))
            assert await life.drain(len(wanted), queue) == wanted
        await life.until(lambda: not life.pages("t"))

    lives(tmp_path, before, after, how="crash", settings=WIDE)
