"""A delivery of the engine without Proton's object for it, which costs more than the delivery.

Proton's object has dictionaries for two dispositions. Most deliveries are accepted and settled, for
which a number does: the object is made for those alone that ask for `local` or `remote`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cproton import (
    pn_delivery_aborted,
    pn_delivery_local_state,
    pn_delivery_partial,
    pn_delivery_pending,
    pn_delivery_readable,
    pn_delivery_remote_state,
    pn_delivery_settle,
    pn_delivery_settled,
    pn_delivery_tag,
    pn_delivery_update,
)
from proton import Delivery

from broker.protocols.amqp.wrappers import give_up, keep

if TYPE_CHECKING:
    from proton import Disposition

__all__ = ["EngineDelivery"]


class EngineDelivery:
    """See the module's text; its attributes are those of `proton.Delivery`.

    Args:
        handle: of the engine's own functions.
    """

    __slots__ = ("_handle", "_made_in", "_whole")

    def __init__(self, handle: object) -> None:
        self._made_in = keep(handle)
        self._handle = handle
        self._whole: Delivery | None = None

    def __del__(self) -> None:
        give_up(self._handle, self._made_in)

    @property
    def tag(self) -> str:
        """Its name on its link."""
        tag: str = pn_delivery_tag(self._handle)
        return tag

    @property
    def aborted(self) -> bool:
        """The peer sends no more of it, and it does not count."""
        return bool(pn_delivery_aborted(self._handle))

    @property
    def readable(self) -> bool:
        """Something of it can be received."""
        return bool(pn_delivery_readable(self._handle))

    @property
    def partial(self) -> bool:
        """More of it comes."""
        return bool(pn_delivery_partial(self._handle))

    @property
    def pending(self) -> int:
        """Bytes that can be received."""
        return int(pn_delivery_pending(self._handle))

    @property
    def settled(self) -> bool:
        """The peer has settled it."""
        return bool(pn_delivery_settled(self._handle))

    @property
    def remote_state(self) -> int:
        """What became of it, as the peer says; 0 where it does not."""
        return int(pn_delivery_remote_state(self._handle))

    @property
    def local_state(self) -> int:
        """What this side has said of it, by update(); 0 before."""
        return int(pn_delivery_local_state(self._handle))

    @property
    def local(self) -> Disposition:
        """What update() says of it beside the state."""
        return self._wrapped().local

    @property
    def remote(self) -> Disposition:
        """What the peer says of it beside the state."""
        return self._wrapped().remote

    def _wrapped(self) -> Delivery:
        if self._whole is None:
            self._whole = Delivery(self._handle)
        return self._whole

    def update(self, state: int) -> None:
        """Say what became of it."""
        if self._whole is None:
            pn_delivery_update(self._handle, state)
        else:
            self._whole.update(state)

    def settle(self) -> None:
        """Say that nothing more will be said of it."""
        pn_delivery_settle(self._handle)
