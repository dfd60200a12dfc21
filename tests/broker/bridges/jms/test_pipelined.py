"""Batches that leave before those before them are confirmed: order of their steps, limit."""

import asyncio

import pytest

from broker.bridges.jms.in_flight import InFlight
from broker.bridges.jms.message import BodyKind, JMSMessage
from broker.bridges.jms.pipelined import PipelinedAcknowledgeLast, PipelinedSendLast


class Ends:
    """A receiver and a sender that answer when the test says so, and what they were asked."""

    def __init__(self):
        self.asked = []
        self.unconfirmed = []
        self.acknowledging = []

    async def acknowledge_until(self, message):
        self.asked.append(f"acknowledge {message.body}")
        answer = asyncio.get_running_loop().create_future()
        self.acknowledging.append(answer)
        await answer

    def send_batch(self, messages, done):
        self.asked.append("send " + " ".join(one.body for one in messages))
        self.unconfirmed.append(done)


class Moving:
    """Batches of one transfer, and what became of each."""

    def __init__(self, transfer):
        self.transfer = transfer
        self.outcomes = []

    async def move(self, *texts):
        await self.transfer.move(
            [JMSMessage(BodyKind.TEXT, text, position=text.encode()) for text in texts],
            lambda error: self.outcomes.append((texts[0], error)),
        )
        await turn()


async def turn():
    for _ in range(3):
        await asyncio.sleep(0)


def run(scenario):
    asyncio.run(scenario())


def test_a_batch_is_sent_before_the_one_before_it_is_confirmed():
    async def scenario():
        ends = Ends()
        moving = Moving(PipelinedAcknowledgeLast(None, ends, ends, None))

        await moving.move("a", "b")
        await moving.move("c")

        assert ends.asked == ["send a b", "send c"]
        assert moving.outcomes == []

    run(scenario)


def test_a_batch_is_acknowledged_once_it_is_confirmed_and_several_at_once():
    async def scenario():
        ends = Ends()
        moving = Moving(PipelinedAcknowledgeLast(None, ends, ends, None))
        for text in "abc":
            await moving.move(text)

        ends.unconfirmed[0](None)
        await turn()
        ends.unconfirmed[1](None)
        ends.unconfirmed[2](None)
        await turn()
        asked_first = ends.asked[3:]
        ends.acknowledging[0].set_result(None)
        await turn()

        assert asked_first == ["acknowledge a"]
        assert ends.asked[4:] == ["acknowledge c"]
        assert moving.outcomes == [("a", None)]
        ends.acknowledging[1].set_result(None)
        await turn()
        assert moving.outcomes == [("a", None), ("b", None), ("c", None)]

    run(scenario)


def test_nothing_is_acknowledged_behind_a_batch_that_failed():
    async def scenario():
        ends = Ends()
        moving = Moving(PipelinedAcknowledgeLast(None, ends, ends, None))
        for text in "ab":
            await moving.move(text)
        error = OSError("refused")

        for done in ends.unconfirmed:
            done(error)
        await turn()

        assert ends.asked == ["send a", "send b"]
        assert moving.outcomes == [("a", error), ("b", error)]

    run(scenario)


def test_nothing_is_sent_before_its_acknowledgement_counts():
    async def scenario():
        ends = Ends()
        moving = Moving(PipelinedSendLast(None, ends, ends))
        for text in "abc":
            await moving.move(text)
        asked_first = list(ends.asked)

        ends.acknowledging[0].set_result(None)
        await turn()

        assert asked_first == ["acknowledge a"]
        assert ends.asked[1:] == ["send a", "acknowledge c"]
        assert moving.outcomes == []
        ends.unconfirmed[0](None)
        assert moving.outcomes == [("a", None)]
        moving.transfer.close()

    run(scenario)


@pytest.mark.parametrize("kind", [PipelinedAcknowledgeLast, PipelinedSendLast])
def test_what_fails_at_the_source_fails_the_batch(kind):
    async def scenario():
        ends = Ends()
        rest = (None,) if kind is PipelinedAcknowledgeLast else ()
        moving = Moving(kind(None, ends, ends, *rest))
        error = OSError("lost")
        await moving.move("a")
        for done in ends.unconfirmed:
            done(None)
        await turn()

        ends.acknowledging[0].set_exception(error)
        await turn()
        await moving.move("b")

        assert moving.outcomes == [("a", error)]
        assert "acknowledge b" not in ends.asked

    run(scenario)


def test_batches_get_ids_where_the_target_drops_what_it_has():
    async def scenario():
        ends = Ends()
        sent = []
        ends.send_batch = lambda messages, done: sent.extend(messages)
        moving = Moving(PipelinedAcknowledgeLast(None, ends, ends, "node"))

        await moving.move("a", "b")

        assert len({one.duplicate_id for one in sent}) == 2

    run(scenario)


# --- how many are on their way --------------------------------------------------------------------


def messages(count, size=1):
    return [JMSMessage(BodyKind.TEXT, "m", size=size) for _ in range(count)]


@pytest.mark.parametrize(("count_max", "size_max"), [(5, 1000), (1000, 5)])
def test_a_batch_waits_for_room_and_a_large_one_leaves_alone(count_max, size_max):
    async def scenario():
        in_flight = InFlight(count_max, size_max)
        first = in_flight.add(messages(10), 0.0)
        await in_flight.wait_for_room()
        in_flight.add(messages(2), 1.0)
        waiting = asyncio.ensure_future(in_flight.wait_for_room())
        await turn()
        assert not waiting.done()

        in_flight.arrived(first, 2.0)
        await waiting

        # Waited for since the one before it arrived, not since it left.
        assert in_flight.since_s == 2.0

    run(scenario)


def test_whoever_waits_hears_of_a_failure():
    async def scenario():
        in_flight = InFlight(1)
        in_flight.add(messages(1), 0.0)
        in_flight.add(messages(1), 0.0)
        waiting = [
            asyncio.ensure_future(one())
            for one in (in_flight.wait_for_room, in_flight.wait_until_empty)
        ]
        await turn()

        in_flight.failed(OSError("first"))
        in_flight.failed(OSError("second"))

        for one in await asyncio.gather(*waiting, return_exceptions=True):
            assert str(one) == "first"
        assert in_flight.abort() == 2
        assert in_flight.since_s is None

    run(scenario)
