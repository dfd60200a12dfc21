"""How long messages to an address live: no-expiry, expiry-delay, min- and max-expiry-delay."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.model.message import Message
    from broker.settings.settings import AddressSettings

__all__ = ["limit_lifetime", "limits_lifetime"]


def limits_lifetime(settings: AddressSettings) -> bool:
    """Whether the settings of an address change how long its messages live."""
    return (
        settings.no_expiry
        or settings.expiry_delay_ms >= 0
        or settings.min_expiry_delay_ms >= 0
        or settings.max_expiry_delay_ms >= 0
    )


def limit_lifetime(
    message: Message, settings: AddressSettings, clock_ms: Callable[[], int]
) -> None:
    """Change when a message expires as the settings of its address say.

    Args:
        message: on its way to the address.
        settings: of the address.
        clock_ms: wall clock, ms since 1970.
    """
    if not limits_lifetime(settings):
        return
    if settings.no_expiry:
        if message.expiration:
            message.expiration = 0
        return
    delay, least, most = (
        settings.expiry_delay_ms,
        settings.min_expiry_delay_ms,
        settings.max_expiry_delay_ms,
    )
    now_ms = clock_ms()
    expiration = message.expiration
    if delay >= 0:
        if expiration == 0:
            message.expiration = now_ms + delay
    elif expiration == 0:
        message.expiration = now_ms + (most if most >= 0 else least)
    elif 0 <= most < expiration - now_ms:
        message.expiration = now_ms + most
    elif least >= 0 and expiration - now_ms < least:
        message.expiration = now_ms + least
