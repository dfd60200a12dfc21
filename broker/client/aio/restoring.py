"""A session on a new connection: taken up again, or begun anew where the broker has it no longer.

Its queues and consumers are then asked for again, and each is answered, so that none is missing
without anybody knowing: a consumer that cannot be had again is closed, and its application told.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from broker.client.aio.creating import create_again
from broker.client.aio.waiting import settled
from broker.client.errors import BrokerRefused, QueueExists, QueueMissing, interrupted
from broker.protocols.core.packet_connection import NullResponse, ReattachSessionResponse
from broker.protocols.core.packet_queue import QueueQueryResponse

if TYPE_CHECKING:
    from broker.client.deliveries import ConsumerState
    from broker.client.link import Link
    from broker.client.session_state import SessionState

# A broker deletes the temporary queues of the old connection when it sees its end, which may be
# behind their second creation: then they must be created once more.
_ATTEMPTS: Final = 5
_RETRY_S: Final = 0.05


async def take_up(link: Link, state: SessionState) -> None:
    """Have a session go on at a broker, as it was or anew.

    Args:
        link: to the broker.
        state: of the session.

    Raises:
        ClientError: the connection is lost once more, or the broker does not make the session.
    """
    link.listen(state.channel)
    if not await _resume(link, state):
        state.new_name()
        await create_again(link, state, state.options.call_timeout_s)
        state.begin_anew(link)
        await _restore(state)


async def _resume(link: Link, state: SessionState) -> bool:
    """Ask the broker for a session as it was; whether it has it."""
    if not state.channel.is_resumable:
        # The connection was lost while it was restored: something of it is missing there.
        return False
    reply = link.reattach_session(state.name, state.channel.last_confirmed)
    timeout_s = state.options.call_timeout_s
    answer = await settled(reply, timeout_s, "the reattachment of a session")
    assert isinstance(answer, ReattachSessionResponse)
    if not answer.reattached:
        return False
    link.open_channel(state.channel)
    if timeout_s is not None:
        # Answers from before come soon, or not at all.
        give_up, last = state.channel.give_up_until, state.channel.last_correlation
        asyncio.get_running_loop().call_later(timeout_s, give_up, last, interrupted())
    state.channel.reattach(link, answer.last_confirmed_command_id)
    return True


async def _restore(state: SessionState) -> None:
    """Create queues and consumers again, and start."""
    for name in state.own_queues:
        await _create_queue(state, name)
    for consumer in state.consumers:
        # One whose creation was interrupted is its application's to create again.
        if consumer.is_open:
            await _create_consumer(state, consumer)
    state.restored()


async def _create_queue(state: SessionState, name: str) -> None:
    request = state.own_queues[name]
    try:
        reply = state.channel.call(request, NullResponse)
        await settled(reply, state.options.call_timeout_s, f"queue {name!r}")
    except QueueExists:
        pass
    except BrokerRefused as error:
        state.on_error(error)


async def _create_consumer(state: SessionState, consumer: ConsumerState) -> None:
    queue = consumer.request.queue
    refusal: BrokerRefused | None = None
    for attempt in range(_ATTEMPTS):
        if attempt:
            await asyncio.sleep(_RETRY_S)
        try:
            reply = state.channel.call(consumer.request, QueueQueryResponse)
            await settled(reply, state.options.call_timeout_s, f"a consumer of {queue!r}")
        except QueueMissing as error:
            refusal = error
            if queue not in state.own_queues:
                break
            await _create_queue(state, queue)
        except BrokerRefused as error:
            refusal = error
            break
        else:
            consumer.open()
            return
    state.remove_consumer(consumer)
    consumer.close(refusal)
