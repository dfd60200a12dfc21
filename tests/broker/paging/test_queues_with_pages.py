"""What a queue can do goes on when most of it lies in pages."""

import tracemalloc

import pytest

from broker.errors import BrokerError, ErrorCode
from broker.model.message import Message
from broker.model.routing_type import RoutingType
from broker.paging import loading
from broker.settings.policies import AddressFullPolicy, DiskFullPolicy, PageFullPolicy
from broker.settings.queue_defaults import QueueRequest
from tests.broker.bench import Sink, message
from tests.broker.paging.runs import durable, runs

WIDE = {"max_read_page_bytes": 1024 * 1024}


def browser(run, name="q", selector=None):
    sink = Sink()
    sink.session = run.session()
    sink.consumer = sink.session.create_consumer(
        0, name, sink, filter_text=selector, is_browser=True
    )
    sink.session.start()
    return sink


def test_fifty_times_the_memory_drains_in_order_in_bounded_memory(tmp_path):
    """10,000 messages of 1 KiB, 200 KiB of memory, a window of 100 KiB."""
    settings = {
        "max_size_messages": -1,
        "max_size_bytes": 200 * 1024,
        "page_size_bytes": 512 * 1024,
        "max_read_page_bytes": 100 * 1024,
    }
    body = "x" * 1000

    async def part(run):
        await run.queue()
        session = run.session()
        for start in range(0, 10_000, 500):
            for number in range(start, start + 499):
                session.send(message(f"{number} {body}"), lambda error: None)
            await durable(session.send, message(f"{start + 499} {body}"))
        queue, memory = run.queue_of(), run.broker.parts.postoffice.addresses.memory
        assert queue.message_count == 10_000
        assert memory.size < 210 * 1024
        tracemalloc.start()
        seen, most = [], 0

        class Counting(Sink):
            def deliver(self, consumer, message, delivery_count):
                seen.append(int(bytes(message.body).split()[0]))
                self.last = message.message_id
                return 100

        sink = Counting()
        session = run.session()
        consumer = session.create_consumer(0, "q", sink)
        session.start()
        consumer.receive_credits(-1)
        while len(seen) < 10_000:
            before = len(seen)
            await run.acknowledge_of(session, sink.last)
            most = max(most, memory.size)
            await run.until(lambda known=before: len(seen) > known or len(seen) == 10_000)
        await run.acknowledge_of(session, sink.last)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert seen == list(range(10_000))
        assert most < 310 * 1024
        # Beside the window: what is read at once, twice, and what the test itself remembers; 1 MiB
        # mostly, more where threads are late. All of the messages would be more than 10 MiB.
        assert peak < 6 * 1024 * 1024
        await run.until(lambda: not run.pages())

    runs(tmp_path, part, settings=settings)


def test_a_browser_sees_everything_and_takes_nothing(tmp_path):
    async def part(run):
        await run.queue()
        await run.send_numbers(range(200))
        sink = browser(run)
        sink.consumer.receive_credits(-1)
        await run.until(lambda: len(sink.got) == 200)
        assert sink.bodies == [str(number) for number in range(200)]
        # What comes later it sees too, and what others take meanwhile not again.
        await run.send_numbers(range(200, 210))
        run.queue_of().deliver()
        await run.until(lambda: len(sink.got) == 210)
        assert await run.drain(210) == list(range(210))
        assert len(sink.got) == 210

    runs(tmp_path, part)


def test_a_browser_sees_what_its_selector_lets_through(tmp_path):
    async def part(run):
        await run.queue()
        for first in range(0, 200, 50):
            await run.send_numbers(range(first, first + 45))
            await run.send_numbers(range(first + 45, first + 50), durable=False)
        sink = browser(run, selector="AMQDurable = 'NON_DURABLE'")
        sink.consumer.receive_credits(-1)
        await run.until(lambda: len(sink.got) == 20)
        wanted = [number for number in range(200) if number % 50 >= 45]
        assert sink.bodies == [str(number) for number in wanted]
        assert await run.drain(200) == list(range(200))
        assert len(sink.got) == 20

    runs(tmp_path, part)


def test_a_browser_goes_on_where_its_credits_ended(tmp_path):
    async def part(run):
        await run.queue()
        await run.send_numbers(range(100))
        sink = browser(run)
        for _ in range(25):
            sink.consumer.receive_credits(400)
            wanted = len(sink.got)
            await run.until(lambda known=wanted: len(sink.got) >= known)
            for _ in range(5):
                await durable(run.session().context.after)
        await run.until(lambda: len(sink.got) == 100)
        assert sink.bodies == [str(number) for number in range(100)]

    runs(tmp_path, part)


def test_removing_all_messages_removes_those_in_pages(tmp_path):
    async def part(run):
        await run.queue()
        await run.send_numbers(range(200))
        queue = run.queue_of()
        assert queue.remove_all() == 200
        await run.send_numbers(range(1000, 1003))
        await run.until(lambda: queue.message_count == 3)
        assert await run.drain(3) == [1000, 1001, 1002]
        await run.until(lambda: not run.pages())
        await run.until(lambda: len(run.broker._activation.stores.messages) == 0)

    runs(tmp_path, part)


def test_messages_expire_in_pages_without_a_consumer(tmp_path):
    async def part(run):
        await run.queue()
        await run.queue("late")
        now_ms = run.broker.clock_ms()
        await run.send_numbers(range(12), expiration=now_ms - 1)
        await run.send_numbers(range(100, 150), expiration=now_ms - 1)
        await run.send_numbers([7])
        queue = run.queue_of()

        def looked():
            run.look_for_expired()
            return queue.message_count == 1

        await run.until(looked)
        assert await run.drain(1) == [7]
        await run.until(lambda: run.queue_of("late").message_count == 62)
        assert len(await run.drain(62, "late")) == 62

    runs(tmp_path, part, settings={"expiry_address": "late"})


def test_a_queue_that_comes_while_its_address_is_paging_sees_what_comes_then(tmp_path):
    async def part(run):
        await run.queue("old", address="t", routing_type=RoutingType.MULTICAST)
        await run.send_numbers(range(50), "t")
        await run.queue("new", address="t", routing_type=RoutingType.MULTICAST)
        await run.send_numbers(range(50, 60), "t")
        assert run.queue_of("new").message_count == 10
        assert await run.drain(10, "new") == list(range(50, 60))
        assert await run.drain(60, "old") == list(range(60))
        await run.until(lambda: not run.pages("t"))

    runs(tmp_path, part)


def test_a_queue_that_is_not_durable_has_pages_and_no_records(tmp_path):
    async def part(run):
        session = run.session()
        session.administration.create_queue(
            QueueRequest(
                name="sub", address="t", routing_type=RoutingType.MULTICAST, is_durable=False
            )
        )
        await durable(session.context.after)
        await run.send_numbers(range(60), "t")
        sink = run.consume("sub")
        await run.until(lambda: len(sink.got) == 60)
        assert run.pages("t")
        await run.acknowledge(sink, sink.ids[29])
        assert len(run.broker._activation.stores.messages) == 0

    async def after(run):
        await run.until(lambda: not run.pages("t"))
        assert not run.paging.active_count

    runs(tmp_path, part, after, settings=WIDE)


def test_a_queue_bound_to_a_pattern_has_pages_of_its_own(tmp_path):
    async def part(run):
        await run.queue("own", address="a.b", routing_type=RoutingType.MULTICAST)
        await run.queue("all", address="a.#", routing_type=RoutingType.MULTICAST)
        await run.send_numbers(range(100), "a.b")
        assert run.pages("a.b")
        assert run.pages("a.#")
        assert await run.drain(100, "all") == list(range(100))
        await run.until(lambda: not run.pages("a.#"))
        assert await run.drain(100, "own") == list(range(100))
        await run.until(lambda: not run.pages("a.b"))

    runs(tmp_path, part)


def test_what_is_due_later_waits_after_it_left_its_page(tmp_path):
    async def part(run):
        await run.queue()
        due_ms = run.broker.clock_ms() + 3_600_000
        await run.send_numbers(range(20))
        await run.send_numbers(range(100, 105), _AMQ_SCHED_DELIVERY=due_ms)
        await run.send_numbers(range(20, 40))
        assert await run.drain(40) == list(range(40))
        assert run.queue_of().scheduled_count == 5

    async def after(run):
        await run.until(lambda: run.queue_of().message_count == 5)
        run.consume()
        await run.until(lambda: run.queue_of().scheduled_count == 5)

    runs(tmp_path, part, after, settings=WIDE)


def test_too_many_deliveries_move_a_paged_message_to_the_dead_letters(tmp_path):
    async def part(run):
        await run.queue()
        await run.queue("dead")
        await run.send_numbers(range(40))
        for _ in range(2):
            session = run.session(auto_commit_acks=False, auto_commit_sends=False)
            sink = run.consume(session=session)
            await run.until(lambda one=sink: len(one.got) == 40)
            session.acknowledge(0, sink.ids[-1], lambda error: None)
            session.stop()
            await durable(session.rollback)
            session.close(has_failed=False)
        await run.until(lambda: run.queue_of().message_count == 0)
        assert await run.drain(40, "dead") == list(range(40))
        await run.until(lambda: not run.pages())

    settings = {**WIDE, "max_delivery_attempts": 2, "dead_letter_address": "dead"}
    runs(tmp_path, part, settings=settings)


@pytest.mark.parametrize("policy", list(PageFullPolicy))
@pytest.mark.parametrize("limit", [{"page_limit_messages": 30}, {"page_limit_bytes": 4096}])
def test_pages_have_a_limit(tmp_path, policy, limit):
    async def part(run):
        await run.queue()
        refused = 0
        for number in range(200):
            try:
                await run.send_numbers([number])
            except BrokerError as error:
                refused += error.code is ErrorCode.ADDRESS_FULL
        count = run.queue_of().message_count
        assert 30 < count < 150
        assert refused == (200 - count if policy is PageFullPolicy.FAIL else 0)
        assert await run.drain(count) == list(range(count))
        await run.send_numbers([1000])
        assert await run.drain(1) == [1000]

    runs(tmp_path, part, settings={"page_full_policy": policy, **limit})


def test_without_persistence_nothing_is_paged(tmp_path):
    async def part(run):
        await run.queue()
        await run.send_numbers(range(50))
        assert run.paging is None
        assert await run.drain(50) == list(range(50))

    runs(tmp_path, part, store=None)


def test_everything_goes_to_pages_with_a_limit_of_0(tmp_path):
    async def part(run):
        await run.queue()
        await run.send_numbers(range(5))
        assert run.queue_of().waiting.count == 0
        assert await run.drain(5) == list(range(5))

    runs(tmp_path, part, settings={"max_size_messages": -1, "max_size_bytes": 0})


def test_the_broker_as_a_whole_may_be_full(tmp_path):
    async def part(run):
        await run.queue("a")
        await run.queue("b")
        await run.send_numbers(range(30), "a")
        await run.send_numbers(range(30), "b")
        assert run.pages("a")
        assert run.pages("b")
        assert run.queue_of("b").waiting.count == 0
        assert await run.drain(30, "a") == list(range(30))
        assert await run.drain(30, "b") == list(range(30))

    runs(tmp_path, part, settings={"max_size_messages": -1}, global_max_messages=20)


@pytest.mark.parametrize("how", ["stop", "crash"])
def test_large_messages_keep_their_bodies_while_they_are_paged(tmp_path, how):
    body = bytes(range(256)) * 1000

    async def send_large(run):
        session = run.session()
        session.uploads.begin(Message.decode_headers(message("").encode_headers()))
        session.uploads.append(body)
        assert session.uploads.finish(lambda: None)
        await durable(lambda done: session.uploads.end(-1, done))

    async def before(run):
        await run.queue()
        await run.send_numbers(range(15))
        for _ in range(3):
            await send_large(run)
        assert len(list(run.folder.glob("largemessages/*.msg"))) == 3

    async def after(run):
        await run.until(lambda: run.queue_of().message_count == 18)
        sink = run.consume()
        await run.until(lambda: len(sink.got) == 18)
        for one in sink.got[15:]:
            assert one.large.read(0, 1 << 20) == body
            one.large.close()
        await run.acknowledge(sink, sink.ids[-1])
        await run.until(lambda: not run.pages())
        await run.until(lambda: not list(run.folder.glob("largemessages/*.msg")))

    runs(tmp_path, before, after, how=how, settings=WIDE)


def test_a_full_disk_is_noticed(tmp_path):
    async def part(run):
        await run.queue()
        with pytest.raises(BrokerError, match="the disk is"):
            await run.send_numbers([1])

    runs(
        tmp_path,
        part,
        settings={
            "disk_full_policy": DiskFullPolicy.FAIL,
            "address_full_policy": AddressFullPolicy.PAGE,
        },
        max_disk_usage=0,
    )


def test_a_queue_whose_pages_are_not_counted_yet_is_not_taken_for_empty(tmp_path, monkeypatch):
    monkeypatch.setattr(loading, "_COUNTED_AT_ONCE", 0)
    # Counting begins when the test says so.
    counts = []
    count = loading.PageLoader.count
    monkeypatch.setattr(
        loading.PageLoader, "count", lambda *call: counts.append(lambda: count(*call))
    )

    async def before(run):
        await run.queue(is_auto_created=True, auto_delete=True)
        await run.send_numbers(range(300))
        # Nothing in memory, and nothing in the last page.
        sink = run.consume()
        await run.until(lambda: len(sink.got) == 300)
        for number in [*range(10), *range(250, 300)]:
            await run.acknowledge(sink, sink.ids[number], is_individual=True)

    async def after(run):
        assert "q" in run.broker.parts.postoffice.addresses.queues
        assert not run.queue_of().has_at_most(1000)
        counts[-1]()
        await run.until(lambda: run.queue_of().has_at_most(1000))
        assert await run.drain(240) == list(range(10, 250))

    runs(tmp_path, before, after, how="crash", settings=WIDE)


@pytest.mark.parametrize("is_purging", [True, False])
def test_the_folder_of_an_address_goes_with_its_last_page_if_wanted(tmp_path, is_purging):
    async def part(run):
        await run.queue()
        folders = run.folder / "paging"
        for _ in range(3):
            await run.send_numbers(range(50))
            assert len(list(folders.iterdir())) == 1
            assert await run.drain(50) == list(range(50))
            await run.until(lambda: not run.pages())
            await run.until(lambda: len(list(folders.iterdir())) == (0 if is_purging else 1))
        await run.send_numbers(range(50))

    async def after(run):
        assert await run.drain(50) == list(range(50))

    runs(tmp_path, part, after, how="crash", purge_page_folders=is_purging)
