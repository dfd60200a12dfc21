"""What is read of pages, when, and in which order; and what an append may do meanwhile."""

import asyncio
import logging

from broker.model.properties import PropertyType
from broker.paging.reference import PagedReference
from broker.records.page_records import entries
from broker.storage import page_writer
from broker.storage.context import Admission, Completions
from broker.storage.page_writer import PageWriter
from tests.broker.bench import message
from tests.broker.paging.runs import durable, runs

WIDE = {"max_read_page_bytes": 1024 * 1024}


def test_a_page_does_not_overtake_what_is_on_its_way_to_the_journal(tmp_path):
    async def part(broker_run):
        await broker_run.queue()
        storage = broker_run.broker.parts.storage
        # What the journal has made durable comes into its queue only when this is open.
        admission = Admission()
        storage.new_context().after_admission(admission, lambda error: None)
        session = broker_run.session()
        for number in range(10):
            session.send(message(str(number)), lambda error: None)
        for number in range(10, 20):
            session.send(message(str(number), durable=False), lambda error: None)
        page = broker_run.paging.stores["q"].pages[1]
        sink = broker_run.consume()
        await broker_run.until(lambda: page.written_size == page.size)
        for _ in range(5):
            await asyncio.sleep(0.001)
        assert sink.got == []

        admission.open(storage.completions.messages)
        storage.completions.run_due()
        await broker_run.until(lambda: len(sink.got) == 20)
        assert sink.bodies == [str(number) for number in range(20)]

    runs(tmp_path, part, settings=WIDE)


class HeldJob:
    def __init__(self, work, done):
        self._work = work
        self._done = done

    def wait(self):
        work, self._work = self._work, lambda: None
        work()
        return True

    def finish(self):
        self.wait()
        self._done(None, None)


class HeldWork:
    """Does what it is told to when somebody waits for it."""

    def __init__(self):
        self.jobs = []

    def run(self, work, done):
        self.jobs.append(HeldJob(work, done))
        return self.jobs[-1]


class WrittenPage:
    is_gone = False

    def __init__(self, number, told, written):
        self.number = number
        self.folder = self
        self._told = told
        self._written = written

    def append(self, page, data):
        self._written += [(page, one) for one in data]

    def sync(self, page):
        pass

    def written(self, size):
        self._told.append((self.number, size))


def test_an_append_that_waits_for_the_disk_calls_no_callback(monkeypatch):
    monkeypatch.setattr(page_writer, "_FILLING_SIZE_MAX", 10)
    work, soon, told, written, durable_ones = HeldWork(), [], [], [], []
    writer = PageWriter(work, Completions(lambda error: None), soon.append)
    first, second = (WrittenPage(number, told, written) for number in (1, 2))

    for number in range(8):
        writer.append(
            second if number > 4 else first, b"%07d" % number, is_durable=True, is_synced=True
        )
        writer.after(lambda one=number: durable_ones.append(one))
        while soon:
            soon.pop()()
    assert len(work.jobs) > 2
    assert told == []
    assert durable_ones == []

    for job in work.jobs:
        job.finish()
    writer.flush()
    assert written == [(2 if number > 4 else 1, b"%07d" % number) for number in range(8)]
    assert durable_ones == list(range(8))
    assert sum(size for number, size in told if number == 1) == 35
    assert sum(size for _, size in told) == 56
    assert writer.is_idle


def test_a_record_that_was_damaged_after_it_was_counted_is_read_once(tmp_path, caplog):
    async def part(broker_run):
        await broker_run.queue()
        await broker_run.send_numbers(range(100))
        page = broker_run.paging.stores["q"].pages[1]
        await broker_run.until(lambda: page.is_read_up)
        file = next(broker_run.folder.glob("paging/*/000000001.page"))
        data = bytearray(file.read_bytes())
        # Its length stands, but it does not end there.
        found = list(entries(bytes(data), 0, 0))
        data[found[5].end - 1] ^= 0x55
        file.write_bytes(data)
        sink = broker_run.consume()
        missing = len(found) - 5
        with caplog.at_level(logging.ERROR, "broker"):
            await broker_run.until(lambda: len(sink.got) == 100 - missing)
        assert [int(body) for body in sink.bodies] == [*range(15), *range(15 + missing, 100)]
        assert [one.message[:9] for one in caplog.records] == ["AMQ222033"]

    runs(tmp_path, part, settings=WIDE)


def test_a_transaction_counts_its_durable_messages_alone(tmp_path):
    async def part(broker_run):
        await broker_run.queue()
        await broker_run.send_numbers(range(10))
        session = broker_run.session(auto_commit_sends=False)
        for number in range(10, 20):
            session.send(message(str(number), durable=number % 2 == 0), lambda error: None)
        sent = session.tx.paged.sent
        await durable(session.commit)
        assert sent.durable_count == 5
        sink = broker_run.consume()
        await broker_run.until(lambda: len(sink.got) == 20)
        for message_id in sink.ids[10:14]:
            await broker_run.acknowledge(sink, message_id, is_individual=True)
        assert sent.durable_count == 3
        acks = broker_run.session(auto_commit_sends=False, auto_commit_acks=False)
        sink.session.close(has_failed=False)
        rest = broker_run.consume(session=acks)
        await broker_run.until(lambda: len(rest.got) == 16)
        acks.acknowledge(0, rest.ids[-1], lambda error: None)
        await durable(acks.commit)
        assert sent.durable_count == 0

    runs(tmp_path, part, settings=WIDE)


def test_a_time_of_delivery_may_be_any_number(tmp_path):
    async def part(broker_run):
        await broker_run.queue()
        await broker_run.send_numbers(range(20))
        later = message("later")
        due_ms = broker_run.broker.clock_ms() + 3_600_000
        later.set("_AMQ_SCHED_DELIVERY", PropertyType.DOUBLE, float(due_ms))
        await durable(broker_run.session().send, later)
        assert await broker_run.drain(20) == list(range(20))
        await broker_run.until(lambda: broker_run.queue_of().scheduled_count == 1)

    runs(tmp_path, part, settings=WIDE)


def test_removing_all_removes_what_a_transaction_brought_late(tmp_path):
    async def part(broker_run):
        await broker_run.queue()
        await broker_run.send_numbers(range(20))
        sessions = [broker_run.session(auto_commit_sends=False) for _ in range(2)]
        for session in sessions:
            for _ in range(5):
                session.send(message("late"), lambda error: None)
        await broker_run.send_numbers(range(20, 30))
        sink = broker_run.consume()
        await broker_run.until(lambda: len(sink.got) == 30)
        await broker_run.acknowledge(sink, sink.ids[-1])
        sink.session.close(has_failed=False)
        # The queue has read beyond them: they are read again.
        await durable(sessions[0].commit)
        queue = broker_run.queue_of()
        assert queue.message_count == 5
        assert queue.remove_all() == 5
        await durable(sessions[1].commit)
        await broker_run.until(lambda: queue.message_count == 5)
        later = broker_run.consume()
        await broker_run.until(lambda: len(later.got) == 5)
        await broker_run.acknowledge(later, later.ids[-1])
        await broker_run.until(lambda: not broker_run.pages())
        await broker_run.until(lambda: len(broker_run.broker._activation.stores.messages) == 0)

    runs(tmp_path, part, settings=WIDE)


def test_what_was_put_off_comes_before_what_the_same_transaction_sent_later(tmp_path):
    async def part(broker_run):
        await broker_run.queue()
        await broker_run.send_numbers(range(20))
        session = broker_run.session(auto_commit_sends=False)
        for number in range(20, 23):
            session.send(message(str(number)), lambda error: None)
        await broker_run.send_numbers([30])
        sink = broker_run.consume()
        # The queue has read beyond the first ones, which are of an open transaction.
        await broker_run.until(lambda: len(sink.got) == 21)
        for number in range(23, 26):
            session.send(message(str(number)), lambda error: None)
        admission = Admission()
        storage = broker_run.broker.parts.storage
        storage.new_context().after_admission(admission, lambda error: None)
        session.commit(lambda error: None)
        page = broker_run.paging.stores["q"].pages[1]
        await broker_run.until(lambda: page.written_size == page.size)
        subscription = broker_run.queue_of().pages
        # And has come upon the others, of a commit that is not durable yet.
        await broker_run.until(lambda: subscription._blocking is not None)
        assert len(sink.got) == 21

        admission.open(storage.completions.messages)
        storage.completions.run_due()
        await broker_run.until(lambda: len(sink.got) == 27)
        assert sink.bodies == [str(number) for number in (*range(20), 30, *range(20, 26))]

    runs(tmp_path, part, settings=WIDE)


def test_several_acknowledgements_are_waited_for_once(tmp_path):
    async def part(broker_run):
        await broker_run.queue()
        await broker_run.send_numbers(range(100))
        sink = broker_run.consume()
        await broker_run.until(lambda: len(sink.got) == 100)
        delivering = [one for one in sink.consumer.delivering if isinstance(one, PagedReference)]
        pages = {one.page.number for one in delivering}
        assert len(pages) > 1
        counter = broker_run.broker.parts.storage.completions.messages
        known = counter.appended
        # All but the last one, in one transaction of the store: its page stays, the others go.
        sink.session.acknowledge(0, sink.ids[98], lambda error: None)
        assert counter.appended - known == 1
        assert len(delivering) > 5 * len(pages)
        await broker_run.acknowledge(sink, sink.ids[99])
        assert counter.appended - known == 2

    runs(tmp_path, part, settings=WIDE)
