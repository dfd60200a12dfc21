"""What a session of the Core client gives a bridge: several messages at once, also large ones."""

import asyncio

import pytest

from broker.bridges.jms.providers import Credentials, Destination, SessionKind
from tests.broker.bridges.jms.ends import WAIT_S, an_end

LARGE, SMALL = bytes(150_000), b"small"


@pytest.fixture
def source(tmp_path):
    with an_end(tmp_path) as end:
        end.create("q")
        yield end


async def received(source, kind, count_max):
    """What is given at once of a queue, once the client has all of it."""
    connection = await source.tcp().connect(Credentials())
    try:
        session = await connection.session(kind)
        receiver = await session.receiver(Destination.queue("q"), None, None)
        async with asyncio.timeout(WAIT_S):
            while receiver._consumer._state.buffered < source_count(source):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        found = await receiver.receive_many(count_max, 1)
        for message in found:
            message.close()
        return found, receiver
    finally:
        await connection.close()


def source_count(source):
    return len(source.sent)


def give(source, *bodies):
    source.sent = bodies
    source.send("q", *bodies)


def test_a_transaction_gives_all_that_it_has_acknowledged(source):
    """Else a batch that is due before the body of a large one is read would lose the rest."""
    give(source, LARGE, SMALL, LARGE, SMALL)

    found, _ = asyncio.run(received(source, SessionKind.TRANSACTED, 3))

    assert [one.size > len(LARGE) for one in found] == [True, False, True]


def test_a_session_that_acknowledges_later_reads_one_large_body_at_a_time(source):
    give(source, SMALL, LARGE, LARGE, SMALL)

    found, receiver = asyncio.run(received(source, SessionKind.CLIENT, 4))

    assert [one.size > len(LARGE) for one in found] == [False, True]
    assert len(receiver._waiting) == 2
