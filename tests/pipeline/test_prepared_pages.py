"""What a transaction had put into pages counts in histories once, if its commit was written."""

import asyncio
from collections import Counter

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: quiver-mq[spark] brings it")

from broker.model.wire import RecordType
from broker.model.xid import Xid
from broker.paging.paged_part import PagedPart
from broker.paging.recovered_transactions import RecoveredTransactionHistory
from broker.recovery.loaded_messages import decode_message
from pipeline.audit_queues import frame_of
from pipeline.message_traces import read_steps, trace_messages
from pipeline.registration import register
from pipeline.replay import ReplayRequest, select
from tests.broker.bench import message
from tests.broker.management.test_replay import (
    DECIDED,
    FILLER,
    REFUSED,
    paging_soon,
    prepare,
    records_of,
    replay,
    with_history,
)
from tests.broker.test_recovery import BrokerRun, durable

COUNT = 12
UNDONE = Xid(1, b"b", b"undone")


async def story(folder, monkeypatch):
    """Prepared, crashed, asked to commit, crashed before the commit was written, decided again.

    Of two that were prepared one is committed and the other rolled back. A third one, which was not
    prepared, does not come back.
    """

    def run_in(place):
        return BrokerRun(place, store=with_history(place), settings=paging_soon())

    async with run_in(folder) as run:
        for name in ("q", "copies"):
            await run.queue(name)
        await run.send(*(message(f"{n} {FILLER}") for n in range(5)))
        await prepare(run, REFUSED, message(f"refused {FILLER}"))
        await prepare(run, DECIDED, *(message(f"{n} {FILLER}", mine=True) for n in range(COUNT)))
        await prepare(run, UNDONE, message(f"undone {FILLER}", other=True))
        folder = run.crash_copy("prepared")
    async with run_in(folder) as run:
        crashed, held = [], []
        all_are_held, is_copied = asyncio.Event(), asyncio.Event()
        real, committing = RecoveredTransactionHistory.__init__, PagedPart.committing

        def hold(notes, *given):
            *parts, then = given

            def noted_all():
                held.append(then)
                if len(held) == 2:
                    all_are_held.set()

            real(notes, *parts, noted_all)

        def crash(part):
            has_notes = bool(part.notes)
            committing(part)
            if has_notes:
                run.broker.parts.storage.sync()
                crashed.append(run.crash_copy("noted"))
                is_copied.set()

        with monkeypatch.context() as patched:
            patched.setattr(RecoveredTransactionHistory, "__init__", hold)
            patched.setattr(PagedPart, "committing", crash)
            session = run.session(auto_commit_sends=False)
            await run.send(message(f"unheard of {FILLER}", other=True), session=session)
            decided = [
                asyncio.ensure_future(durable(run.session(is_xa=True).xa.commit, xid, False))
                for xid in (DECIDED, UNDONE)
            ]
            await asyncio.wait_for(all_are_held.wait(), 60)
            ended = asyncio.ensure_future(durable(session.commit))
            await asyncio.wait_for(is_copied.wait(), 60)
            for then in held:
                then()
            await asyncio.gather(*decided, ended)
    (folder,) = crashed
    async with run_in(folder) as run:
        session = run.session(is_xa=True)
        assert set(session.xa.in_doubt()) == {DECIDED, REFUSED, UNDONE}
        for xid in (REFUSED, UNDONE):
            await durable(session.xa.rollback, xid)
        await durable(session.xa.commit, DECIDED, False)
        # The broker's own; it has the files copied, too.
        await replay(run, "broker", "q", "copies", None)
        queues = run.broker.parts.postoffice.addresses.queues
        assert queues["copies"].message_count == 5 + COUNT
    return folder


def test_it_counts_once_from_its_commit_on(spark, tmp_path, monkeypatch):
    folder = asyncio.run(story(tmp_path / "first", monkeypatch))
    register(spark)
    every = spark.read.format("retention").load(str(folder / "history")).persist()
    found = records_of(folder)
    texts = [
        decode_message(record.record_id, record.body)
        for record in found
        if record.kind == "event" and record.user_type == RecordType.ADD_MESSAGE_PROTOCOL
    ]
    noted = Counter(text.message_id for text in texts if text.get("mine"))
    # By each of the two runs that were asked to commit.
    assert list(noted.values()) == [2] * COUNT
    assert len([text for text in texts if text.get("other")]) == 2
    (prepared_at,) = {
        (row.file_id << 32) + row.offset
        for row in every.where("kind = 'prepare'").collect()
        if DECIDED.gtx in row.body
    }

    steps = read_steps(spark, [], [str(folder / "history")], {})
    rows = trace_messages(steps, frame_of(spark, []), {}).rows.collect()
    sent = [row for row in rows if row.place is not None and row.address == "q"]
    # The first ones stay in memory.
    routed = [row for row in rows if row.paged is not None or row.routed is not None]

    places = {row.message_id: row.place.counts for row in sent}
    assert len(sent) == len(places) == len(routed) == 5 + COUNT
    assert {row.message_id for row in routed} == set(places)
    assert all(places[message_id] > prepared_at for message_id in noted)
    selection = select([every], {"": ""}, ReplayRequest("q", None, None, None, 0))
    assert {found.message_id for found in selection.messages()} == set(places)
