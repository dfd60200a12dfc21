"""What a prepared transaction had put into pages counts in histories once, from its commit on."""

import asyncio
from collections import Counter

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: quiver[spark] brings it")

from broker.loaded_messages import decode_message
from broker.paging.late_notes import LateNotes
from broker.storage.wire import RecordType
from pipeline.history import NEEDED, history
from pipeline.registration import register
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
from tests.broker.test_recovery import Life, durable

COUNT = 12


async def story(folder, monkeypatch):
    """Prepared, crashed, asked to commit, crashed before the commit was written, committed."""

    def life_in(place):
        return Life(place, store=with_history(place), settings=paging_soon())

    async with life_in(folder) as life:
        for name in ("q", "copies"):
            await life.queue(name)
        await life.send(*(message(f"{n} {FILLER}") for n in range(5)))
        await prepare(life, REFUSED, message(f"refused {FILLER}"))
        await prepare(life, DECIDED, *(message(f"{n} {FILLER}", mine=True) for n in range(COUNT)))
        folder = life.crash_copy("prepared")
    async with life_in(folder) as life:
        crashed = []
        real = LateNotes.__init__

        def crash_before(notes, paging, noted, sent, then):
            def crash():
                life.broker.core.storage.sync()
                crashed.append(life.crash_copy("noted"))
                then()

            real(notes, paging, noted, sent, crash)

        with monkeypatch.context() as patched:
            patched.setattr(LateNotes, "__init__", crash_before)
            await durable(life.session(is_xa=True).xa_commit, DECIDED, False)
    (folder,) = crashed
    async with life_in(folder) as life:
        session = life.session(is_xa=True)
        assert set(session.xa_in_doubt()) == {DECIDED, REFUSED}
        await durable(session.xa_rollback, REFUSED)
        await durable(session.xa_commit, DECIDED, False)
        # The broker's own; it has the files copied, too.
        await replay(life, "broker", "q", "copies", None)
        queues = life.broker.core.postoffice.addresses.queues
        assert queues["copies"].message_count == 5 + COUNT
    return folder


def test_it_counts_once_from_its_commit_on(spark, tmp_path, monkeypatch):
    folder = asyncio.run(story(tmp_path / "first", monkeypatch))
    register(spark)
    records = spark.read.format("retention").load(str(folder / "history")).select(*NEEDED)
    found = records_of(folder)
    noted = Counter(
        record.record_id
        for record in found
        if record.kind == "event"
        and record.user_type == RecordType.ADD_MESSAGE_PROTOCOL
        and decode_message(record.record_id, record.body).get("mine")
    )
    # By each of the two that were asked to commit.
    assert list(noted.values()) == [2] * COUNT
    records.persist()
    (prepared_at,) = {
        (row.file_id << 32) + row.offset
        for row in records.where("kind = 'prepare'").collect()
        if DECIDED.gtx in row.body
    }

    told = history(records)
    sent = told.sent.where("address = 'q'").collect()
    routed = told.routed.collect()

    places = {row.message_id: row.place.counts for row in sent}
    assert len(sent) == len(places) == len(routed) == 5 + COUNT
    assert {row.message_id for row in routed} == set(places)
    assert all(places[message_id] > prepared_at for message_id in noted)
