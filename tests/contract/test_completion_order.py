"""Completions come in append order, from reap() or the event loop, and from nowhere else."""

import asyncio
import time

import pytest

from journal.errors import RecordTooLarge, TransactionFailed, WrongUse

WAIT_S = 30


def fail_in(store, tx):
    """Have the only operation of a transaction refused, so that nothing of it is written."""
    with pytest.raises(RecordTooLarge):
        store.add(900, 1, bytes(store.record_size_max), tx=tx)


def rollback_of_nothing(store, done):
    fail_in(store, 50)
    return store.rollback(50, sync=True, done=done)


# Operations that have nothing to write.
UNWRITTEN = {
    "rollback of a failed transaction": rollback_of_nothing,
    "update of a missing id": lambda store, done: store.try_update(
        77, 1, b"x", sync=True, done=done
    ),
    "delete of a missing id": lambda store, done: store.try_delete(77, sync=True, done=done),
    "adding none": lambda store, done: store.add_many([], 1, [], sync=True, done=done),
}


def reaped(store, called, count):
    deadline = time.monotonic() + WAIT_S
    while len(called) < count and time.monotonic() < deadline:
        store.reap()
        time.sleep(0.001)
    return called


@pytest.mark.parametrize("operation", UNWRITTEN.values(), ids=UNWRITTEN)
def test_what_had_nothing_to_write_is_told_in_its_turn(stores, operation):
    store = stores.patient(3600)
    called = []
    store.add(
        1, 1, b"x", sync=True, flush_now=False, done=lambda error: called.append(("add", error))
    )

    operation(store, lambda error: called.append(("nothing", error)))

    assert called == []
    assert reaped(store, called, 2) == [("add", None), ("nothing", None)]


@pytest.mark.parametrize("operation", UNWRITTEN.values(), ids=UNWRITTEN)
def test_nothing_is_told_by_the_call_itself(store, operation):
    called = []

    operation(store, called.append)

    assert called == []
    assert reaped(store, called, 1) == [None]


@pytest.mark.parametrize("operation", UNWRITTEN.values(), ids=UNWRITTEN)
def test_an_event_loop_tells_what_had_nothing_to_write(store, operation):
    async def main():
        loop = asyncio.get_running_loop()
        store.attach_loop(loop)
        for _ in range(3):
            told = loop.create_future()
            operation(store, told.set_result)
            await asyncio.wait_for(told, WAIT_S)
        store.detach_loop()

    store.add(1, 1, b"x", sync=True)

    asyncio.run(main())


@pytest.mark.parametrize("operation", UNWRITTEN.values(), ids=UNWRITTEN)
def test_to_wait_for_what_had_nothing_to_write_ends(store, operation):
    called = []

    ticket = operation(store, called.append)

    if ticket is not None:
        store.wait(ticket)
    store.close()
    assert called == [None]


def test_tickets_never_fall(store):
    tickets = []

    for tx in range(50, 60):
        tickets.append(store.add(tx, 1, b"x", tx=tx))
        tickets.append(store.rollback(tx, wait=False))
        fail_in(store, tx)
        tickets.append(store.rollback(tx, wait=False))
        tickets.append(store.add(tx, 1, b"x", sync=tx % 2 == 0))

    assert tickets == sorted(tickets)
    store.wait(tickets[-1])


def test_an_operation_of_an_open_transaction_is_told_and_can_be_waited_for(store):
    called = []

    store.wait(store.add(1, 1, b"x", tx=50, done=called.append))

    assert reaped(store, called, 1) == [None]


def test_awaitables_and_callbacks_share_one_order(store):
    told = []

    async def main():
        loop = asyncio.get_running_loop()
        waiting = []
        for number in range(0, 40, 2):
            done = loop.create_future()
            store.add(
                100 + number,
                1,
                b"x",
                sync=True,
                done=lambda _, number=number, done=done: (told.append(number), done.set_result(0)),
            )
            awaited = store.add_durable(101 + number, 1, b"x")
            awaited.add_done_callback(lambda _, number=number: told.append(number + 1))
            waiting += [done, awaited]
        await asyncio.wait_for(asyncio.gather(*waiting), WAIT_S)

    asyncio.run(main())

    assert told == list(range(40))


def test_a_loop_is_told_once_behind_all_that_one_reap_tells(store):
    told = []

    async def main():
        store.attach_loop(asyncio.get_running_loop(), lambda: told.append("after"))
        last = 0
        for number in range(5):
            last = store.add(
                100 + number, 1, b"x", sync=True, done=lambda _, number=number: told.append(number)
            )
        store.wait(last)
        store.reap()
        store.reap()
        store.attach_loop(asyncio.get_running_loop())
        store.wait(store.add(200, 1, b"x", sync=True, done=lambda _: told.append("alone")))
        store.reap()
        store.detach_loop()

    asyncio.run(main())

    assert told == [0, 1, 2, 3, 4, "after", "alone", "after"]


def test_a_loop_is_told_behind_a_done_that_raised_too(store):
    told = []

    def fail(error):
        raise ZeroDivisionError

    async def main():
        store.attach_loop(asyncio.get_running_loop(), lambda: told.append("after"))
        store.add(100, 1, b"x", sync=True, done=lambda _: told.append("done"))
        store.wait(store.add(101, 1, b"x", sync=True, done=fail))
        with pytest.raises(ZeroDivisionError):
            store.reap()
        store.detach_loop()

    asyncio.run(main())

    assert told == ["done", "after"]


def test_an_awaitable_of_a_durable_ticket_ends_behind_what_is_not_told_yet(store):
    told = []

    async def main():
        first = store.add(1, 1, b"x", sync=True, done=lambda _: told.append(1))
        store.wait(first)
        second = store.add(2, 1, b"x", sync=True, done=lambda _: told.append(2))
        store.wait(second)
        awaited = store.durable(first)
        awaited.add_done_callback(lambda _: told.append("first"))
        await asyncio.wait_for(store.durable(second), WAIT_S)
        told.append("second")

    asyncio.run(main())

    assert told == [1, "first", 2, "second"]


def test_an_awaitable_of_an_old_ticket_does_not_wait_for_a_newer_one(stores):
    store = stores.patient(3600)

    async def main():
        first = store.add(1, 1, b"x", sync=True, wait=False, flush_now=False)
        last = first
        while last == first:  # Until a batch of its own.
            last = store.add(1 + len(store), 1, bytes(4000), sync=True, wait=False, flush_now=False)
        newer, older = store.durable(last), store.durable(first)
        await asyncio.wait_for(older, WAIT_S)
        await asyncio.wait_for(newer, WAIT_S)

    asyncio.run(main())


def test_what_a_callback_registers_waits_for_the_next_turn(store):
    """A callback that asks again, each time for nothing, does not block the event loop."""
    called = []

    def again(error):
        called.append(error)
        if len(called) < 3:
            store.try_delete(77, sync=True, done=again)

    store.try_delete(77, sync=True, done=again)

    assert [store.reap() for _ in range(4)] == [1, 1, 1, 0]
    assert called == [None] * 3


# --- transaction 0 -----------------------------------------------------------------------------


def test_begin_gives_no_zero(stores, store):
    given = [store.begin() for _ in range(3)]

    assert given == [1, 2, 3]


def test_begin_gives_no_transaction_that_is_open(store):
    store.add(1, 1, b"x", tx=2)
    fail_in(store, 3)

    assert [store.begin(), store.begin()] == [1, 4]


def test_a_failed_transaction_0_refuses_no_plain_append(stores, store):
    fail_in(store, 0)

    store.add(1, 1, b"plain", sync=True)
    store.update(1, 1, b"plain", sync=True)
    with pytest.raises(TransactionFailed):
        store.add(2, 1, b"x", tx=0)
    with pytest.raises(TransactionFailed):
        store.add_many([2], 1, [b"x"], tx=0)
    store.rollback(0)
    store.add(2, 1, b"in it", tx=0)
    store.commit(0, sync=True)
    store.close()

    assert [record[0] for record in stores.reopened()[1][0]] == [1, 1, 2]


def test_a_batch_that_is_refused_fails_its_transaction(store):
    store.add(1, 1, b"x", tx=50)
    with pytest.raises(RecordTooLarge):
        store.add_many([2], 1, [bytes(store.record_size_max)], tx=50)

    with pytest.raises(TransactionFailed):
        store.commit(50)


def test_transaction_0_survives_as_prepared_beside_plain_records(stores, store):
    store.add(1, 1, b"plain", sync=True)
    store.add(2, 1, b"in it", tx=0)
    store.prepare(0, b"extra", sync=True)
    store.close()

    second, view = stores.reopened()
    second.commit(0, sync=True)
    second.close()

    assert view[1] == ((0, b"extra", ((2, False, 1, b"in it"),), ()),)
    assert [record[0] for record in stores.reopened()[1][0]] == [1, 2]


# --- tickets -----------------------------------------------------------------------------------


@pytest.mark.parametrize("beyond", [1, 1000, 2**62])
def test_a_ticket_that_was_never_given_is_refused(store, beyond):
    last = store.add(1, 1, b"x", sync=True)

    with pytest.raises(WrongUse, match="was not given"):
        store.wait(last + beyond)
    with pytest.raises(WrongUse, match="was not given"):
        store.durable(last + beyond)


def test_durable_asks_for_the_sync_itself(stores):
    store = stores.patient(3600)

    async def main():
        await asyncio.wait_for(store.durable(store.add(1, 1, b"x", sync=False)), WAIT_S)

    asyncio.run(main())


def test_a_waiter_that_gave_up_delays_no_other(store):
    async def main():
        given_up = [store.add_durable(number, 1, b"x") for number in range(1, 11)]
        # On a fast disk some are durable before the call is back.
        pending = [awaitable for awaitable in given_up if awaitable.cancel()]
        await asyncio.wait_for(store.add_durable(11, 1, b"x"), WAIT_S)
        assert all(awaitable.cancelled() for awaitable in pending)
        assert all(awaitable.done() for awaitable in given_up)

    asyncio.run(main())
