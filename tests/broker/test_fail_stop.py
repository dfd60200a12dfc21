"""A fault of the broker's own code ends it: exit status 1, and no success is sent after it."""

import asyncio
import os
import signal

import pytest

from broker.cli.serving import EXIT_FAILED, EXIT_OK, serve
from broker.routing.dead_letters import DeadLetters
from broker.storage.context import Completions
from journal.errors import JournalClosed
from tests.broker.bench import Sink, message, one_becomes_durable
from tests.broker.test_recovery import BrokerRun


class Fault(Exception):
    """What a bug raises."""


def fail(error, *arguments):
    raise Fault


def test_a_callback_that_raises_fails_all_behind_it(caplog):
    failures, told = [], []
    completions = Completions(failures.append)
    completions.messages.appended = 1
    completions.after(lambda error: told.append(error))
    completions.after(fail)
    completions.after(lambda error: told.append(error))

    one_becomes_durable(completions)
    completions.after(lambda error: told.append(error))

    assert [type(one) for one in failures] == [Fault]
    assert told == [None, failures[0], failures[0]]
    assert completions.failure is failures[0]
    assert "a callback of the storage failed" in caplog.text


def test_one_that_finds_the_store_ended_fails_it_without_a_traceback(caplog):
    failures = []
    completions = Completions(failures.append)
    completions.messages.appended = 1

    def append(error):
        raise JournalClosed("the store ended")

    completions.after(append)
    one_becomes_durable(completions)

    assert [str(one) for one in failures] == ["the store ended"]
    assert [one.exc_info for one in caplog.records] == [None]
    assert "a callback of the storage failed" in caplog.text


def test_one_that_raises_behind_a_failure_delays_no_other():
    failures, told = [], []
    completions = Completions(failures.append)
    completions.messages.appended = 1
    completions.after(fail)
    completions.after(lambda error: told.append(error))
    failure = OSError()

    completions.fail(failure)

    assert (failures, told) == ([failure], [failure])


class FaultyCost:
    """What raises where the consumer counts with it."""

    def __index__(self):
        raise Fault


class FaultySink(Sink):
    """Writes, and breaks what the queue does behind it: a sink that raises ends its consumer."""

    def deliver(self, consumer, message, delivery_count):
        return FaultyCost()


async def end_of(folder, work):
    """Serve, and do something once it serves; the exit status."""
    run = BrokerRun(folder)
    async with asyncio.timeout(60):
        return await serve(
            run.broker, on_start=lambda _: asyncio.get_running_loop().call_soon(work, run)
        )


@pytest.mark.parametrize("where", ["callback", "turn", "timer"])
def test_the_broker_ends_with_status_1_and_loses_nothing(tmp_path, where, caplog):
    answers = []

    async def prepare():
        async with BrokerRun(tmp_path) as run:
            await run.queue()
            if where != "callback":
                await run.send(message("kept"))

    def work(run):
        queue = run.broker.parts.postoffice.addresses.queues["q"]
        queue.pause()
        session = run.session()
        session.create_consumer(0, "q", FaultySink()).receive_credits(1_000)
        session.start()
        if where == "callback":
            session.send(message("kept"), fail)
            session.context.after(lambda error: answers.append(type(error)))
        elif where == "turn":
            asyncio.get_running_loop().call_soon(queue.resume)
        else:
            asyncio.get_running_loop().call_later(0.001, queue.resume)

    async def look():
        async with BrokerRun(tmp_path) as run:
            return run.bodies()

    asyncio.run(prepare())
    assert asyncio.run(end_of(tmp_path, work)) == EXIT_FAILED
    assert "it stops: Fault()" in caplog.text
    # No client was told of a success, and what was recorded is there.
    assert answers == ([Fault] if where == "callback" else [])
    assert asyncio.run(look()) == ["kept"]


def test_what_others_put_into_the_loop_ends_nothing(tmp_path, caplog):
    def work(run):
        loop = asyncio.get_running_loop()
        loop.call_soon(fail, None)
        loop.call_later(0.01, os.kill, os.getpid(), signal.SIGTERM)

    assert asyncio.run(end_of(tmp_path, work)) == EXIT_OK
    assert "Fault" in caplog.text


@pytest.mark.parametrize("has_failed", [True, False])
def test_only_a_client_that_is_there_is_told_that_the_storage_has_failed(
    tmp_path, monkeypatch, has_failed
):
    """What it had comes back, which is recorded: the end of a lost connection raised."""

    def closed(*arguments, **how):
        raise JournalClosed("the store has failed")

    async def main():
        async with BrokerRun(tmp_path) as run:
            await run.queue()
            await run.send(message("kept"))
            session = run.consume().session
            with monkeypatch.context() as patched:
                patched.setattr(DeadLetters, "is_redelivered", closed)
                if has_failed:
                    run.broker.clients.close_session(session, has_failed=True)
                else:
                    with pytest.raises(JournalClosed):
                        run.broker.clients.close_session(session, has_failed=False)
            assert session.name not in run.broker.clients.sessions

    asyncio.run(main())
