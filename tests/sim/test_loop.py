"""The loop keeps what asyncio promises, and leaves the rest to its seed."""

import asyncio
import random
import threading

import pytest

from tests.sim.loop import DeadlockError, LivelockError, SimLoop


@pytest.fixture
def loop():
    made = SimLoop(random.Random(1))
    yield made
    made.close()


def test_an_hour_of_sleep_takes_no_time(loop):
    began = loop.time()

    loop.run_until_complete(asyncio.sleep(3600))

    assert loop.time() - began == pytest.approx(3600, abs=0.01)


def test_callbacks_of_a_process_run_in_the_order_of_their_calls(loop):
    process = loop.process("a")
    seen = []

    def register():
        for number in range(100):
            loop.call_soon(seen.append, number)

    process.call(register)
    loop.run_until_complete(asyncio.sleep(1))

    assert seen == list(range(100))


def test_timers_run_in_the_order_of_their_times(loop):
    seen = []
    for number in (3, 1, 2):
        loop.call_later(number, seen.append, number)
    loop.call_later(2.5, seen.append, "cancelled").cancel()

    loop.run_until_complete(asyncio.sleep(5))

    assert seen == [1, 2, 3]


def order_of_processes(seed):
    loop = SimLoop(random.Random(seed))
    seen = []
    for name in "abcdef":
        loop.process(name).call(loop.call_soon, seen.append, name)
    loop.run_until_complete(asyncio.sleep(1))
    loop.close()
    return "".join(seen), loop.trace_hash


def test_a_seed_decides_which_process_goes_next():
    orders = {order_of_processes(seed)[0] for seed in range(30)}

    assert len(orders) > 20
    assert order_of_processes(7) == order_of_processes(7)
    assert order_of_processes(7)[1] != order_of_processes(8)[1]


def test_a_task_stays_in_its_process(loop):
    async def work():
        inside = [loop.current_process().name]
        await asyncio.sleep(1)
        inside.append(loop.current_process().name)
        inside += await asyncio.gather(*(name() for _ in range(2)))
        return inside

    async def name():
        return loop.current_process().name

    task = loop.process("node").spawn(work())

    assert loop.run_until_complete(task) == ["node"] * 4


def test_a_thread_is_a_step_of_the_loop(loop):
    async def work():
        return await asyncio.gather(
            asyncio.to_thread(threading.get_ident), loop.run_in_executor(None, int, "7")
        )

    assert loop.run_until_complete(work()) == [threading.get_ident(), 7]


def test_what_a_thread_raises_is_raised(loop):
    with pytest.raises(ValueError, match="invalid literal"):
        loop.run_until_complete(loop.run_in_executor(None, int, "x"))


def test_a_paused_process_is_late(loop):
    process = loop.process("node")
    seen = []
    process.call(loop.call_later, 1, lambda: seen.append(loop.time()))
    process.pause()
    began = loop.time()

    loop.run_until_complete(asyncio.sleep(5))
    assert seen == []
    process.go_on()
    loop.run_until_complete(asyncio.sleep(1))

    assert seen[0] - began >= 5


def test_a_killed_process_never_runs_again(loop):
    seen = []

    async def work():
        try:
            await asyncio.sleep(1)
        finally:
            seen.append("end")

    process = loop.process("node")
    task = process.spawn(work())
    loop.run_until_complete(asyncio.sleep(0.5))
    process.kill()
    loop.run_until_complete(asyncio.sleep(5))

    assert seen == []
    assert not task.done()


def test_each_process_has_its_exception_handler(loop):
    told = []

    def begin():
        loop.set_exception_handler(lambda _, context: told.append(context["exception"]))
        loop.call_soon(lambda: 1 / 0)

    loop.process("node").call(begin)
    loop.process("other").call(loop.call_soon, int, "x")
    loop.run_until_complete(asyncio.sleep(1))

    assert [type(error) for error in told] == [ZeroDivisionError]
    assert isinstance(loop.problems[0][1], ValueError)


def test_timeouts_and_locks_of_asyncio_work(loop):
    async def work():
        lock = asyncio.Lock()
        await lock.acquire()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(10):
                await lock.acquire()
        lock.release()
        async with lock, asyncio.TaskGroup() as group:
            return await group.create_task(asyncio.sleep(1, "done"))

    assert loop.run_until_complete(work()) == "done"


def test_what_waits_for_nothing_is_found(loop):
    with pytest.raises(DeadlockError):
        loop.run_until_complete(loop.create_future())


def test_what_never_ends_is_found():
    async def spin():
        while True:  # noqa: ASYNC110 - that is the fault.
            await asyncio.sleep(0)

    loop = SimLoop(random.Random(1), turns_max=1000)
    with pytest.raises(LivelockError):
        loop.run_until_complete(spin())
    loop.close()
