"""One session of a peer, and that of the broker which works for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proton import Link

from broker.protocols.amqp.large_sends import LargeSends

if TYPE_CHECKING:
    from collections.abc import Mapping

    from proton import Session as EngineSession

    from broker.protocols.amqp.links import OurLink
    from broker.protocols.amqp.nodes import Nodes
    from broker.sessions.session import Session

__all__ = ["PeerSession", "end_of"]


class PeerSession:
    """See the module's text.

    Attributes:
        session: of the broker.
        nodes: what names mean in it.
        large: messages that are written to places of their own.
        links: of the engine, with ours.
    """

    __slots__ = (
        "large",
        "links",
        "nodes",
        "session",
    )

    def __init__(self, session: Session, nodes: Nodes) -> None:
        self.session = session
        self.nodes = nodes
        self.large = LargeSends(session)
        self.links: dict[Link, OurLink] = {}


def end_of(
    known: dict[object, OurLink], sessions: Mapping[EngineSession, PeerSession], handle: object
) -> OurLink | None:
    """Give our end of a link; None where we have none.

    Args:
        known: by the engine's handles; what is found is added.
        sessions: of the peer.
        handle: of the link.
    """
    ours = known.get(handle)
    if ours is None:
        link = Link.wrap(handle)
        of = sessions.get(link.session)
        ours = None if of is None else of.links.get(link)
        if ours is not None:
            known[handle] = ours
    return ours
