"""Addresses whose messages go to pages: order, counts, restarts, transactions."""

import asyncio

import pytest

from broker.model.routing_type import RoutingType
from broker.model.xid import Xid
from broker.settings.settings import AddressSettings
from tests.broker.bench import message
from tests.broker.paging.runs import SMALL, durable, runs

XID = Xid(1, b"b", b"g")
# All that the tests send fits the window.
WIDE = {"max_read_page_bytes": 1024 * 1024}
NARROW = AddressSettings(**{**SMALL, "max_read_page_messages": 1})

HOWS = pytest.mark.parametrize("how", ["stop", "crash"])


def test_what_does_not_fit_memory_waits_in_pages_and_comes_in_order(tmp_path):
    async def part(run):
        await run.queue()
        await run.send_numbers(range(500))
        queue = run.queue_of()
        assert queue.message_count == 500
        assert queue.waiting.count == 10
        assert len(run.pages()) > 10

        assert await run.drain(500) == list(range(500))

        assert queue.message_count == 0
        await run.until(lambda: not run.pages())
        assert queue.pages is None
        assert not run.paging.stores["q"].is_paging
        await run.until(lambda: len(run.broker._activation.stores.messages) == 0)

    runs(tmp_path, part)


@HOWS
def test_pages_survive_a_restart(tmp_path, how):
    async def before(run):
        await run.queue()
        await run.send_numbers(range(300))

    async def between(run):
        await run.until(lambda: run.queue_of().message_count == 300)
        await run.send_numbers(range(300, 400))

    async def after(run):
        await run.until(lambda: run.queue_of().message_count == 400)
        assert await run.drain(400) == list(range(400))
        await run.until(lambda: not run.pages())

    runs(tmp_path, before, between, after, how=how)


@HOWS
def test_what_was_acknowledged_does_not_come_again(tmp_path, how):
    async def before(run):
        await run.queue()
        await run.send_numbers(range(300))
        sink = run.consume()
        await run.until(lambda: len(sink.got) == 300)
        await run.acknowledge(sink, sink.ids[149])
        # And here and there one far behind.
        for number in range(200, 260, 2):
            await run.acknowledge(sink, sink.ids[number], is_individual=True)

    async def after(run):
        expected = [
            number for number in range(150, 300) if not (200 <= number < 260 and number % 2 == 0)
        ]
        await run.until(lambda: run.queue_of().message_count == len(expected))
        assert await run.drain(len(expected)) == expected
        await run.until(lambda: not run.pages())
        await run.until(lambda: len(run.broker._activation.stores.messages) == 0)

    async def at_last(run):
        assert run.queue_of().message_count == 0
        assert len(run.broker._activation.stores.messages) == 0

    runs(tmp_path, before, after, at_last, how=how, settings=WIDE)


def test_pages_whose_last_acknowledgement_comes_with_the_stop_go_with_the_next_start(
    tmp_path, caplog
):
    async def before(run):
        await run.queue()
        await run.send_numbers(range(300))
        sink = run.consume()
        await run.until(lambda: len(sink.got) == 300)
        # Durable once the journal is closed, behind the threads that delete pages.
        sink.session.acknowledge(0, sink.ids[-1], lambda _: None)

    async def after(run):
        await run.until(lambda: not run.pages())
        assert run.queue_of().message_count == 0

    runs(tmp_path, before, after, settings=WIDE)

    assert [record for record in caplog.records if record.exc_info] == []


@HOWS
def test_each_queue_of_an_address_goes_through_its_pages_alone(tmp_path, how):
    names = ("fast", "slow", "odd")

    async def before(run):
        for name in names:
            await run.queue(
                name,
                address="topic",
                routing_type=RoutingType.MULTICAST,
                filter="AMQPriority > 4" if name == "odd" else None,
            )
        for number in range(200):
            await durable(
                run.session().send, message(str(number), "topic", priority=4 + number % 2)
            )
        assert sorted(await run.drain(200, "fast")) == list(range(200))
        assert run.queue_of("slow").message_count == 200
        assert run.queue_of("odd").message_count == 100

    async def after(run):
        assert run.queue_of("fast").message_count == 0
        await run.until(lambda: run.queue_of("odd").message_count == 100)
        assert await run.drain(100, "odd") == list(range(1, 200, 2))
        assert run.pages("topic")
        assert sorted(await run.drain(200, "slow")) == list(range(200))
        await run.until(lambda: not run.pages("topic"))
        await run.until(lambda: len(run.broker._activation.stores.messages) == 0)

    runs(tmp_path, before, after, how=how)


@HOWS
@pytest.mark.parametrize("is_committed", [True, False])
def test_a_transaction_in_pages_counts_with_its_commit(tmp_path, how, is_committed):
    async def before(run):
        await run.queue()
        await run.send_numbers(range(20))
        session = run.session(auto_commit_sends=False)
        for number in range(100, 200):
            session.send(message(str(number)), lambda error: None)
        await run.send_numbers(range(20, 40))
        sink = run.consume()
        await run.until(lambda: len(sink.got) == 40)
        assert run.queue_of().message_count == 40
        if is_committed:
            await durable(session.commit)
            await run.until(lambda: len(sink.got) == 140)
        else:
            await durable(session.rollback)
            await run.send_numbers([40])
            await run.until(lambda: len(sink.got) == 41)
        run.expected = [int(body) for body in sink.bodies]
        expected.extend(run.expected)

    async def after(run):
        await run.until(lambda: run.queue_of().message_count == len(expected))
        assert sorted(await run.drain(len(expected))) == sorted(expected)
        await run.until(lambda: not run.pages())
        await run.until(lambda: len(run.broker._activation.stores.messages) == 0)

    expected = []
    runs(tmp_path, before, after, how=how, settings=WIDE)
    assert set(expected) >= set(range(100, 200)) if is_committed else not set(expected) & {100}


def test_a_transaction_in_pages_comes_in_its_order(tmp_path):
    """Also where the queue has read a part of it before its commit, and not the rest."""
    order = []

    async def run(run):
        await run.queue()
        await run.send_numbers(range(20))
        session = run.session(auto_commit_sends=False)
        for numbers in (range(100, 105), range(105, 110)):
            for number in numbers:
                session.send(message(str(number)), lambda error: None)
            if 100 in numbers:
                await run.send_numbers(range(20, 40))
        await run.until(lambda: run.paging.writer.is_idle)
        sink = run.consume()
        # Its window is full in the midst of the second twenty.
        await run.until(lambda: len(sink.got) == 30)
        await durable(session.commit)
        await run.acknowledge(sink, sink.ids[-1])
        await run.until(lambda: len(sink.got) == 50)
        order.extend(int(body) for body in sink.bodies)

    settings = {**WIDE, "max_read_page_messages": 20, "page_size_bytes": 1024 * 1024}
    runs(tmp_path, run, settings=settings)
    assert [number for number in order if number >= 100] == list(range(100, 110))
    assert [number for number in order if number < 100] == list(range(40))


def test_messages_with_and_without_duplicate_ids_keep_their_order(tmp_path):
    """The former count with a commit of their own, the latter as soon as they are written."""
    order = []

    async def run(run):
        await run.queue()
        sink = run.consume()
        await run.send_numbers(range(20))
        await run.until(lambda: len(sink.got) == 20)
        journal = run.broker._activation.stores.messages
        journal.detach_loop()
        session = run.session()
        for number in range(20, 50):
            properties = {"_AMQ_DUPL_ID": str(number)} if number % 3 == 0 else {}
            session.send(message(str(number), **properties), lambda error: None)
        await asyncio.sleep(0.1)
        journal.attach_loop(asyncio.get_running_loop())
        await run.until(lambda: len(sink.got) == 50)
        order.extend(int(body) for body in sink.bodies)

    runs(tmp_path, run, settings=WIDE)
    assert order == list(range(50))


@pytest.mark.parametrize("decision", ["commit", "rollback"])
def test_a_prepared_transaction_sends_into_pages_and_acknowledges_from_them(tmp_path, decision):
    async def before(run):
        await run.queue()
        await run.send_numbers(range(40))
        session = run.session(is_xa=True, auto_commit_sends=False, auto_commit_acks=False)
        session.xa.start(XID)
        sink = run.consume(session=session)
        await run.until(lambda: len(sink.got) == 40)
        await run.acknowledge(sink, sink.ids[29])
        await run.send_numbers(range(100, 120), session=session)
        session.xa.end(XID, has_failed=False)
        await durable(session.xa.prepare, XID)

    async def between(run):
        await run.until(lambda: run.queue_of().message_count == 40)
        sink = run.consume()
        await run.until(lambda: len(sink.got) == 10)
        assert sink.bodies == [str(number) for number in range(30, 40)]

    async def decide(run):
        session = run.session(is_xa=True, auto_commit_sends=False, auto_commit_acks=False)
        if decision == "commit":
            await durable(session.xa.commit, XID, False)
        else:
            await durable(session.xa.rollback, XID)

    async def after(run):
        expected = {
            "commit": [*range(30, 40), *range(100, 120)],
            "rollback": list(range(40)),
        }[decision]
        await run.until(lambda: run.queue_of().message_count == len(expected))
        assert await run.drain(len(expected)) == expected
        await run.until(lambda: not run.pages())
        await run.until(lambda: len(run.broker._activation.stores.messages) == 0)

    runs(tmp_path, before, between, decide, after, how="crash", settings=WIDE)


@HOWS
def test_a_deleted_queue_takes_its_pages_along(tmp_path, how):
    async def before(run):
        for name in ("kept", "gone"):
            await run.queue(name, address="topic", routing_type=RoutingType.MULTICAST)
        await run.send_numbers(range(100), "topic")
        assert await run.drain(100, "kept") == list(range(100))
        sink = run.consume("gone")
        await run.until(lambda: len(sink.got) == 100)
        await run.acknowledge(sink, sink.ids[50])
        run.broker.parts.postoffice.addresses.delete_queue("gone")
        await durable(run.broker.parts.storage.after)
        await run.until(lambda: not run.pages("topic"))

    async def after(run):
        assert len(run.broker._activation.stores.messages) == 0
        assert not run.paging.active_count

    runs(tmp_path, before, after, how=how, settings=WIDE)


def test_duplicates_are_found_while_paging(tmp_path):
    async def part(run):
        await run.queue()
        for number in [*range(30), *range(30)]:
            session = run.session()
            sent = durable(session.send, message(str(number), _AMQ_DUPL_ID=f"id{number}"))
            await sent
        assert run.queue_of().message_count == 30
        assert await run.drain(30) == list(range(30))

    runs(tmp_path, part)


def test_what_comes_back_from_a_consumer_comes_before_its_pages(tmp_path):
    async def part(run):
        await run.queue()
        await run.send_numbers(range(60))
        session = run.session(auto_commit_acks=False, auto_commit_sends=False)
        sink = run.consume(session=session)
        await run.until(lambda: len(sink.got) == 60)
        session.acknowledge(0, sink.ids[44], lambda error: None)
        session.stop()
        await durable(session.rollback)
        session.close(has_failed=False)
        assert await run.drain(60) == list(range(60))

    runs(tmp_path, part, settings=WIDE)


def test_a_queue_done_with_a_page_that_others_need_sees_nothing_of_it_again(tmp_path):
    """The last one acknowledged stands before others that were, in bytes that are at hand."""

    async def before(run):
        for name in ("first", "second"):
            await run.queue(name, address="t", routing_type=RoutingType.MULTICAST)
        await run.send_numbers(range(100), "t")
        sink = run.consume("first")
        await run.until(lambda: len(sink.got) == 100)
        for number in range(30, 60):
            await run.acknowledge(sink, sink.ids[number], is_individual=True)

    async def after(run):
        expected = [*range(30), *range(60, 100)]
        for queue in ("first", "second"):
            run.broker.options.settings.add("t", NARROW)
            wanted = expected if queue == "first" else list(range(100))
            assert await run.drain(len(wanted), queue) == wanted
        await run.until(lambda: not run.pages("t"))

    runs(tmp_path, before, after, how="crash", settings=WIDE)
