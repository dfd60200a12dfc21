"""What the broker writes into a message that a client sends: its user, the time it came.

    populate-validated-user        _AMQ_VALIDATED_USER, the user who was authenticated
    reject-empty-validated-user    a message without that property is refused
    enable-ingress-timestamp       _AMQ_INGRESS_TIMESTAMP, ms since 1970 (of an address)

Threads: the event loop's alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.errors import BrokerError, ErrorCode
from broker.model.properties import PropertyType

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.model.message import Message
    from broker.settings.settings import AddressSettings

__all__ = ["INGRESS_TIMESTAMP", "VALIDATED_USER", "SendMarks"]

VALIDATED_USER: Final = "_AMQ_VALIDATED_USER"
INGRESS_TIMESTAMP: Final = "_AMQ_INGRESS_TIMESTAMP"


class SendMarks:
    """See the module's text.

    Args:
        populates_user: populate-validated-user.
        requires_user: reject-empty-validated-user.
    """

    def __init__(self, *, populates_user: bool = False, requires_user: bool = False) -> None:
        self._populates_user = populates_user
        self._requires_user = requires_user

    def are_put(self, settings: AddressSettings) -> bool:
        """Whether put() has anything to do for an address with these settings."""
        return self._populates_user or self._requires_user or settings.enable_ingress_timestamp

    def put(
        self,
        message: Message,
        user: str | None,
        settings: AddressSettings,
        clock_ms: Callable[[], int],
    ) -> None:
        """Mark a message.

        Args:
            message: as it was sent.
            user: who was authenticated; None is anonymous.
            settings: of its address.
            clock_ms: wall clock.

        Raises:
            BrokerError: it names no user, and has to.
        """
        if self._populates_user and user is not None:
            message.set(VALIDATED_USER, PropertyType.STRING, user)
        if self._requires_user and message.get(VALIDATED_USER) is None:
            raise BrokerError(ErrorCode.ILLEGAL_STATE, "AMQ229225: Validated User is not set")
        if settings.enable_ingress_timestamp:
            message.set(INGRESS_TIMESTAMP, PropertyType.LONG, clock_ms())
