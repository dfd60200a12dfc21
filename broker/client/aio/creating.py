"""A session created at a broker, in the newest version of the protocol that it takes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from broker.client.aio.waiting import settled
from broker.client.errors import BrokerRefused, NotConnected
from broker.errors import ErrorCode
from broker.protocols.core import versions
from broker.protocols.core.packet_connection import CreateSessionResponse

if TYPE_CHECKING:
    from broker.client.link import Link
    from broker.client.session_state import SessionState

# A broker that is starting rejects sessions; a reconnect asks again after so long, as in Artemis.
_REJECTED_RETRY_S: Final = 0.01


async def create(link: Link, state: SessionState, timeout_s: float | None) -> None:
    """Create a session.

    Args:
        link: to the broker; the channel is open there.
        state: of the session.
        timeout_s: seconds that an answer may take; None for ever.

    Raises:
        BrokerRefused: the broker does not make it.
        NotConnected: the connection is lost, or no version is spoken on both sides.
    """
    for version in versions.CLIENT_VERSIONS:
        reply = link.create_session(state.create_request(version))
        try:
            answer = await settled(reply, timeout_s, "a session")
        except BrokerRefused as error:
            if error.code == ErrorCode.INCOMPATIBLE_CLIENT_SERVER_VERSIONS:
                continue
            raise
        assert isinstance(answer, CreateSessionResponse)
        link.session_created(answer)
        return
    raise NotConnected("the broker takes no version of the protocol that is spoken here")


async def create_again(link: Link, state: SessionState, timeout_s: float | None) -> None:
    """Create a lost session anew; a broker that is still starting is asked for `timeout_s`.

    Args:
        link: as for `create`.
        state: as for `create`.
        timeout_s: as for `create`, and for all attempts together.

    Raises:
        BrokerRefused: the broker does not make it.
        NotConnected: the connection is lost.
    """
    loop = asyncio.get_running_loop()
    deadline = None if timeout_s is None else loop.time() + timeout_s
    while True:
        try:
            await create(link, state, timeout_s)
        except BrokerRefused as error:
            if error.code != ErrorCode.SESSION_CREATION_REJECTED:
                raise
            if deadline is not None and loop.time() >= deadline:
                raise
            await asyncio.sleep(_REJECTED_RETRY_S)
        else:
            return
