"""What a peer says of a link's source and target, read from the engine as plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from proton import Array, Described, Terminus, symbol, ulong

from broker.protocols.amqp.conditions import INVALID_FIELD, AmqpError
from broker.selector.jms import translate_jms

if TYPE_CHECKING:
    from collections.abc import Iterable

    from proton import Data

__all__ = ["Filters", "ends_with_link", "expiry", "read_filters", "symbols", "value_of"]

_SELECTOR: Final = "apache.org:selector-filter:string"
_SELECTOR_CODE: Final = 0x0000468C00000004
_NO_LOCAL: Final = "apache.org:no-local-filter:list"
_NO_LOCAL_CODE: Final = 0x0000468C00000003
_PREFIX: Final = "m."


def value_of(data: Data) -> Any:  # noqa: ANN401 - a peer's.
    """Give what data of the engine hold; None where they hold nothing."""
    data.rewind()
    return None if data.next() is None else data.get_object()


def symbols(found: object) -> list[str]:
    """Give the names in a value that is one symbol, or several in an array."""
    if found is None:
        return []
    if isinstance(found, str):
        return [str(found)]
    many: Iterable[object] = found.elements if isinstance(found, Array) else ()
    if isinstance(found, list | tuple) and not isinstance(found, Array):
        many = found
    return [str(one) for one in many if isinstance(one, str)]


def expiry(terminus: Terminus) -> int:
    """Give a terminus' expiry policy; that of the standard where it says none."""
    return int(terminus.expiry_policy)


def ends_with_link(terminus: Terminus) -> bool:
    """Whether what the terminus made goes with the link, or the session."""
    return expiry(terminus) in (Terminus.EXPIRE_WITH_LINK, Terminus.EXPIRE_WITH_SESSION)


class Filters(NamedTuple):
    """Of a source.

    Attributes:
        selector: in the broker's names; None without one.
        is_no_local: what its own connection sends is left out.
        honoured: for the answer, by name.
    """

    selector: str | None
    is_no_local: bool
    honoured: dict[object, object]


def read_filters(data: Data) -> Filters:
    """Give the filters that count.

    Raises:
        AmqpError: a selector of another type than text.
    """
    found = value_of(data)
    selector, is_no_local, honoured = None, False, {}
    if isinstance(found, dict):
        for name, one in found.items():
            if not isinstance(one, Described):
                continue
            kind = one.descriptor
            if kind in (_SELECTOR_CODE, _SELECTOR):
                if not isinstance(one.value, str):
                    raise AmqpError(INVALID_FIELD, "Invalid filter")
                selector = to_core(one.value)
                honoured[symbol(name)] = one
            elif kind in (_NO_LOCAL_CODE, _NO_LOCAL):
                is_no_local = True
                honoured[symbol(name)] = one
    return Filters(selector, is_no_local, honoured)


def filters_of(selector: str | None, *, is_no_local: bool) -> dict[object, object]:
    """Give the filters of a subscription that is there, for the answer."""
    found: dict[object, object] = {}
    if selector:
        found[symbol("jms-selector")] = Described(ulong(_SELECTOR_CODE), selector)
    if is_no_local:
        found[symbol("no-local")] = Described(ulong(_NO_LOCAL_CODE), "NoLocalFilter{}")
    return found


def to_core(selector: str) -> str:
    """Give a selector with the broker's names: of JMS's headers, and quoted annotations.

    >>> to_core('JMSPriority > 4 AND "m.x-opt-a" = 1')
    'AMQPriority > 4 AND "JMS_AMQP_MA_x-opt-a" = 1'
    """
    return translate_jms(selector).replace(f'"{_PREFIX}', '"JMS_AMQP_MA_')
