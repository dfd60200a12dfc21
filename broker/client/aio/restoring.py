"""A session begun anew at a broker that no longer had it: its queues and consumers again.

Each is asked for and answered, so that none is missing without anybody knowing: a consumer that
cannot be had again is closed, and its application told.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from broker.client.aio.waiting import settled
from broker.client.errors import BrokerRefused, QueueExists, QueueMissing
from broker.protocols.core.packet_connection import NullResponse
from broker.protocols.core.packet_queue import QueueQueryResponse

if TYPE_CHECKING:
    from broker.client.deliveries import ConsumerState
    from broker.client.session_state import SessionState

# A broker deletes the temporary queues of the old connection when it sees its end, which may be
# behind their second creation: then they must be created once more.
_ATTEMPTS: Final = 5
_RETRY_S: Final = 0.05


async def restore(state: SessionState) -> None:
    """Create queues and consumers again, and start.

    Raises:
        ClientError: the connection is lost once more.
    """
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
