from typing import Self

from typing_extensions import disjoint_base

from broker.model.large_body import LargeBody
from broker.model.message_owners import MessageOwner, SpillFile
from broker.model.properties import Property

__all__ = ["MessageFields", "Parts"]

@disjoint_base
class Parts:
    body: bytes | None
    large: LargeBody | None
    properties: dict[str, Property] | None
    timestamp: int | None
    user_id: bytes | bool | None

@disjoint_base
class MessageFields:
    _address: str | None
    _changed: int
    # None until a subclass makes them, in _read_back().
    _data: bytes | SpillFile | None
    _durable: int
    _expiration: int
    _headers_at: int
    _is_read_back: bool
    _message_id: int
    _parts: Parts | None
    _priority: int
    _properties_at: int
    _routing: int
    _type: int
    durable_references: int
    has_own_properties: int
    is_large: bool
    owner: MessageOwner[Self] | None
    references: int
