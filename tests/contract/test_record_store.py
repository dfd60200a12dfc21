"""What every RecordStore promises (journal/api.py)."""

import asyncio
import threading
import time

import pytest

from journal.api import RecordStore
from journal.errors import (
    DuplicateRecord,
    JournalClosed,
    RecordTooLarge,
    UnknownRecord,
    UnknownTransaction,
    WrongState,
    WrongUse,
)

WAIT_S = 30


def records(view):
    return [(record, is_update, body) for record, is_update, _, body in view[0]]


def test_it_is_a_record_store(store):
    assert isinstance(store, RecordStore)


def test_a_new_store_is_empty(stores):
    _, view = stores.reopened()

    assert view == ((), (), ())


def test_adds_updates_and_deletes_come_back_in_order(stores, store):
    store.add(1, 10, b"one", sync=True)
    store.add(2, 11, b"two", sync=False)
    store.update(1, 12, b"one again", sync=True)
    store.add(3, 13, b"three", sync=False)
    store.delete(2, sync=True)
    store.close()

    _, view = stores.reopened()

    assert view[0] == (
        (1, False, 10, b"one"),
        (1, True, 12, b"one again"),
        (3, False, 13, b"three"),
    )


@pytest.mark.parametrize("body", [b"", b"\0", bytearray(b"array"), memoryview(b"view"), b"x" * 9])
def test_any_contiguous_bytes_are_a_body(stores, store, body):
    store.add(1, 0, body, sync=True)
    store.close()

    assert records(stores.reopened()[1]) == [(1, False, bytes(body))]


def test_the_body_is_copied_before_add_returns(stores, store):
    body = bytearray(b"before")
    store.add(1, 0, body, sync=False)
    body[:] = b"after!"
    store.close()

    assert records(stores.reopened()[1]) == [(1, False, b"before")]


def test_the_largest_record_fits_and_one_byte_more_does_not(stores, store):
    size = store.record_size_max
    with pytest.raises(RecordTooLarge) as refused:
        store.add(1, 0, bytes(size), sync=True)
    while True:
        try:
            store.add(1, 0, b"L" * size, sync=True)
        except RecordTooLarge:
            size -= 1
        else:
            break
    store.close()

    assert store.record_size_max - size < 64
    assert isinstance(refused.value, WrongUse)
    assert records(stores.reopened()[1]) == [(1, False, b"L" * size)]


@pytest.mark.parametrize("record", [0, -1, 2**63 - 1, -(2**63), 2**31])
def test_any_64_bit_number_is_an_id(stores, store, record):
    store.add(record, 0, b"x", sync=True)
    store.close()

    assert records(stores.reopened()[1]) == [(record, False, b"x")]


def test_a_live_id_cannot_be_added_again(stores, store):
    store.add(1, 0, b"first", sync=True)

    with pytest.raises(DuplicateRecord):
        store.add(1, 0, b"second", sync=True)
    store.close()

    assert records(stores.reopened()[1]) == [(1, False, b"first")]


@pytest.mark.parametrize("wrong", [301, 256, -1, 1.7, "1", None, 2**70])
def test_a_user_type_out_of_range_is_refused(stores, store, wrong):
    for append in (
        lambda: store.add(1, wrong, b"x"),
        lambda: store.add(1, wrong, b"x", tx=5),
        lambda: store.add_many([1], wrong, [b"x"]),
        lambda: store.update(1, wrong, b"x"),
        lambda: store.add_durable(1, wrong, b"x"),
    ):
        with pytest.raises((TypeError, ValueError)):
            append()
    store.close()

    assert stores.reopened()[1] == ((), (), ())


@pytest.mark.parametrize("wrong", [52.9, "52", None, 2**63, -(2**63) - 1])
def test_an_id_that_is_none_is_refused(stores, store, wrong):
    for append in (
        lambda: store.add(wrong, 1, b"x"),
        lambda: store.add(wrong, 1, b"x", tx=5),
        lambda: store.add_many([wrong], 1, [b"x"]),
        lambda: store.update(wrong, 1, b"x"),
        lambda: store.delete(wrong),
        lambda: store.try_delete(wrong),
        lambda: store.commit(wrong),
        lambda: store.rollback(wrong),
        lambda: store.prepare(wrong),
    ):
        with pytest.raises((TypeError, OverflowError)):
            append()
    store.close()

    assert stores.reopened()[1] == ((), (), ())


@pytest.mark.parametrize("wrong", [1.5, "5", 2**63])
def test_a_transaction_id_that_is_none_is_refused(stores, store, wrong):
    for append in (
        lambda: store.add(1, 1, b"x", tx=wrong),
        lambda: store.add_many([1], 1, [b"x"], tx=wrong),
        lambda: store.delete(1, tx=wrong),
    ):
        with pytest.raises((TypeError, OverflowError)):
            append()
    store.close()

    assert stores.reopened()[1] == ((), (), ())


def test_a_transaction_block_commits_or_rolls_back(stores, store):
    with store.transaction() as tx:
        tx.add(1, 1, b"one")
        tx.add_many([2, 3], 1, [b"two", b"three"])
        tx.update(1, 1, b"again")
        tx.delete(3)
    with pytest.raises(KeyError), store.transaction() as gone:  # noqa: PT012 - the block is tested.
        gone.add(4, 1, b"never")
        raise KeyError
    with pytest.raises(RecordTooLarge), store.transaction() as refused:
        refused.add(5, 1, bytes(store.record_size_max))
    with store.transaction() as empty:
        pass

    async def main():
        async with store.transaction() as tx:
            tx.add(6, 1, b"six")
        assert store.durable_ticket > tx.ticket

    asyncio.run(main())
    assert empty.ticket is None
    store.close()

    assert records(stores.reopened()[1]) == [
        (1, False, b"one"),
        (2, False, b"two"),
        (1, True, b"again"),
        (6, False, b"six"),
    ]


def test_async_with_opens_and_closes_a_store(stores):
    async def main():
        async with stores.new() as store:
            store.load()
            await store.add_durable(1, 1, b"x")
        return store

    assert asyncio.run(main()).state == "closed"


def test_what_is_not_live_cannot_be_updated_or_deleted(store):
    store.add(1, 0, b"x", sync=True)
    store.delete(1, sync=True)

    with pytest.raises(UnknownRecord):
        store.update(1, 0, b"y")
    with pytest.raises(UnknownRecord):
        store.delete(1)
    with pytest.raises(UnknownRecord):
        store.delete(2)


def test_a_transaction_counts_at_its_commit(stores, store):
    store.add(1, 0, b"deleted in it", sync=True)
    store.add(2, 1, b"added", tx=50)
    store.update(2, 2, b"updated", tx=50)
    store.delete(1, b"why", tx=50)
    store.add(3, 3, b"before the commit", sync=True)
    store.commit(50, sync=True)
    store.close()

    _, view = stores.reopened()

    assert records(view) == [
        (3, False, b"before the commit"),
        (2, False, b"added"),
        (2, True, b"updated"),
    ]
    assert view[1:] == ((), ())


def test_a_rolled_back_transaction_leaves_nothing(stores, store):
    store.add(1, 0, b"stays", sync=True)
    store.add(2, 0, b"never was", tx=50)
    store.delete(1, tx=50)
    store.rollback(50, sync=True)
    store.close()

    assert records(stores.reopened()[1]) == [(1, False, b"stays")]


def test_a_prepared_transaction_waits_for_its_end(stores, store):
    store.add(1, 0, b"x", sync=True)
    store.add(2, 7, b"prepared", tx=50)
    store.delete(1, b"why", tx=50)
    store.prepare(50, b"extra", sync=True)
    store.close()

    second, view = stores.reopened()
    second.commit(50, sync=True)
    second.close()
    _, after = stores.reopened()

    assert records(view) == [(1, False, b"x")]
    assert view[1] == ((50, b"extra", ((2, False, 7, b"prepared"),), ((1, b"why"),)),)
    assert records(after) == [(2, False, b"prepared")]
    assert after[1] == ()


def test_a_transaction_left_open_is_reported_and_then_gone(stores, store):
    store.add(1, 5, b"open", tx=50)
    store.close()

    second, view = stores.reopened()
    second.close()
    _, after = stores.reopened()

    assert view == ((), (), ((50, ((1, False, 5, b"open"),), ()),))
    assert after == ((), (), ())


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_only_an_open_transaction_can_end(store, end):
    with pytest.raises(UnknownTransaction):
        getattr(store, end)(99)
    store.add(1, 0, b"x", tx=50)
    store.commit(50, sync=True)
    with pytest.raises(UnknownTransaction):
        getattr(store, end)(50)


def test_a_batch_is_many_adds(stores, store):
    bodies = [bytes([i]) * i for i in range(200)]
    ticket = store.add_many(range(1000, 1200), 4, bodies, sync=True)
    store.add_many(range(2000, 2003), 4, bodies[:3], tx=60)
    store.commit(60, sync=True)
    store.close()

    found = records(stores.reopened()[1])
    assert isinstance(ticket, int)
    assert found[:200] == [(1000 + i, False, body) for i, body in enumerate(bodies)]
    assert [record for record, *_ in found[200:]] == [2000, 2001, 2002]


@pytest.mark.parametrize(
    ("ids", "bodies"),
    [([1, "2"], [b"a", b"b"]), ([1, 2**64], [b"a", b"b"]), ([1, 2], [b"a", None]), ([1], [])],
)
def test_a_wrong_batch_is_refused_and_the_store_goes_on(stores, store, ids, bodies):
    """Whatever is wrong in a batch, no thread may keep the store's lock."""
    with pytest.raises((TypeError, ValueError, OverflowError)):
        store.add_many(ids, 0, bodies, sync=True)

    finished = threading.Event()

    def go_on():
        store.add(50, 0, b"goes on", sync=True)
        finished.set()

    threading.Thread(target=go_on, daemon=True).start()
    assert finished.wait(WAIT_S)


def test_callbacks_run_in_append_order_once_durable(store):
    called = []
    tickets = [
        store.add(i, 0, b"x", sync=True, done=lambda error, i=i: called.append((i, error)))
        for i in range(1, 101)
    ]
    store.wait(tickets[-1])
    store.reap()

    assert called == [(i, None) for i in range(1, 101)]
    assert tickets == sorted(tickets)


def reaped(store, called, count):
    deadline = time.monotonic() + WAIT_S
    while len(called) < count and time.monotonic() < deadline:
        store.reap()
        time.sleep(0.001)
    return called


def test_what_is_without_flush_now_is_durable_when_its_time_is_up(stores, store, tmp_path):
    called = []
    store.add(1, 0, b"x", sync=True, done=called.append, flush_now=False)
    store.update(1, 0, b"y", sync=True, done=called.append, flush_now=False)

    assert reaped(store, called, 2) == [None, None]
    if stores.can.survives_abandonment:
        assert len(records(stores.abandoned_view(tmp_path))) == 2


def test_a_commit_without_flush_now_is_durable_when_its_time_is_up(store):
    called = []
    for tx in (1, 2):
        store.add(tx, 0, b"x", tx=tx, wait=False)
        store.commit(tx, sync=True, done=called.append, flush_now=False)

    assert reaped(store, called, 2) == [None, None]


def test_a_commit_without_flush_now_goes_when_somebody_asks_after_all(stores):
    store = stores.patient(3600)
    called = []
    store.add(1, 0, b"x", tx=1, wait=False)
    ticket = store.commit(1, sync=True, done=called.append, flush_now=False)
    time.sleep(0.1)
    assert store.durable_ticket <= ticket
    store.flush_now()

    assert reaped(store, called, 1) == [None]


def test_what_is_without_flush_now_goes_with_what_somebody_waits_for(stores):
    store = stores.patient(3600)
    called = []
    ticket = store.add(1, 0, b"x", sync=True, done=called.append, flush_now=False)
    time.sleep(0.1)
    assert store.durable_ticket <= ticket
    store.add(2, 0, b"y", sync=True)

    assert reaped(store, called, 1) == [None]


@pytest.mark.parametrize("ask", ["flush_now", "wait", "sync"])
def test_what_is_without_flush_now_goes_when_somebody_asks_after_all(stores, ask):
    store = stores.patient(3600)
    called = []
    store.add(1, 0, b"x", sync=True)
    ticket = store.update(1, 0, b"y", sync=True, done=called.append, flush_now=False)
    time.sleep(0.1)
    assert store.durable_ticket <= ticket
    getattr(store, ask)(*([ticket] if ask == "wait" else []))

    assert reaped(store, called, 1) == [None]


def test_flush_now_of_what_is_durable_does_nothing(store):
    ticket = store.add(1, 0, b"x", sync=True)
    store.flush_now()
    store.flush_now()

    assert store.durable_ticket > ticket


def test_what_is_expected_may_come_late_or_never(stores, store, tmp_path):
    called = []
    for record_id in range(1, 40, 2):
        store.prewarm()
        time.sleep(record_id % 3 / 1000)
        ticket = store.add(record_id, 0, b"x", sync=True)
        assert store.durable_ticket > ticket
        store.add(record_id + 1, 0, b"y", sync=True, done=called.append, flush_now=False)
        store.prewarm()

    assert reaped(store, called, 20) == [None] * 20
    store.prewarm()
    store.close()
    if stores.can.survives_abandonment:
        assert len(records(stores.abandoned_view(tmp_path))) == 40


def test_a_callback_is_called_at_the_latest_by_close(store):
    called = []
    store.add(1, 0, b"x", sync=True, done=called.append)
    store.add(2, 0, b"x", sync=False, done=called.append)
    store.close()

    assert called == [None, None]


def test_one_wait_does_for_all_before_it(stores, store, tmp_path):
    tickets = [store.add(i, 0, b"x", sync=False) for i in range(1, 21)]
    store.wait(tickets[-1])

    if stores.can.survives_abandonment:
        assert len(records(stores.abandoned_view(tmp_path))) == 20
    assert store.durable_ticket > tickets[-1]


def test_what_was_acknowledged_survives_abandonment(stores, store, tmp_path):
    store.add(1, 0, b"acknowledged", sync=True)
    store.add(2, 0, b"in a transaction", tx=50)
    store.commit(50, sync=True)
    store.add(3, 0, b"synced later", sync=False)
    store.sync()

    if stores.can.survives_abandonment:
        assert [record for record, *_ in records(stores.abandoned_view(tmp_path))] == [1, 2, 3]


def test_awaitables_end_once_durable(stores, store):
    async def append():
        futures = [
            store.durable(store.add(i, 0, b"x", sync=True, wait=False)) for i in range(1, 65)
        ]
        await asyncio.wait_for(asyncio.gather(*futures), WAIT_S)

    asyncio.run(append())
    store.close()

    assert len(records(stores.reopened()[1])) == 64


def test_many_threads_append_and_wait(stores, store):
    def work(first):
        for i in range(50):
            store.add(first + i, 0, b"%d" % i, sync=i % 3 == 0)

    threads = [threading.Thread(target=work, args=(n * 1000,)) for n in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
        assert not thread.is_alive()
    store.close()

    found = records(stores.reopened()[1])
    for n in range(1, 9):
        mine = [body for record, _, body in found if record // 1000 == n]
        assert mine == [b"%d" % i for i in range(50)]


def test_a_full_round_of_compaction_changes_nothing_to_see(stores):
    store = stores.loaded(file_size=32768, buffer_size=8192)
    for i in range(1, 101):
        store.add(i, 3, bytes([i]) * 2000, sync=False)
    for i in range(1, 101):
        if i % 7:
            store.delete(i, sync=False)
    store.update(7, 4, b"updated", sync=True)
    if stores.can.compacts:
        store.compact()
    store.add(500, 5, b"after", sync=True)
    store.close()

    found = records(stores.reopened()[1])
    assert [record for record, *_ in found] == [7, *range(14, 99, 7), 7, 500]


def test_close_is_final_and_can_be_repeated(store):
    store.add(1, 0, b"x", sync=True)
    store.close()
    store.close()

    with pytest.raises(JournalClosed):
        store.add(2, 0, b"x")


def test_a_store_has_to_be_opened_and_loaded_first(stores):
    store = stores.new()

    with pytest.raises(WrongState):
        store.add(1, 0, b"x")
    with pytest.raises(WrongState):
        store.load()
    store.open()
    with pytest.raises(WrongState):
        store.open()
    with pytest.raises(WrongState):
        store.add(1, 0, b"x")
    store.load()
    with pytest.raises(WrongState):
        store.load()
