"""One session of a peer, and that of the broker which works for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.protocols.amqp.large_sends import LargeSends

if TYPE_CHECKING:
    from proton import Link

    from broker.protocols.amqp.links import OurLink
    from broker.protocols.amqp.nodes import Nodes
    from broker.sessions.session import Session

__all__ = ["PeerSession"]


class PeerSession:
    """See the module's text.

    Attributes:
        session: of the broker.
        nodes: what names mean in it.
        large: messages that are written to places of their own.
        links: of the engine, with ours.
    """

    def __init__(self, session: Session, nodes: Nodes) -> None:
        self.session = session
        self.nodes = nodes
        self.large = LargeSends(session)
        self.links: dict[Link, OurLink] = {}
