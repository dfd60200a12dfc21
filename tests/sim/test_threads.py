"""Code with threads runs on the simulation's clock, one at a time, and ends with it."""

import random
import threading

import pytest

from tests.sim.loop import DeadlockError, SimLoop
from tests.sim.threads import Threads


@pytest.fixture
def loop():
    made = SimLoop(random.Random(1))
    Threads(made)
    before = threading.active_count()
    yield made
    made.close()
    assert threading.active_count() == before


def run(loop, process, work):
    return loop.run_until_complete(process.spawn(work))


def test_a_callback_waits_in_its_middle_and_other_processes_go_on(loop):
    here, there = loop.process("here"), loop.process("there")
    event = loop.threads.event()
    seen = []

    async def tell():
        seen.append("there")
        event.set()

    async def wait():
        began = loop.time()
        loop.call_soon(seen.append, "its own process")
        there.context.copy().run(loop.call_later, 5, lambda: there.spawn(tell()))
        assert event.wait(10)
        seen.append("here")
        return loop.time() - began

    assert run(loop, here, wait()) == pytest.approx(5, abs=0.01)
    assert seen == ["there", "here"]


def test_a_wait_has_an_end(loop):
    async def wait():
        began = loop.time()
        assert not loop.threads.event().wait(3)
        return loop.time() - began

    assert run(loop, loop.process("here"), wait()) == pytest.approx(3, abs=0.01)


def test_a_thread_waits_beside_its_process(loop):
    seen = []

    async def work():
        def renew():
            for _ in range(3):
                loop.threads.sleep(1)
                seen.append("renewed")

        thread = loop.threads.start_thread(renew, "renewer")
        loop.call_later(1.5, seen.append, "timer")
        await loop.run_in_executor(None, thread.join)

    run(loop, loop.process("here"), work())

    assert seen == ["renewed", "timer", "renewed", "renewed"]


def test_one_at_a_time_is_in_a_lock(loop):
    lock = loop.threads.lock()
    seen = []

    async def work():
        def use(name):
            with lock:
                seen.append(name)
                loop.threads.sleep(1)
                seen.append(name)

        threads = [loop.threads.start_thread(lambda n=n: use(n), "") for n in range(3)]
        for one in threads:
            await loop.run_in_executor(None, one.join)

    run(loop, loop.process("here"), work())

    assert seen == [0, 0, 1, 1, 2, 2]


def test_what_waits_in_a_paused_process_goes_on_with_it(loop):
    here = loop.process("here")
    loop.call_later(1, here.pause)
    loop.call_later(9, here.go_on)

    async def wait():
        began = loop.time()
        loop.threads.sleep(2)
        return loop.time() - began

    assert run(loop, here, wait()) == pytest.approx(9, abs=0.01)


def test_what_waits_in_a_killed_process_never_goes_on(loop):
    here, there = loop.process("here"), loop.process("there")
    seen = []

    async def wait():
        try:
            loop.threads.sleep(2)
        finally:
            seen.append("ended")

    async def kill():
        here.spawn(wait())
        loop.threads.sleep(1)
        here.kill()
        loop.threads.sleep(5)
        return list(seen)

    assert run(loop, there, kill()) == []
    loop.close()
    assert seen == ["ended"]


def test_an_error_comes_out_of_a_wait(loop):
    async def work():
        def fail():
            loop.threads.sleep(1)
            raise ValueError("it failed")

        await loop.run_in_executor(None, fail)

    with pytest.raises(ValueError, match="it failed"):
        run(loop, loop.process("here"), work())


def test_a_wait_without_an_end_is_a_deadlock(loop):
    async def wait():
        loop.threads.event().wait()

    with pytest.raises(DeadlockError):
        run(loop, loop.process("here"), wait())
